"""Makes a call of submitit in a job of jpsi: each task runs `python submitit_task.py FOLDER`.

The script gives the task the log files that submitit expects, and sends itself submitit's signal some seconds
before the walltime is over, so that a function is asked for its checkpoint on every batch system.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from submitit.core.job_environment import JobEnvironment
from submitit.core.submission import process_job

_STEP_SECONDS = 0.05


def main(folder: str) -> None:
    """Make the call whose pickle is in a folder of submitit's."""
    os.environ["SUBMITIT_FOLDER"] = folder
    environment = JobEnvironment()
    paths = environment.paths
    for stream, path in ((sys.stdout, paths.stdout), (sys.stderr, paths.stderr)):
        # a further attempt continues the file
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, stream.fileno())
        os.close(log)
    number = environment._usr_sig()  # noqa: SLF001  for plugins
    threading.Thread(target=warn, args=(number, time.monotonic()), daemon=True).start()
    process_job(folder)


def warn(number: int, begin: float) -> None:
    """Send this process submitit's signal when it is time, and once its handler is there."""
    end = begin + float(os.environ["SUBMITIT_JPSI_WARN_AFTER"])
    while time.monotonic() < end or signal.getsignal(number) is signal.SIG_DFL:
        time.sleep(min(max(end - time.monotonic(), _STEP_SECONDS), threading.TIMEOUT_MAX))
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    main(sys.argv[1])

"""The program of a group's job, `python -m jpsi_jobspec.group_supervisor RUN ENTRY`: supervises `group_run`.

`group_run` runs the tasks of the group. Something may kill it, such as a node that runs out of memory; this
program then starts it again, and it continues with the remaining tasks. `group_run` notices by the end of its
standard input that the job is gone.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from types import FrameType

# How often `group_run` is started, as it may be killed each time.
_MAX_STARTS = 20
_END_SIGNALS = {signal.SIGTERM, signal.SIGINT}
_SIGNAL_BASE = 128


def main(path: str, entry_id: str) -> int:
    """Keep the tasks of one group of a run going to their end, and return the exit code of the group."""
    # no other start of this job has the same id; it begins with the time of the start
    life = f"{time.time()} {socket.gethostname()} {os.getpid()}"
    command = [sys.executable, "-m", "jpsi_jobspec.group_run", path, entry_id, life]
    supervisor = _Supervisor()
    for number in _END_SIGNALS:
        signal.signal(number, supervisor.forward_signal)
    for _ in range(_MAX_STARTS):
        code = supervisor.run(command)
        if code >= 0:
            return code
        sys.stderr.write(f"jpsi: the process that runs the group {entry_id} was ended by signal {-code}\n")
        sys.stderr.flush()
    return _SIGNAL_BASE - code


class _Supervisor:
    """The supervisor of one process, to which it forwards signals to end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_signalled = False

    def run(self, command: list[str]) -> int:
        # the process unblocks signals once it has handlers for them
        signal.pthread_sigmask(signal.SIG_BLOCK, _END_SIGNALS)
        with subprocess.Popen(command, stdin=subprocess.PIPE) as self._process:  # noqa: S603  ours
            if self._is_signalled:
                self._process.send_signal(signal.SIGTERM)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _END_SIGNALS)
            return self._process.wait()

    def forward_signal(self, _: int, __: FrameType | None) -> None:
        self._is_signalled = True
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

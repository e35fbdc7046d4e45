"""A job on a cluster behind SSH: its input goes there, its output is shown, and its result comes back.

python remote.py [EXECUTOR [URL]]

As in `python remote.py slurm ssh://me@login.example`, or `python remote.py cluster` where the configuration
has a target of this name. The program may be stopped, or lose its connection: started again, here or on
another machine, it goes on with the job that is there.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path

import jpsi

NAME = "count-words"
#: The working directory on the remote host; ~ is the home directory there.
REMOTE_DIRECTORY = "~/jpsi-example"


def run(executor: jpsi.JobExecutor, text: Path, result: Path) -> jpsi.JobStatus:
    """Count the words of a file on the remote host."""
    job = find_unfinished(executor) or start(executor, text)
    status = follow(job)
    if status.state is jpsi.JobState.COMPLETED:
        executor.files.get(f"{REMOTE_DIRECTORY}/result.txt", str(result))
    return status


def find_unfinished(executor: jpsi.JobExecutor) -> jpsi.Job | None:
    """Return the unfinished job of an earlier call, if there is one."""
    jobs = [job for job in executor.recover() if job.spec is not None and job.spec.name == NAME]
    return next((job for job in jobs if job.native_id is not None), None)


def start(executor: jpsi.JobExecutor, text: Path) -> jpsi.Job:
    executor.files.put(str(text), f"{REMOTE_DIRECTORY}/words.txt")
    count = 'wc -w <"$1" >result.txt && echo "counted the words of $1"'
    spec = jpsi.JobSpec("/bin/sh", ["-c", count, "sh", "words.txt"], name=NAME)
    spec.directory = Path(REMOTE_DIRECTORY)
    spec.attributes = jpsi.JobAttributes(duration=timedelta(minutes=5))
    job = jpsi.Job(spec)
    executor.submit(job)
    return job


def follow(job: jpsi.Job) -> jpsi.JobStatus:
    """Show the output of a job until it has ended; retry if the connection breaks."""
    output, end = job.output(), 0
    assert output is not None
    while True:
        status = job.wait(1)
        try:
            while (chunk := output.read(end)) is not None and chunk.data:
                print(chunk.data.decode(errors="replace"), end="", flush=True)
                end = chunk.end
        except jpsi.SubmitException as error:
            if not error.transient:
                raise
            print(error, file=sys.stderr)
            time.sleep(10)
        else:
            if status is not None:
                return status


def main(name: str | None = None, url: str | None = None) -> int:
    text = Path(__file__).parent / "hello" / "words.txt"
    result = Path("result.txt")
    status = run(jpsi.JobExecutor(name, url=url), text, result)
    print(status)
    if status.state is jpsi.JobState.COMPLETED:
        print(result.read_text(), end="")
    return status.exit_code or 0


if __name__ == "__main__":
    if sys.argv[3:]:
        sys.exit("usage: python remote.py [EXECUTOR [URL]]")
    try:
        sys.exit(main(*sys.argv[1:]))
    except jpsi.JpsiError as error:
        sys.exit(str(error))

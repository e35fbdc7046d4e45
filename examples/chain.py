"""A chain of jobs by callbacks: prepare, then three simulations side by side, then a summary.

python chain.py [EXECUTOR]

The program decides what comes next, from what the jobs before it have found. Where nothing is to be decided,
`JobAttributes(after=[...])` leaves the waiting to the batch system, which goes on when the program has ended.
"""

from __future__ import annotations

import sys
import threading

import jpsi


class Chain:
    """A chain of jobs: submits each step when the previous one has ended, one callback at a time."""

    def __init__(self, executor: jpsi.JobExecutor) -> None:
        self.executor = executor
        self.simulations: list[jpsi.Job] = []
        self.results: list[str] = []
        self.is_over = threading.Event()
        executor.set_job_status_callback(self.submit_next)

    def submit(self, name: str, text: str) -> jpsi.Job:
        job = jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", text], name=name))
        self.executor.submit(job)
        return job

    def submit_next(self, job: jpsi.Job, status: jpsi.JobStatus) -> None:
        if not status.final:
            return
        assert job.spec is not None
        print(job.spec.name, status.state, output(job))
        if status.state is not jpsi.JobState.COMPLETED or job.spec.name == "summary":
            self.is_over.set()
        elif job.spec.name == "prepare":
            numbers = output(job).split()
            self.simulations = [self.submit(f"simulate-{n}", f"echo $(({n} * {n}))") for n in numbers]
        else:
            # Others may have ended by now whose callbacks are still to come: count those that have come.
            self.results.append(output(job))
            if len(self.results) == len(self.simulations):
                self.submit("summary", f"echo $(({'+'.join(self.results)}))")


def output(job: jpsi.Job) -> str:
    """Return the output of a job."""
    return "" if job.streams is None else job.streams.stdout.read_text().strip()


def main(name: str | None = None) -> None:
    chain = Chain(jpsi.JobExecutor(name))
    chain.submit("prepare", "echo 1 2 3")
    chain.is_over.wait()


if __name__ == "__main__":
    if sys.argv[2:]:
        sys.exit("usage: python chain.py [EXECUTOR]")
    try:
        main(*sys.argv[1:])
    except jpsi.JpsiError as error:
        sys.exit(str(error))

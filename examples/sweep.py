"""A parameter sweep: one job for each pair of parameters, and a table of what they found.

python sweep.py [EXECUTOR]

What is to be computed stands in `solve`, which each job calls as a program: `python sweep.py --solve 1 0.5`.
"""

from __future__ import annotations

import csv
import itertools
import sys
from collections.abc import Iterator
from datetime import timedelta

import jpsi

WIDTHS = (1, 2, 3)
RATES = (0.5, 0.1)


def solve(width: float, rate: float) -> float:
    """Compute the result of a job."""
    return width * rate**2


def job(width: float, rate: float) -> jpsi.Job:
    """Return the job for one pair."""
    spec = jpsi.JobSpec(sys.executable, [__file__, "--solve", str(width), str(rate)], name="sweep")
    spec.attributes = jpsi.JobAttributes(duration=timedelta(minutes=5))
    return jpsi.Job(spec)


def rows(executor: jpsi.JobExecutor) -> Iterator[tuple[float, float, str]]:
    """Run all of them: with a batch system that has arrays, as one."""
    pairs = list(itertools.product(WIDTHS, RATES))
    jobs = [job(*pair) for pair in pairs]
    executor.submit_many(jobs)
    for pair, it, status in zip(pairs, jobs, jpsi.wait_all(jobs, progress=True), strict=True):
        if it.streams is None or it.status.state is not jpsi.JobState.COMPLETED:
            yield *pair, f"failed: {status}"
        else:
            yield *pair, it.streams.stdout.read_text().strip()


def main(name: str | None = None) -> None:
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(("width", "rate", "result"))
    table.writerows(rows(jpsi.JobExecutor(name)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--solve"]:
        print(solve(*map(float, sys.argv[2:])))
        sys.exit()
    if sys.argv[2:]:
        sys.exit("usage: python sweep.py [EXECUTOR]")
    try:
        main(*sys.argv[1:])
    except jpsi.JpsiError as error:
        sys.exit(str(error))

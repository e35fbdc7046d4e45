"""Thousands of jobs, of which a few run at a time.

python throttle.py [COUNT [AT_A_TIME]]

Here they are processes of this machine. For a batch system, say in the configuration how many of your jobs it
is to have, or to run, at a time:

executors:
  slurm:
    config: {max_queued: 500, max_active: 100}

`submit` waits for room. If the program is stopped, what it had not submitted is not submitted.
"""

from __future__ import annotations

import sys
from collections import Counter

import jpsi


def main(count: int = 1000, at_a_time: int = 4) -> None:
    executor = jpsi.JobExecutor("local", config=jpsi.ExecutorConfig(max_active=at_a_time))
    jobs = [
        jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", f"exit $(({n} % 10 == 0))"])) for n in range(1, count + 1)
    ]
    executor.submit_many(jobs)
    ends = Counter(str(status.state) for status in jpsi.wait_all(jobs) if status)
    print(dict(sorted(ends.items())))


if __name__ == "__main__":
    if sys.argv[3:] or not all(map(str.isdecimal, sys.argv[1:])):
        sys.exit("usage: python throttle.py [COUNT [AT_A_TIME]], two numbers, for jobs on this machine")
    main(*map(int, sys.argv[1:]))

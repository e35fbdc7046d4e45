"""Measures submission over SSH, to this machine through an sshd of its own, beside local submission.

    ci/slurm/up                       on a machine without a Slurm, as root
    ./dev benchmarks over_ssh         rows of the table of `./dev benchmarks` by themselves
    ./dev benchmarks over_ssh --quick smaller numbers, to see that it works

Local and remote submissions take turns, in one process. The first few do not count, as they connect, and load
the modules of all others. Jobs of Slurm wait for a start time that does not come.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.remote_host import remote_host, skip_reason
from benchmarks.side_by_side import machine, run_measurement, say
from benchmarks.slurm_commands import cancel_all, is_local
from benchmarks.tables import Row, figure, markdown

_FIRST = 3
_COUNT, _QUICK = 300, 20
_MOST_MILLISECONDS = 40


def rows(directory: str | None, count: int) -> Iterator[Row]:
    """Yield a row for `local`, and one for Slurm if it answers; none if there can be no sshd."""
    reason = skip_reason()
    if reason:
        say(f"{reason}: what is measured over SSH is left out")
        return
    with remote_host() as host:
        for executor in ("local", *(["slurm"] if is_local() else [])):
            say(f"{count} jobs to {executor}, here and over SSH")
            here, there = run_measurement(directory, seconds, executor, count, host.url, host.work_directory)
            yield _row(executor, count, statistics.median(here) * 1e3, statistics.median(there) * 1e3)


def _row(executor: str, count: int, here: float, there: float) -> Row:
    return Row(
        what=f"submitting one of {count} jobs to `{executor}`, here / over SSH, median, ms",
        found={"jpsi": f"{figure(here)} / {figure(there)}"},
        ratio=f"{figure(there - here)} ms more",
        goal=f"≤ {_MOST_MILLISECONDS}",
    )


def seconds(executor: str, count: int, url: str, work_directory: str) -> tuple[list[float], list[float]]:
    """Return the seconds of each of so many submissions, first on this machine and then over SSH."""
    import jpsi
    from jpsi.plugin import BatchConfig
    from jpsi_slurm import SlurmConfig

    config = (SlurmConfig if executor == "slurm" else BatchConfig)(work_directory=Path(work_directory))
    sides = [jpsi.JobExecutor(executor), jpsi.JobExecutor(executor, url=url, config=config)]
    name = f"benchmark-{uuid.uuid4().hex}"
    jobs: list[Any] = []
    found: list[list[float]] = [[], []]
    try:
        for _, side in itertools.product(range(_FIRST + count), range(len(sides))):
            spec = jpsi.JobSpec("/bin/true", name=name)
            if executor == "slurm":
                spec.attributes = jpsi.JobAttributes(custom_attributes={"slurm.begin": "now+2hours"})
            jobs.append(jpsi.Job(spec))
            begun = time.perf_counter()
            sides[side].submit(jobs[-1])
            found[side].append(time.perf_counter() - begun)
        if executor == "local":
            jpsi.wait_all(jobs)
    finally:
        if executor == "slurm":
            cancel_all(name)
    here, there = (its[_FIRST:] for its in found)
    return here, there


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it works")
    parser.add_argument("--directory", help="where state directories go; the default is a tmpfs")
    arguments = parser.parse_args()
    found = list(rows(arguments.directory, _QUICK if arguments.quick else _COUNT))
    if not found:
        sys.exit(1)
    print(f"{machine()}\n\n{markdown(found)}")


if __name__ == "__main__":
    main()

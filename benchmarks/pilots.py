"""Measures short jobs in a pilot, and the same jobs submitted to the batch system, side by side.

    ci/slurm/up                       on a machine without a Slurm, as root
    ./dev benchmarks pilots           2,000 jobs each way, in turns: some ten minutes
    ./dev benchmarks pilots --quick   few jobs, to see that it works

The pilot is a job of the same Slurm, on two nodes. Times run from the first submission until the client knows
the end of all jobs; the pilot has started before that, and the table gives its start time apart. Figures of
different machines or runs do not compare.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import timedelta
from statistics import median

import jpsi
from benchmarks.side_by_side import interleave, machine, run_measurement
from benchmarks.slurm_commands import is_local
from jpsi import Job, JobAttributes, JobExecutor, JobSpec
from jpsi_pilot.config import PilotConfig

_PATIENCE = 3600
# One in so many jobs is also submitted to a pilot one by one.
_PART = 10
_LIMIT = JobAttributes(duration=timedelta(minutes=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few jobs, to see that it works")
    parser.add_argument("--jobs", type=int, default=2000, help="how many jobs")
    parser.add_argument("--turns", type=int, default=3, help="how often it is each way's turn")
    parser.add_argument("--directory", help="where state directories go; the default is a tmpfs")
    parser.add_argument("--cores", type=int, default=4, help="how many cores of each node the pilot has")
    arguments = parser.parse_args()
    if not is_local():
        sys.exit("no Slurm answers here; ci/slurm/up starts one")
    count, turns = (50, 1) if arguments.quick else (arguments.jobs, arguments.turns)
    where = arguments.directory
    seconds = interleave(
        turns,
        {
            "one by one": lambda: {"slurm": run_measurement(where, one_by_one, count)},
            "as an array": lambda: {"array": run_measurement(where, as_array, count)},
            "in a pilot": lambda: run_measurement(where, in_a_pilot, count, arguments.cores),
        },
    )
    print(f"{machine()}\n")
    by_name = {name: [turn[name] for turn in found] for found in seconds.values() for name in found[0]}
    print(_table(count, by_name))


def _table(count: int, seconds: dict[str, list[float]]) -> str:
    """Return the table, with medians of all turns."""
    few = _few(count)
    rows = {
        "slurm": ("submitted to Slurm one by one", count),
        "array": ("submitted to Slurm by `submit_many`, as an array", count),
        "many": ("in a pilot, by `submit_many`", count),
        "single": (f"in a pilot, {few} of them one by one", few),
    }
    beside = count / median(seconds["slurm"])
    lines = [f"| {count} times /bin/true | jobs/s | times as many | each turn |", "|---|--:|--:|---|"]
    for name, (what, number) in rows.items():
        rates = [number / it for it in seconds[name]]
        each = ", ".join(f"{it:.0f}" for it in rates)
        lines.append(f"| {what} | {median(rates):.0f} | {median(rates) / beside:.1f} | {each} |")
    return "\n".join([*lines, "", f"The pilot took {median(seconds['start']):.1f} s to start."])


def one_by_one(count: int) -> float:
    """Return the seconds for jobs that are submitted to Slurm one by one."""
    with JobExecutor.get_instance("slurm") as executor:
        return _wait_for_all(executor, _jobs(count), at_once=False)


def as_array(count: int) -> float:
    """Return the seconds for jobs that are submitted to Slurm all at once."""
    with JobExecutor.get_instance("slurm") as executor:
        return _wait_for_all(executor, _jobs(count), at_once=True)


def in_a_pilot(count: int, cores: int) -> dict[str, float]:
    """Return the seconds for the start of a pilot, and for jobs in it, one by one and all at once."""
    config = PilotConfig(
        target="slurm",
        nodes_per_pilot=2,
        cores_per_node=cores,
        memory_per_node=2 * 2**30,
        idle_time=timedelta(seconds=5),
    )
    with JobExecutor.get_instance("pilot", config=config) as executor:
        start = _wait_for_all(executor, _jobs(1), at_once=False)
        many = _wait_for_all(executor, _jobs(count), at_once=True)
        single = _wait_for_all(executor, _jobs(_few(count)), at_once=False)
        return {"start": start, "many": many, "single": single}


def _few(count: int) -> int:
    return max(1, count // _PART)


def _jobs(count: int) -> list[Job]:
    return [Job(JobSpec("/bin/true", attributes=_LIMIT)) for _ in range(count)]


def _wait_for_all(executor: JobExecutor, jobs: list[Job], *, at_once: bool) -> float:
    begin = time.monotonic()
    if at_once:
        executor.submit_many(jobs)
    else:
        for job in jobs:
            executor.submit(job)
    for job in jobs:
        status = job.wait(_PATIENCE)
        assert status is not None
        assert status.state is jpsi.JobState.COMPLETED, status
    return time.monotonic() - begin


if __name__ == "__main__":
    main()

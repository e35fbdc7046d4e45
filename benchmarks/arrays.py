"""Measures jpsi's own processor time for each job of an array, beside the time to make the jobs.

    ./dev benchmarks arrays              1,000 jobs, medians of 5 turns
    ./dev benchmarks arrays --count 5000

The jobs go to a fake Slurm, whose `sbatch` is a script of a few lines. They are equal, or differ in their
arguments or in a variable. Processor times depend less on the machine's other load.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Mapping

from benchmarks.fake_slurm import fake_slurm
from benchmarks.side_by_side import interleave, machine, run_measurement

# Submissions before the one that counts, as the first loads modules.
_WARM_UP = 3


def seconds(kind: str, count: int) -> list[float]:
    """Return the processor time to make so many jobs, and that to submit them together."""
    import jpsi

    specs: Mapping[str, Callable[[int], jpsi.JobSpec]] = {
        "equal": lambda _: jpsi.JobSpec("/bin/true"),
        "arguments": lambda number: jpsi.JobSpec("/bin/true", [str(number)]),
        "variable": lambda number: jpsi.JobSpec("/bin/true", environment={"NUMBER": str(number)}),
    }
    executor = jpsi.JobExecutor.get_instance("slurm")
    for _ in range(1 + _WARM_UP):
        begun = time.process_time()
        jobs = [jpsi.Job(specs[kind](number)) for number in range(count)]
        made = time.process_time()
        executor.submit_many(jobs)
        used = [made - begun, time.process_time() - made]
    return used


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with fake_slurm():
        kinds = ("equal", "arguments", "variable")
        measures = {
            kind: functools.partial(run_measurement, None, seconds, kind, options.count) for kind in kinds
        }
        found = interleave(options.rounds, measures)
    print(f"{machine()}\n\n| {options.count:,} jobs in one array | making a job, µs | submitting it, µs |")
    print("|---|--:|--:|")
    for kind, turns in found.items():
        cells = []
        for used in zip(*turns, strict=True):
            each = sorted(1e6 * it / options.count for it in used)
            cells.append(f"{statistics.median(each):.1f} ({each[0]:.1f} to {each[-1]:.1f})")
        print(f"| {_NAMES[kind]} | {' | '.join(cells)} |")


_NAMES = {"equal": "equal", "arguments": "differ in their arguments", "variable": "differ in a variable"}


if __name__ == "__main__":
    main()

"""Measures what jpsi costs a user who waits for it, and the batch system: commands, listings, polls, cancels.

    ci/slurm/up                            on a machine without a Slurm, as root
    ./dev benchmarks client                all but the last row, in a quarter of an hour
    ./dev benchmarks client --hour         with the polls of an hour, in a little more than an hour
    ./dev benchmarks client --jobs 1000    fewer jobs, to see that it works

Each figure is the median of five repetitions (`--rounds`), with the lowest and the highest, beside its
reference from the same run. The measurements of an hour run at the same time, each with a client of its own.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks import cancelling, commands, listing, waiting
from benchmarks.fake_slurm import fake_slurm
from benchmarks.side_by_side import interleave, machine, run_measurement, say
from benchmarks.slurm_commands import is_local

_HOUR = 3600.0
_HEADING = "| what | reference | jpsi | over the reference | to reach |\n|---|--:|--:|--:|--:|"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=10_000, help="the jobs that are listed, and that wait")
    parser.add_argument("--cancelled", type=int, default=1000, help="the jobs that are cancelled")
    parser.add_argument("--hour", action="store_true", help="count the polls of an hour")
    parser.add_argument("--directory", help="where state directories go; the default is a tmpfs")
    options = parser.parse_args()
    print(f"{machine()}\n\n{_HEADING}")
    commands.measure(options.rounds, _print)
    _print_listings(options.directory, options.rounds, options.jobs)
    if is_local():
        _print_cancels(options.directory, options.rounds, options.cancelled)
    else:
        say("no Slurm answers here: the row of jobs that are cancelled is left out; ci/slurm/up starts one")
    if options.hour:
        _print_polls(options.directory, options.rounds, options.jobs)


def _print(what: str, reference: str, found: str, over: str, goal: str) -> None:
    print(f"| {what} | {reference} | {found} | {over} | {goal} |", flush=True)


def _spread(values: Sequence[float], digits: int = 2) -> str:
    """Return a median with the lowest and the highest value.

    >>> _spread([1.0, 3.0, 2.0])
    '2.00 (1.00 to 3.00)'
    """
    median, low, high = statistics.median(values), min(values), max(values)
    return f"{median:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _print_listings(directory: str | None, rounds: int, count: int) -> None:
    say(f"{count:,} jobs are listed")
    with fake_slurm():
        waits = run_measurement(directory, listing.of_waiting, count, rounds, [])
    ended = run_measurement(directory, listing.of_ended, count, rounds, [])
    for what, times, goal in (
        (f"`jpsi ls`, {count:,} jobs wait in arrays, CPU s", waits, "0.2"),
        (f"`jpsi ls`, {count:,} jobs have ended one by one, CPU s", ended, "0.3"),
    ):
        bare, found = ([used for _, used in times[name]] for name in ("bare", "jpsi"))
        over = f"{statistics.median(found) - statistics.median(bare):.2f}"
        _print(what, f"`python -c pass`: {_spread(bare)}", _spread(found), over, goal)


def _print_cancels(directory: str | None, rounds: int, count: int) -> None:
    say(f"{count:,} jobs are cancelled by scancel")
    found = interleave(
        rounds,
        {
            "squeue": lambda: {"seconds": run_measurement(directory, cancelling.by_squeue, count)},
            "jpsi": lambda: run_measurement(directory, cancelling.by_jpsi, count),
        },
    )
    bare, seconds = ([it["seconds"] for it in found[name]] for name in ("squeue", "jpsi"))
    running = statistics.median(it["running"] for it in found["jpsi"])
    polls = _spread([it["polls"] for it in found["jpsi"]], 0)
    what = f"`scancel` of {count:,} jobs, {running:.0f} of which run: s until all are final"
    _print(what, f"no more in `squeue`: {_spread(bare)}", _spread(seconds), "", "3")
    _print("... polls of the queue in that time", "", polls, "", "2")


def _print_polls(directory: str | None, rounds: int, count: int) -> None:
    say(f"{count:,} jobs wait for an hour, {rounds} times at once")

    def wait(_: int) -> Any:
        return run_measurement(directory, waiting.on_fake, count, 0.0, _HOUR, patience=2 * _HOUR)

    with fake_slurm(), ThreadPoolExecutor(rounds) as pool:
        found = list(pool.map(wait, range(rounds)))
    polls = _spread([it["in an hour"].get("squeue", 0) for it in found], 0)
    every = f"a call each 30 s: {_HOUR / 30:.0f}"
    _print(f"calls of squeue in the first hour in which {count:,} jobs wait", every, polls, "", "12")


if __name__ == "__main__":
    main()

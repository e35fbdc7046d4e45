"""Measures many jobs: jpsi, psij-python and the bare commands, side by side in one table.

    ci/slurm/up accounting            on a machine without a Slurm, as root
    ./dev benchmarks                  the whole table, in about a quarter of an hour
    ./dev benchmarks many --quick     smaller numbers, to see that it works
    ./dev benchmarks many --json      the same for programs

If no Slurm answers, the program leaves out the measurements on one; if it does not run as root, which sshd
takes, it leaves out submission over SSH. Competitors take turns, each in a process of its own, and the table
has medians. State directories are on a tmpfs unless `--directory` says otherwise, as jpsi waits until its
records are on the disk. Figures of different machines or runs do not compare: ratios do.
"""

from __future__ import annotations

import argparse
import functools
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs

from benchmarks import ending, growing, listing, local, over_ssh, submitting, waiting
from benchmarks.fake_slurm import fake_slurm
from benchmarks.libraries import installed
from benchmarks.side_by_side import interleave, machine, percentile, run_measurement, run_sliced, say
from benchmarks.slurm_commands import is_local, tally
from benchmarks.tables import Row, as_json, figure, markdown

# The calls of each command that lists jobs.
_LISTINGS = 7
_PERCENTS = (50, 95)


@attrs.frozen(slots=True, kw_only=True)
class Size:
    """The numbers of jobs and the times of the measurements."""

    rounds: int
    #: Jobs that are submitted to a real Slurm, and that wait there.
    submitted: int
    #: The number of slices in which they are submitted, so that competitors take turns often.
    slices: int
    #: Jobs that are submitted to a fake one: this many, and ten times as many.
    faked: int
    #: The time for which jobs wait before a measurement of their costs, and that of the measurement, in
    #: seconds.
    settling: float
    looking: float
    #: Jobs that are listed.
    listed: int
    #: Jobs that run.
    ended: int
    local: int
    #: Jobs that are submitted on this machine, and as many over SSH, to each executor.
    over_ssh: int


FULL = Size(
    rounds=3,
    submitted=1000,
    slices=20,
    faked=10_000,
    settling=120,
    looking=180,
    listed=10_000,
    ended=200,
    local=1000,
    over_ssh=300,
)
QUICK = Size(
    rounds=1,
    submitted=50,
    slices=5,
    faked=500,
    settling=5,
    looking=20,
    listed=500,
    ended=20,
    local=100,
    over_ssh=20,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it works")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--directory", help="where state directories go; the default is a tmpfs")
    arguments = parser.parse_args()
    many = Many(QUICK if arguments.quick else FULL, arguments.directory)
    rows = list(many.rows())
    print(as_json(machine(), rows) if arguments.json else f"{machine()}\n\n{markdown(rows)}")


class Many:
    """The measurements of the table.

    Args:
        size: the numbers of jobs and the times.
        directory: the directory for home directories.
    """

    def __init__(self, size: Size, directory: str | None) -> None:
        self._size = size
        self._directory = directory
        self._libraries = installed()
        self._measured = functools.partial(run_measurement, directory)
        self._has_slurm = is_local()

    def rows(self) -> Iterator[Row]:
        """Yield all rows, in the order of the table."""
        if self._has_slurm:
            yield from self._submissions()
        else:
            say("no Slurm answers here: what is measured on one is left out")
        yield from self._growth()
        yield from self._waits()
        yield from self._lists()
        if self._has_slurm:
            yield self._ends()
        yield from self._local()
        yield from over_ssh.rows(self._directory, self._size.over_ssh)

    def _medians(
        self, rounds: int, competitors: list[str], measurement: Callable[..., float], count: int
    ) -> dict[str, float]:
        measures = {it: functools.partial(self._measured, measurement, it, count) for it in competitors}
        return {name: statistics.median(found) for name, found in interleave(rounds, measures).items()}

    def _in_slices(
        self, competitors: list[str], measurement: Callable[..., Iterator[float]]
    ) -> dict[str, float]:
        """Return the seconds for all jobs, from the median of their slices."""
        count, slices = self._size.submitted // self._size.slices, self._size.slices
        calls = [(name, count) for name in competitors]
        found = run_sliced(self._directory, measurement, slices, *calls)
        return {name: slices * statistics.median(its) for name, its in zip(competitors, found, strict=True)}

    def _submissions(self) -> Iterator[Row]:
        count, rounds = self._size.submitted, self._size.rounds
        contestants = ["bare", *self._libraries]
        what = f"{count:,} jobs to Slurm"
        say(f"{what}, one by one")
        alone = self._in_slices(contestants, submitting.one_by_one)
        yield Row(
            what=f"{what}, one by one, s", found=alone, ratio=_of_bare(alone, "bare `sbatch`"), goal="≤ 1.25"
        )
        say(f"{what}, {submitting.AT_A_TIME} at a time")
        beside = self._in_slices(contestants, submitting.concurrently)
        yield Row(
            what=f"... {submitting.AT_A_TIME} at a time, s",
            found=beside,
            ratio=_of_bare(beside, f"bare `sbatch`, {submitting.AT_A_TIME} at a time"),
        )
        say(f"{what}, as an array")
        together = self._medians(3 * rounds, ["bare", "jpsi"], submitting.as_array, count)
        faster = alone["bare"] / together["jpsi"]
        yield Row(
            what="... as an array, s",
            found=together,
            ratio=f"{figure(faster)} times as fast as {count:,} bare `sbatch`",
            goal="≥ 30",
        )

    def _growth(self) -> Iterator[Row]:
        some, many = self._size.faked, 10 * self._size.faked
        say(f"{some:,} and {many:,} jobs to a fake Slurm")
        measures = {
            str(count): functools.partial(self._on_fake, growing.time_of, count) for count in (some, many)
        }
        found = interleave(self._size.rounds, measures)
        clock, own = (
            {int(name): statistics.median(it[kind] for it in its) for name, its in found.items()}
            for kind in ("clock", "own")
        )
        for count in (some, many):
            is_last = count == many
            yield Row(
                what=f"{count:,} jobs to a fake Slurm, s (of that jpsi's own on a core)",
                found={"jpsi": f"{figure(clock[count])} ({figure(own[count])})"},
                ratio=f"{figure(clock[many] / clock[some])} times ({figure(own[many] / own[some])})"
                if is_last
                else "",
                goal="about 10" if is_last else "",
            )
        for count in (some, many):
            say(f"memory of {count:,} jobs")
            memory = self._on_fake(growing.memory_of, count)
            yield Row(what=f"memory of each of {count:,} jobs, bytes", found={"jpsi": memory}, goal="< 3,072")

    def _on_fake(self, measurement: Callable[..., Any], *arguments: object) -> Any:
        with fake_slurm():
            return self._measured(measurement, *arguments)

    def _waits(self) -> Iterator[Row]:
        size, real = self._size, self._libraries if self._has_slurm else []
        say(f"jobs wait for {size.settling + size.looking:.0f} s")

        def wait(name: str) -> Any:
            return self._measured(waiting.on_slurm, name, size.submitted, size.settling, size.looking)

        with ThreadPoolExecutor() as pool:
            found = dict(zip(real, pool.map(wait, real), strict=True))
        if found:
            yield Row(
                what=f"commands for {size.submitted:,} jobs: to submit them, and while they wait an hour",
                found={name: tally(_commands(it)) for name, it in found.items()},
            )
            yield Row(
                what=f"CPU while {size.submitted:,} jobs wait, % of a core",
                found={name: it["per cent"] for name, it in found.items()},
            )
        it = self._on_fake(waiting.on_fake, size.faked, size.settling, size.looking)
        yield Row(
            what=f"CPU while {size.faked:,} jobs wait on a fake Slurm, % of a core",
            found={"jpsi": it["per cent"]},
            goal="< 1",
        )

    def _lists(self) -> Iterator[Row]:
        """Yield the processor time, and in parentheses the clock's, of `jpsi ls` and a bare interpreter."""
        count = self._size.listed
        say(f"{count:,} jobs are listed")
        waiting, ended = (
            self._on_fake(listing.of_waiting, count, _LISTINGS, ["--members"]),
            self._measured(listing.of_ended, count, _LISTINGS, ["--members"]),
        )
        unit = "s of a core (by the clock)"
        what = f"`jpsi ls --members` of {count:,} jobs that wait in arrays, beside `python -c pass`, {unit}"
        for text, found in {
            what: waiting,
            f"... that have ended, each by itself, {unit}": ended,
        }.items():
            yield Row(
                what=text,
                found={name: _used_and_clock(times) for name, times in found.items()},
                goal="< 1",
            )

    def _ends(self) -> Row:
        count = self._size.ended
        say(f"{count} short jobs on Slurm")
        found = {it: self._measured(ending.on_slurm, it, count, True) for it in self._libraries}  # noqa: FBT003  goes as JSON
        return Row(
            what=f"exit to callback of {count} jobs on Slurm, p50 / p95, s",
            found={name: _percentiles(it["latencies"]) for name, it in found.items()},
        )

    def _local(self) -> Iterator[Row]:
        count = self._size.local
        say(f"{count:,} local jobs")
        rates = self._medians(self._size.rounds, ["bare", *self._libraries], local.throughput, count)
        yield Row(
            what=f"{count:,} local `/bin/true`, jobs/s",
            found=rates,
            ratio=_of_bare(rates, "the bare loop"),
        )
        found = {it: self._measured(local.latency, it, count // 10, 0) for it in self._libraries}
        yield Row(
            what="exit to callback of a local job, p50 / p95, ms",
            found={name: _percentiles(it) for name, it in found.items()},
        )


def _of_bare(found: Mapping[str, float], bare: str) -> str:
    return f"{found['jpsi'] / found['bare']:.2f} of {bare}"


def _commands(found: Mapping[str, Any]) -> Counter[str]:
    """Return the number of commands that submit jobs and poll them for an hour."""
    return Counter(found["to submit"]) + Counter(found["in an hour"])


def _used_and_clock(times: list[tuple[float, float]]) -> str:
    clock, used = map(statistics.median, zip(*times, strict=True))
    return f"{figure(used)} ({figure(clock)})"


def _percentiles(values: list[float]) -> str:
    return " / ".join(figure(percentile(values, percent)) for percent in _PERCENTS)


if __name__ == "__main__":
    main()

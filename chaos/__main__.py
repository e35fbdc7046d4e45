"""Draws the trials, plays them in parallel, and prints the findings."""

from __future__ import annotations

import argparse
import concurrent.futures
import itertools
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos import deferred, fakes, rounds, selftest, slurm
from chaos.referee import Kind, Verdict
from chaos.rounds import Result, Trial
from chaos.systems import SYSTEMS

# Rounds mostly wait.
_PARALLEL_ROUNDS = 3 * (os.cpu_count() or 1)
# The first columns are names, the others counts.
_NAMES = 2
# The program reports its progress after so many rounds.
_PROGRESS_INTERVAL = 100
_COLUMNS = ("system", "fault", "rounds", "jobs", *(it.value for it in Kind))


@dataclass(frozen=True)
class Stage:
    """A set of batch systems with their faults, and the function that plays rounds on them."""

    systems: Collection[str]
    faults: Collection[str]
    #: Plays one round, in a directory of its own.
    play: Callable[[Trial, Path], Verdict]
    #: The number of rounds in the short form and in the long one.
    short: int
    long: int
    #: The faults whose rounds must not run in parallel with any other.
    alone: Collection[str] = ()


FAKES = Stage(tuple(SYSTEMS), tuple(fakes.FAULTS), fakes.play, short=24, long=1000)
DEFERRED = Stage(tuple(SYSTEMS), tuple(deferred.FAULTS), deferred.play, short=2, long=40)
REAL = Stage((slurm.NAME,), tuple(slurm.FAULTS), slurm.play, short=4, long=300, alone=slurm.ALONE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run trials by the arguments of the command line; return the exit code."""
    options = _parser().parse_args(arguments)
    if failures := selftest.failures():
        print("the self-test of the referee failed:", *failures, sep="\n  ")
        return 1
    stages = [REAL] if options.real else [FAKES, DEFERRED]
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    trials = {
        stage.play: list(
            draw(stage, seed, options.rounds or (stage.long if options.long else stage.short), options.only)
        )
        for stage in stages
    }
    count = sum(map(len, trials.values()))
    if not count:
        print(f"no system or fault is called {' or '.join(options.only)}")
        names = [fault for stage in stages for fault in stage.faults]
        print(f"systems: {', '.join(stages[0].systems)}; faults: {', '.join(names)}")
        return 2
    keep = Path(options.directory or tempfile.gettempdir()) / f"jpsi-chaos-seed-{seed}"
    print(f"chaos: seed {seed}, {count} rounds, {options.at_a_time} at a time", flush=True)
    begun = time.monotonic()
    results: list[Result] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("chaos: terminated"))
    try:
        for result in itertools.chain.from_iterable(
            play_all(stage, trials[stage.play], options.at_a_time, keep, keeps_files=options.keep)
            for stage in stages
        ):
            results.append(result)
            if len(results) % _PROGRESS_INTERVAL == 0:
                print(f"chaos: {len(results)} rounds in {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        print(table(results))
    print(f"chaos: {len(results)} rounds in {time.monotonic() - begun:.0f} s, seed {seed}")
    skipped = {f"{it.trial.system}, {it.trial.fault}: skipped: {it.skipped}" for it in results if it.skipped}
    print(*sorted(skipped), sep="\n", end="\n" if skipped else "")
    if options.json:
        Path(options.json).write_text(as_json(seed, results), encoding="utf-8")
    is_clean = not any(it.verdict.findings or it.error for it in results)
    print("chaos: nothing lost, doubled, wrong or stuck" if is_clean else f"chaos: see {keep}", flush=True)
    return 0 if is_clean else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./dev chaos", description=__doc__, allow_abbrev=False)
    parser.add_argument("--long", action="store_true", help="run the long form, with many more rounds")
    parser.add_argument("--real", action="store_true", help="use the real Slurm that ci/slurm has started")
    parser.add_argument("--seed", type=int, help="repeat the rounds that this seed drew")
    parser.add_argument("--rounds", type=int, help="the number of rounds")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="SYSTEM[:FAULT[:NUMBER]]",
        help="run only these rounds; an empty system means any, as in `:controller`",
    )
    parser.add_argument(
        "--at-a-time", type=int, default=_PARALLEL_ROUNDS, help="the number of rounds that run in parallel"
    )
    parser.add_argument("--directory", help="the directory that keeps the files of rounds with findings")
    parser.add_argument("--keep", action="store_true", help="keep the files of all rounds")
    parser.add_argument("--json", metavar="FILE", help="also write the findings to a file, as JSON")
    return parser


def draw(stage: Stage, seed: int, count: int, only: Iterable[str] = ()) -> Iterator[Trial]:
    """Yield the trials in a random order, with the pairs of a system and a fault as even as possible."""
    pairs = [(system, fault) for system in stage.systems for fault in stage.faults]
    random.Random(seed).shuffle(pairs)  # noqa: S311  to be repeated, not to be safe
    wanted = [_parse_trial(it) for it in only] or [("", "", None)]
    selected = [
        (system, fault, number)
        for system, fault in pairs
        for wanted_system, wanted_fault, number in wanted
        if wanted_system in {"", system} and wanted_fault in {"", fault}
    ]
    for system, fault, number in selected:
        if number is not None:
            yield Trial(seed, system, fault, number)
    many = [(system, fault) for system, fault, number in selected if number is None]
    for index in range(count if many else 0):
        number, place = divmod(index, len(many))
        yield Trial(seed, *many[place], number)


def _parse_trial(only: str) -> tuple[str, str, int | None]:
    system, _, rest = only.partition(":")
    fault, _, number = rest.partition(":")
    return system, fault, int(number) if number else None


def play_all(
    stage: Stage, trials: Sequence[Trial], at_a_time: int, keep: Path, *, keeps_files: bool
) -> Iterator[Result]:
    """Play trials, in parallel where their faults allow it; report findings as they come."""
    parallel = [trial for trial in trials if trial.fault not in stage.alone]
    alone = [trial for trial in trials if trial.fault in stage.alone]
    # each worker is a process of its own, as the commands of its fake are on its PATH
    context = multiprocessing.get_context("spawn")
    for some, count in ((parallel, at_a_time), (alone, 1)):
        # a new pool after some rounds, as the workers of a pool do not live for ever
        for begin in range(0, len(some), _PROGRESS_INTERVAL):
            with concurrent.futures.ProcessPoolExecutor(count, context) as pool:
                played = [
                    pool.submit(rounds.play, trial, stage.play, keep, keeps_files=keeps_files)
                    for trial in some[begin : begin + _PROGRESS_INTERVAL]
                ]
                for future in concurrent.futures.as_completed(played):
                    result = future.result()
                    report(result)
                    yield result


def report(result: Result) -> None:
    """Print the findings about a round, and the command that repeats it."""
    if not result.verdict.findings and not result.error:
        return
    trial = result.trial
    print(
        f"\n{trial.system}, {trial.fault}: ./dev chaos --seed {trial.seed} --only {trial}   ({result.folder})"
    )
    for finding in result.verdict.findings:
        print(f"  {finding}")
    if result.error:
        print(result.error)
    sys.stdout.flush()


def table(results: Iterable[Result]) -> str:
    """Return a table of the rounds and the findings, with a line for each pair of a system and a fault."""
    grouped: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if not result.skipped:
            grouped.setdefault((result.trial.system, result.trial.fault), []).append(result)
    rows = [[*pair, *counts(grouped[pair])] for pair in sorted(grouped)]
    total = ["all", "", *counts([it for group in grouped.values() for it in group])]
    lines = [_COLUMNS, *([str(it) for it in row] for row in [*rows, total])]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_COLUMNS))]

    def render_line(line: Sequence[str]) -> str:
        names = [it.ljust(width) for it, width in zip(line[:_NAMES], widths, strict=False)]
        counts_of_line = [it.rjust(width) for it, width in zip(line[_NAMES:], widths[_NAMES:], strict=True)]
        return "  ".join([*names, *counts_of_line])

    return "\n".join(map(render_line, lines))


def counts(results: Sequence[Result]) -> list[int]:
    """Return the number of rounds, of jobs, and of jobs of each kind of fault."""
    kinds = [sum(it.verdict.count(kind) for it in results) for kind in Kind]
    return [len(results), sum(it.verdict.jobs for it in results), *kinds]


def as_json(seed: int, results: Iterable[Result]) -> str:
    """Return the findings for programs."""
    reported = [
        {
            "trial": str(it.trial),
            "jobs": it.verdict.jobs,
            "seconds": it.seconds,
            "findings": [str(finding) for finding in it.verdict.findings],
            "folder": it.folder,
            "skipped": it.skipped,
            "error": it.error,
        }
        for it in results
    ]
    return json.dumps({"seed": seed, "rounds": reported}, indent=1)


if __name__ == "__main__":
    sys.exit(main())

"""Measures reading and planning a workflow of 10,000 tasks, beside PyYAML's `safe_load` of the document.

    ./dev benchmarks planning            medians of 5 turns
    ./dev benchmarks planning --rounds 9

`safe_load` builds plain mappings and lists by the same parser, and knows no positions.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable

import yaml

from jpsi_jobspec.document import Findings, load
from jpsi_jobspec.planning import Site, make_plan

TASKS = 10_000
HEAD = "version: 1\nresources:\n  r: {type: node, count: 1}\ntasks:\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    text = document(TASKS)
    competitors = {"yaml.safe_load, in C": _load_alone, "reading and planning": _plan}
    seconds: dict[str, list[float]] = {name: [] for name in competitors}
    for _ in range(rounds):
        for name, work in competitors.items():
            seconds[name].append(_time_requests(work, text))
    reference = statistics.median(seconds["yaml.safe_load, in C"])
    for name, taken in seconds.items():
        median = statistics.median(taken)
        print(f"{name:25} {median:6.2f} s {median / reference:6.2f}")


def document(tasks: int) -> str:
    """Return a workflow of so many tasks, each of which but the first depends on another."""
    some = random.Random(1)  # noqa: S311  the same each time
    lines = (
        f'- {{name: t{n}, resources: r, command: ["run", "--index", "{n}"]'
        + (f", depends_on: [t{some.randrange(n)}]}}\n" if n else "}\n")
        for n in range(tasks)
    )
    return HEAD + "".join(lines)


def _time_requests(work: Callable[[str], None], text: str) -> float:
    begun = time.perf_counter()
    work(text)
    return time.perf_counter() - begun


def _load_alone(text: str) -> None:
    yaml.load(text, yaml.CSafeLoader)


def _plan(text: str) -> None:
    findings = Findings("flow.yaml")
    plan = make_plan(load(text, findings), Site(), findings)
    assert len(plan.entries) == TASKS, plan.entries


if __name__ == "__main__":
    main()

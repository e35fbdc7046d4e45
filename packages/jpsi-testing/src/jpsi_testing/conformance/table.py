"""The table after conformance tests: what was exercised of each executor or launcher, what not and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath

import attrs

_FOLDER = ("jpsi_testing", "conformance")
# The letters of a row that its reasons begin with.
_GROUP_WIDTH = 16


@attrs.frozen(slots=True)
class Outcome:
    """The outcome of one conformance test."""

    #: The class that inherits the test.
    suite: str
    #: The group of tests: the module that has it.
    group: str
    #: `passed`, `failed` or `skipped`.
    word: str
    #: Why it was skipped.
    reason: str = ""


def read_outcomes(stats: Mapping[str, Iterable[object]]) -> Iterator[Outcome]:
    """Yield the outcomes of conformance tests among the reports of pytest, by the words of its summary."""
    for word in ("passed", "failed", "error", "skipped"):
        for report in stats.get(word, ()):
            location = getattr(report, "location", None)
            place = PurePath(location[0]) if location else PurePath()
            *classes, _ = getattr(report, "nodeid", "").split("::")
            if place.parts[-3:-1] == _FOLDER and len(classes) > 1:
                suite = classes[-1]
                reason = getattr(report, "longrepr", None)
                text = reason[2].removeprefix("Skipped: ") if isinstance(reason, tuple) else ""
                yield Outcome(suite, place.stem, "failed" if word == "error" else word, text)


def format_table(outcomes: Iterable[Outcome]) -> list[str]:
    r"""Return the lines of the table.

    >>> passed, skipped = (
    ...     Outcome("TestToy", "runs", "passed"),
    ...     Outcome("TestToy", "nodes", "skipped", "it has one node"),
    ... )
    >>> print(*format_table([passed, passed, skipped]), sep="\n")
    TestToy: 2 passed, 1 not exercised
      nodes             1 not exercised: it has one node
      runs              2 passed
    """
    suites: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        suites[outcome.suite].append(outcome)
    lines = []
    for suite, members in sorted(suites.items()):
        groups: defaultdict[str, list[Outcome]] = defaultdict(list)
        for outcome in members:
            groups[outcome.group.replace("_", " ")].append(outcome)
        lines.append(f"{suite}: {_counts(members)}")
        for group, of_group in sorted(groups.items()):
            lines.append(f"  {group:{_GROUP_WIDTH}}  {_counts(of_group)}{_reasons(of_group)}")
    return lines


def _counts(outcomes: Iterable[Outcome]) -> str:
    counts = Counter(it.word for it in outcomes)
    words = {"passed": "passed", "failed": "failed", "skipped": "not exercised"}
    return ", ".join(f"{counts[word]} {name}" for word, name in words.items() if counts[word])


def _reasons(outcomes: Iterable[Outcome]) -> str:
    """Return why tests were skipped; each reason once, with the number of tests if there are several."""
    counts = Counter(it.reason for it in outcomes if it.word == "skipped")
    if len(counts) == 1:
        return f": {next(iter(counts))}"
    return "".join(f"\n{'':{_GROUP_WIDTH + 4}}{count}: {reason}" for reason, count in counts.most_common())

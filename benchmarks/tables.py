"""A table of what competitors were measured to do, for people and as JSON: pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import attrs

#: Who is measured, by the name of their column.
COMPETITORS = {"bare": "bare commands", "psij": "psij-python", "jpsi": "jpsi"}
_HUNDRED, _TEN = 100, 10


@attrs.frozen(slots=True, kw_only=True)
class Row:
    """One thing that was measured."""

    #: What, and in which unit.
    what: str
    #: What was found for each of the competitors; a text stands for several numbers.
    found: Mapping[str, float | str]
    #: What follows for jpsi, beside another figure of the same run.
    ratio: str = ""
    #: What that is to be.
    goal: str = ""


def markdown(rows: Sequence[Row]) -> str:
    """The rows as a table.

    >>> print(markdown([Row(what="a", found={"jpsi": 1500.0}, ratio="2.0 of bare", goal="3.0")]))
    | what | bare commands | psij-python | jpsi | ratio | to reach |
    |---|--:|--:|--:|---|---|
    | a |  |  | 1,500 | 2.0 of bare | 3.0 |
    """
    heads = ["what", *COMPETITORS.values(), "ratio", "to reach"]
    lines = [_line(heads), "|---|--:|--:|--:|---|---|"]
    for row in rows:
        cells = [_cell(row.found.get(name, "")) for name in COMPETITORS]
        lines.append(_line([row.what, *cells, row.ratio, row.goal]))
    return "\n".join(lines)


def as_json(machine: str, rows: Sequence[Row]) -> str:
    """The same for programs."""
    return json.dumps({"machine": machine, "rows": [attrs.asdict(row) for row in rows]}, indent=2)


def figure(value: float) -> str:
    """A number as it is read: with three digits that count.

    >>> figure(12345.6), figure(12.345), figure(1.2345), figure(0.00123456)
    ('12,346', '12.3', '1.23', '0.00123')
    """
    if value >= _HUNDRED:
        return f"{value:,.0f}"
    if value >= _TEN:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3g}"


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else figure(value)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"

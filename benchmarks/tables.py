"""Renders a table of measurements of competitors, for people and as JSON; all functions are pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import attrs

#: The competitors, with the titles of their columns.
COMPETITORS = {"bare": "bare commands", "psij": "psij-python", "jpsi": "jpsi"}
_HUNDRED, _TEN = 100, 10


@attrs.frozen(slots=True, kw_only=True)
class Row:
    """A measurement of all competitors."""

    #: The measurement and its unit.
    what: str
    #: The result of each competitor; a text stands for several numbers.
    found: Mapping[str, float | str]
    #: A ratio of jpsi's result to another one of the same run.
    ratio: str = ""
    #: The goal for that ratio or result.
    goal: str = ""


def markdown(rows: Sequence[Row]) -> str:
    """Render rows as a table.

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
    """Render rows as JSON."""
    return json.dumps({"machine": machine, "rows": [attrs.asdict(row) for row in rows]}, indent=2)


def figure(value: float) -> str:
    """Format a number with three significant digits.

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

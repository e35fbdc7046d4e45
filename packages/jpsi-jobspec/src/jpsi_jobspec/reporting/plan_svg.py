"""Draws plans as SVG: an entry stands right of its dependencies, and those of a group inside of it. Pure.

`jpsi workflow graph` writes it to a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

import attrs

from ..planning import Entry, Plan
from .plan_text import COLOURS

_WIDTH, _HEIGHT, _GAP, _EDGE = 170, 40, 16, 16
# Room for an arrow between columns, and for the name of a group above its entries.
_ARROW, _HEAD = 44, 44
_PLAIN, _GROUP = "#eeeeee", "#f8f8f8"
_LETTERS = 24
_FONT = 'font-family="sans-serif" font-size="12"'
_ARROWHEAD = (
    '<defs><marker id="end" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 z" fill="#666"/></marker></defs>'
)


def render_svg(plan: Plan, states: Mapping[str, str] | None = None) -> str:
    """Return a drawing of a plan.

    Args:
        plan: to draw.
        states: of entries, by their ids; a box has the colour of its state.
    """
    area = _lay_out(plan.entries)
    width, height = area.width + 2 * _EDGE, area.height + 2 * _EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" {_FONT}>',
        f"<title>{escape(plan.source)} on {escape(plan.target)}</title>",
        _ARROWHEAD,
        f'<path d="M0,0 h{width} v{height} h-{width} z" fill="#ffffff"/>',
        *_draw(area, _EDGE, _EDGE, states or {}),
    ]
    return "\n".join([*parts, "</svg>\n"])


@attrs.frozen(slots=True)
class _Box:
    """The box of an entry in its area, and the area inside of it."""

    entry: Entry
    left: int
    top: int
    width: int
    height: int
    inside: _Area | None


@attrs.frozen(slots=True)
class _Area:
    """The boxes of one list of entries."""

    boxes: tuple[_Box, ...]
    width: int
    height: int


def _lay_out(entries: Sequence[Entry]) -> _Area:
    """Return a layout: a column for each number of dependencies in a chain, and in it a row per entry."""
    columns: dict[str, int] = {}
    boxes: list[_Box] = []
    bottoms: dict[int, int] = {}
    widths: dict[int, int] = {}
    for entry in entries:
        column = max((columns[it.id] for it in entry.after if it.id in columns), default=-1) + 1
        columns[entry.id] = column
        inside = _lay_out(entry.inside) if entry.inside else None
        width = _WIDTH if inside is None else max(_WIDTH, inside.width + 2 * _EDGE)
        height = _HEIGHT if inside is None else inside.height + _HEAD + _EDGE
        boxes.append(_Box(entry, 0, bottoms.get(column, 0), width, height, inside))
        bottoms[column] = bottoms.get(column, 0) + height + _GAP
        widths[column] = max(widths.get(column, 0), width)
    lefts, right = {}, 0
    for column in sorted(widths):
        lefts[column] = right
        right += widths[column] + _ARROW
    placed = tuple(attrs.evolve(it, left=lefts[columns[it.entry.id]]) for it in boxes)
    return _Area(placed, right - _ARROW, max(bottoms.values(), default=_GAP) - _GAP)


def _draw(area: _Area, left: int, top: int, states: Mapping[str, str]) -> Iterator[str]:
    boxes_by_id = {it.entry.id: it for it in area.boxes}
    # behind the boxes, as some arrows pass behind others' boxes
    for box in area.boxes:
        for after in box.entry.after:
            yield _arrow(boxes_by_id[after.id], box, left, top, is_plain=after.when == "ok")
    for box in area.boxes:
        yield _rectangle(box, left, top, states.get(box.entry.id, ""))
        if box.inside is not None:
            yield from _draw(box.inside, left + box.left + _EDGE, top + box.top + _HEAD, states)


def _rectangle(box: _Box, left: int, top: int, state: str) -> str:
    entry, x, y = box.entry, left + box.left, top + box.top
    colour = COLOURS[state][1] if state in COLOURS else _PLAIN if box.inside is None else _GROUP
    name = entry.name if len(entry.name) <= _LETTERS else f"{entry.name[: _LETTERS - 3]}..."
    below = entry.label + (f", {state}" if state else "")
    radius = 2 if box.inside is None else 8
    return (
        f'<g><title>{escape(entry.id)}</title><rect x="{x}" y="{y}" width="{box.width}"'
        f' height="{box.height}" rx="{radius}" fill="{colour}" stroke="#666"/>'
        f'<text x="{x + 8}" y="{y + 17}">{escape(name)}</text>'
        f'<text x="{x + 8}" y="{y + 32}" fill="#555">{escape(below)}</text></g>'
    )


def _arrow(start: _Box, end: _Box, left: int, top: int, *, is_plain: bool) -> str:
    x1, y1 = left + start.left + start.width, top + start.top + min(start.height, _HEIGHT) // 2
    x2, y2 = left + end.left, top + end.top + min(end.height, _HEIGHT) // 2
    style = "" if is_plain else ' stroke-dasharray="4 3"'
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#666" marker-end="url(#end)"{style}/>'

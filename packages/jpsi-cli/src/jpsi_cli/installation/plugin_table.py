"""Formats the table of `jpsi plugins`: installed plugins, and whether each is chosen and works.

It only returns lines.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from .. import messages
from ..output import Paint, plain

if TYPE_CHECKING:
    from jpsi import Plugin

_HEADINGS = ("KIND", "NAME", "VERSION", "CHOSEN", "DISTRIBUTION", "ORIGIN", "WHY")
_GAP = "  "
_INDENT = " " * 4
# The usual origin, which needs no line of its own.
_USUAL_ORIGIN = "environment"
_YES, _NO, _BROKEN = "yes", "no", "broken"
_COLOURS = {("CHOSEN", _YES): "green", ("CHOSEN", _BROKEN): "red", **{(it, it): "bold" for it in _HEADINGS}}


def render_lines(plugins: Iterable[Plugin], width: int | None, paint: Paint = plain) -> Iterator[str]:
    """Yield the lines of the table, a heading first.

    Columns that do not fit the width stand below their row, with their headings. Without a width each row is
    one line. Nothing is ever cut.
    """
    rows = [_cells(plugin) for plugin in _without_aliases(plugins)]
    sizes = [max(map(len, column)) for column in zip(_HEADINGS, *rows, strict=True)]
    count = len(sizes) if width is None else _count_fitting(sizes, width)
    for row in (_HEADINGS, *rows):
        padded = [
            paint(cell, _COLOURS.get((heading, cell), "")) + " " * (size - len(cell))
            for heading, cell, size in zip(_HEADINGS[:count], row, sizes, strict=False)
        ]
        yield _GAP.join(padded).rstrip()
        if row is not _HEADINGS:
            yield from _wrap_cells(row, count, width or 0)


def _cells(plugin: Plugin) -> tuple[str, ...]:
    aliases = f" ({', '.join(plugin.aliases)})" if plugin.aliases else ""
    chosen = _NO if not plugin.chosen else _BROKEN if plugin.load_error else _YES
    why = "; ".join(filter(None, [plugin.why_not, plugin.load_error]))
    cells = (
        plugin.kind,
        f"{plugin.name}{aliases}",
        plugin.version,
        chosen,
        plugin.distribution,
        plugin.origin,
        " ".join(why.split()),
    )
    return tuple(messages.printable(cell).replace("\n", "\\n") for cell in cells)


def _without_aliases(plugins: Iterable[Plugin]) -> list[Plugin]:
    """Return each plugin once: it is listed under each of its names, which are its aliases."""
    first: dict[tuple[object, ...], Plugin] = {}
    for plugin in plugins:
        names = tuple(sorted({plugin.name, *plugin.aliases}))
        source = (plugin.kind, plugin.distribution, plugin.version, plugin.origin)
        # Messages about plugins that cannot be loaded differ in the name.
        outcome = (plugin.chosen, plugin.why_not, plugin.load_error is None)
        first.setdefault((names, source, outcome), plugin)
    return list(first.values())


def _count_fitting(sizes: Sequence[int], width: int) -> int:
    """Return how many of the columns fit beside each other."""
    needed = [sum(sizes[:count]) + len(_GAP) * (count - 1) for count in range(1, len(sizes) + 1)]
    return max(1, sum(it <= width for it in needed))


def _wrap_cells(row: Sequence[str], count: int, width: int) -> Iterator[str]:
    for heading, cell in zip(_HEADINGS[count:], row[count:], strict=True):
        if cell and cell != _USUAL_ORIGIN:
            yield from textwrap.wrap(
                f"{heading.lower()}: {cell}",
                max(width, 2 * len(_INDENT)),
                initial_indent=_INDENT,
                subsequent_indent=_INDENT * 2,
                # An unbroken path can be copied.
                break_long_words=False,
                break_on_hyphens=False,
            )

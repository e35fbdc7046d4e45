"""Implements `jpsi plugins`: shows the installed plugins, which of them jpsi uses, and whether they work."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

import jpsi

from .. import exit_codes, messages
from ..options import KINDS
from ..output import terminal

if TYPE_CHECKING:
    from jpsi import Plugin
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..output import Paint, plain

if TYPE_CHECKING:
    from jpsi import Plugin

_FAKE = "fake"
# The kinds of plugins that jpsi uses all; of other kinds it uses one for each name.
_USED_TOGETHER = {"override", "observer"}
# What `Plugin.distribution` is for a plugin file that belongs to no distribution.
_NO_DISTRIBUTION = "-"


def plugins(name: str | None, *, kind: str | None, as_json: bool, is_loading: bool) -> int:
    """Show the plugins, all or those of a name or a kind, and return the exit code."""
    with _redirect_plugin_output():
        installed = jpsi.plugins(load=kinds_to_load(name, kind) if is_loading else False)
    found = list_of_kind(installed, kind, has_kit=importlib.util.find_spec("jpsi_testing") is not None)
    selected = [it for it in found if name is None or it.name.lower() == name.lower()]
    if not selected:
        messages.error(_describe_missing(name, kind, found))
    if as_json:
        messages.show_json(list(map(attrs.asdict, selected)))
    elif selected:
        lines = render_lines(selected, terminal.width(), terminal.choose_paint())
        messages.show("".join(f"{line}\n" for line in lines))
    return exit_codes.UNUSABLE if unusable_names(selected) or (name is not None and not selected) else 0


def kinds_to_load(name: str | None, kind: str | None) -> Sequence[str]:
    """Return the kinds of plugins to load: the requested one, else all.

    No job needs the fakes of batch systems, so that they are not loaded unless they are requested.
    """
    if kind is not None:
        return [kind]
    return [it for it in KINDS if it != _FAKE or name is not None]


def list_of_kind(plugins: Sequence[Plugin], kind: str | None, *, has_kit: bool) -> list[Plugin]:
    """Return the plugins of a kind, or of all kinds.

    The fakes of batch systems need the test kit, an extra of jpsi-cli. Without it they are not listed, unless
    they are the kind, as they would look broken to users who need none.
    """
    return [it for it in plugins if it.kind == kind or (kind is None and (has_kit or it.kind != _FAKE))]


def unusable_names(plugins: Sequence[Plugin]) -> set[tuple[str, ...]]:
    """Return the kinds and names without a working plugin; also the source if jpsi uses all of a kind."""
    working = {_offered_name(it) for it in plugins if it.chosen and it.load_error is None}
    return {_offered_name(it) for it in plugins} - working


def _offered_name(plugin: Plugin) -> tuple[str, ...]:
    name = plugin.kind, plugin.name.lower()
    source = plugin.origin if plugin.distribution == _NO_DISTRIBUTION else plugin.distribution
    return (*name, source) if plugin.kind in _USED_TOGETHER else name


def _describe_missing(name: str | None, kind: str | None, found: Sequence[Plugin]) -> str:
    if name is None:
        return f"no {kind or 'plugin'} is installed"
    names = ", ".join(sorted({it.name for it in found})) or "none"
    return f"no {kind or 'plugin'} {name!r}; installed: {names}"


@contextlib.contextmanager
def _redirect_plugin_output() -> Iterator[None]:
    """Send what plugins print while they are loaded to standard error: programs may read the output."""
    saved_stdout = os.dup(messages.STDOUT)
    os.dup2(messages.STDERR, messages.STDOUT)
    try:
        yield
    finally:
        if sys.stdout is not None:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
        os.dup2(saved_stdout, messages.STDOUT)
        os.close(saved_stdout)


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

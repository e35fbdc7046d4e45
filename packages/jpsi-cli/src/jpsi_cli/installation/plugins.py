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
from . import plugin_table

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
        lines = plugin_table.render_lines(selected, terminal.width(), terminal.choose_paint())
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

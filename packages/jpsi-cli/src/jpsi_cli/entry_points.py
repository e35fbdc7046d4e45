"""Finds commands of other packages, such as `jpsi request`: entry points of the group `jpsi.commands`.

A package whose command cannot be loaded does not break `jpsi`: only that command reports the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

import click

from . import exit_codes, messages

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Each entry point has the name of its command, and leads to a command of click whose callback returns the
#: exit code.
GROUP = "jpsi.commands"


class CommandLine(click.Group):
    """The commands of `jpsi`, and below them those of other packages."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names; click calls this for the help."""
        return sorted({*super().list_commands(ctx), *_command_entry_points()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name; jpsi's own commands take precedence over those of other packages."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        entry_point = _command_entry_points().get(cmd_name)
        return None if entry_point is None else _load_command(entry_point)


def _command_entry_points() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415  slow to import, and rarely used

    return {it.name: it for it in entry_points(group=GROUP)}


def _load_command(entry_point: EntryPoint) -> click.Command:
    """Return the command; if it cannot be loaded, return one that reports why when it is called."""
    try:
        command = entry_point.load()
    except Exception as e:  # noqa: BLE001  whatever the package does wrong
        return _broken_command(entry_point, f"{type(e).__name__}: {e}")
    if not isinstance(command, click.Command):
        return _broken_command(entry_point, f"{entry_point.value} is no command")
    return command


def _broken_command(entry_point: EntryPoint, reason: str) -> click.Command:
    package = "a package" if entry_point.dist is None else entry_point.dist.name
    sentence = f"the command {entry_point.name} of {package} cannot be used: {reason}"

    def report(arguments: tuple[str, ...]) -> NoReturn:
        del arguments
        messages.error(sentence)
        raise click.exceptions.Exit(exit_codes.JPSI)

    return click.Command(
        entry_point.name,
        callback=report,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True},
        short_help=f"Cannot be used: {reason}",
    )

"""Finds commands of other packages, such as `jpsi request`: entry points of the group `jpsi.commands`.

A package whose command cannot be loaded does not break `jpsi`: only that command reports the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import click

from . import exit_codes, messages

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Each entry point has the name of its command, and leads to a command of click whose callback returns the
#: exit code.
GROUP = "jpsi.commands"
# The packages of this project that have commands.
_PACKAGES = {"request": "jpsi-records", "speak": "jpsi-speak", "workflow": "jpsi-jobspec"}


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
        if entry_point is None:
            return _missing_command(cmd_name) if cmd_name in _PACKAGES else None
        return _load_command(entry_point)


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
    return _failing_command(entry_point.name, lambda: sentence, short_help=f"Cannot be used: {reason}")


def _missing_command(name: str) -> click.Command:
    package = _PACKAGES[name]

    def describe() -> str:
        from jpsi.plugin import install_command  # noqa: PLC0415  other commands do not wait for the library

        return f"jpsi {name} needs the package {package}; try: {install_command(package)}"

    return _failing_command(name, describe, add_help_option=False)


def _failing_command(name: str, describe: Callable[[], str], **attributes: Any) -> click.Command:  # noqa: ANN401  click's own
    """Return a command that takes any arguments, and reports why it cannot be used."""

    def report(arguments: tuple[str, ...]) -> NoReturn:
        del arguments
        messages.error(describe())
        raise click.exceptions.Exit(exit_codes.JPSI)

    return click.Command(
        name,
        callback=report,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True},
        **attributes,
    )

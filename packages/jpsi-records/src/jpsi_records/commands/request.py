"""Defines the command group `jpsi request`, which jpsi-cli finds as an entry point of `jpsi.commands`.

It imports its commands, and so the database, only when one of them is used.
"""

from __future__ import annotations

import click

_HELP = """Ask for results; run only what is not there yet.

A request is a file in YAML or JSON that says which command to run, on which inputs. If an execution of
the same content is recorded, its result is used; else a job is run.
"""


class _RequestGroup(click.Group):
    """A group that imports its commands when one of them is used: `jpsi --help` needs none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names; click calls this for the help."""
        self._import_commands()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name."""
        self._import_commands()
        return super().get_command(ctx, cmd_name)

    def _import_commands(self) -> None:
        from . import cancellation, management, submission  # noqa: PLC0415  see the class

        del cancellation, management, submission
        from .command import COMMANDS  # noqa: PLC0415  see the class

        self.commands = COMMANDS


#: `jpsi request`
REQUEST = _RequestGroup(
    "request",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    short_help="Ask for results; run only what is not there yet.",
    help=_HELP,
)

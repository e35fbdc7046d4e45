"""Commands and options of click that all commands of `jpsi` share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from . import completion

#: Settings of every command.
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

_EXECUTOR_HELP = "The executor, or target of the configuration.  [default: the configured one, else local]"


def command(name: str, **attributes: Any) -> click.Command:  # noqa: ANN401  click's own
    """Return a command with the settings of every command."""
    return click.Command(name, context_settings=SETTINGS, **attributes)


class GroupedOption(click.Option):
    """An option that knows the heading to which it belongs."""

    def __init__(self, *declarations: str, group: str, **attributes: Any) -> None:  # noqa: ANN401  click's own
        super().__init__(list(declarations), **attributes)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help shows its options by group, in the order in which they were declared."""

    def __init__(self, name: str, *, usages: Sequence[str], **attributes: Any) -> None:  # noqa: ANN401  click's own
        super().__init__(name, **attributes)
        self._usages = usages

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the ways in which the command can be used, one a line; click calls this."""
        for index, usage in enumerate(self._usages):
            formatter.write_usage(ctx.command_path, usage, prefix="       " if index else "Usage: ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, the help option last; click calls this."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                groups.setdefault(getattr(parameter, "group", "Help"), []).append(record)
        for group, records in groups.items():
            with formatter.section(group):
                formatter.write_dl(records)


def executor_option(text: str = _EXECUTOR_HELP) -> click.Option:
    """Return the option that names an executor or a target."""
    return click.Option(["--executor", "-x"], metavar="NAME", help=text, shell_complete=completion.executors)


def missing_value(options: Mapping[str, object]) -> str | None:
    """Return a message about an option without a value, or that took the next `--` for one; else None.

    Values of other options are checked later.
    """
    for name, value in options.items():
        if value == "--" or (not value and value is not None and name in {"executor", "file", "many"}):
            return f"--{name.replace('_', '-')} needs a value"
    return None


def require_executor(executor: str | None) -> None:
    """Raise if the option that names an executor has no value."""
    problem = missing_value({"executor": executor})
    if problem is not None:
        raise click.UsageError(problem)

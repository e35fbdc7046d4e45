"""Options in groups, each under a heading of its own in the help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click


class GroupedOption(click.Option):
    """An option that knows the heading it belongs under."""

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

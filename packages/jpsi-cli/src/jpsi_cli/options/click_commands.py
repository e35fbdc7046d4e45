"""Makes the commands and options of click that all commands of `jpsi` share.

A command imports its module, and so the library, only when it is called: help and usage errors are fast.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import click

from . import completion

T = TypeVar("T")

#: Settings of every command.
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

_EXECUTOR_HELP = "The executor, or target of the configuration.  [default: the configured one, else local]"
# Options whose value may not be empty; the values of others are checked later.
_NEVER_EMPTY = {"executor", "file", "many"}


def command(  # noqa: PLR0913  what commands differ in
    name: str,
    calls: str | Callable[..., int],
    params: Iterable[click.Parameter] = (),
    *,
    check: Callable[..., str | None] | None = None,
    usages: Sequence[str] = (),
    ends_options: bool = False,
    kind: type[click.Command] = click.Command,
    **attributes: Any,  # noqa: ANN401  click's own
) -> click.Command:
    """Return a command.

    Args:
        name: what users type.
        calls: its function, or `module:function` in this package, which is imported when the command is
            called: help and usage errors do not wait for the library.
        params: its options and arguments.
        check: called with the arguments first; returns a mistake in them, which becomes a usage error.
        usages: the ways in which it can be used; if given, its help shows options by group.
        ends_options: True if options end at the first argument.
        kind: its class, unless `usages` are given.
        attributes: of the click command.
    """
    make = partial(GroupedCommand, usages=usages) if usages else kind
    settings = {**SETTINGS, "allow_interspersed_args": False} if ends_options else SETTINGS
    callback = _import_on_call(calls, check) if isinstance(calls, str) else calls
    return make(name, params=list(params), callback=callback, context_settings=settings, **attributes)


def _import_on_call(target: str, check: Callable[..., str | None] | None) -> Callable[..., int]:
    module, _, name = target.partition(":")

    def call(**arguments: Any) -> int:  # noqa: ANN401  what the parameters are
        problem = None if check is None else check(**arguments)
        if problem is not None:
            raise click.UsageError(problem)
        from ..error_boundary import run_reporting_errors  # noqa: PLC0415  imports the library

        function = getattr(importlib.import_module(f"jpsi_cli.{module}"), name)
        return run_reporting_errors(function, arguments)

    return call


def require_value(_: click.Context, parameter: click.Parameter, value: T) -> T:
    """Return the value of an option; raise UsageError if it is missing, or is the `--` that followed."""
    if value == "--" or (not value and value is not None and parameter.name in _NEVER_EMPTY):
        msg = f"--{str(parameter.name).replace('_', '-')} needs a value"
        raise click.UsageError(msg)
    return value


class GroupedOption(click.Option):
    """An option that knows the heading to which it belongs."""

    group: str


def grouped_option(group: str, names: str, metavar: str, text: str, **more: Any) -> GroupedOption:  # noqa: ANN401  click's own
    """Return an option with a value, for the heading `group` of the help; `names` are separated by spaces."""
    return _grouped(group, names, metavar=metavar, help=text, **more)


def grouped_flag(group: str, names: str, text: str) -> GroupedOption:
    """Return an option without a value, for the heading `group` of the help."""
    return _grouped(group, names, is_flag=True, help=text)


def _grouped(group: str, names: str, **attributes: Any) -> GroupedOption:  # noqa: ANN401  click's own
    found = GroupedOption(names.split(), callback=require_value, **attributes)
    found.group = group
    return found


def option(names: str, metavar: str, text: str, **more: Any) -> click.Option:  # noqa: ANN401  click's own
    """Return an option with a value; `names` are separated by spaces."""
    return click.Option(names.split(), metavar=metavar, help=text, **more)


def flag(names: str, text: str, *, is_negative: bool = False) -> click.Option:
    """Return an option without a value; a negative one, such as `--no-job`, sets its parameter to False."""
    value = {"flag_value": False, "default": True} if is_negative else {"is_flag": True}
    return click.Option(names.split(), help=text, **value)


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
    return option("--executor -x", "NAME", text, shell_complete=completion.executors, callback=require_value)


def json_option(text: str = "Write a JSON array with an object for each.") -> click.Option:
    """Return the option for JSON on standard output."""
    return flag("--json as_json", text)

"""Decides whether a command line goes on with the last run of a document, which stays as it began.

A document, a target, or an option that asks for something else than the run is refused, with what differs.
Options that the user does not type stay as the run has them; only the values of a run that is over must be
those that a new run would have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from jpsi import InvalidJobException, JobExecutor
from jpsi.plugin import line

from ..document import Findings, load, parameter_names, parameter_values
from ..planning import Mapped, make_plan
from ..run_store import Journal, RunRequest, read_request
from .arguments import Arguments
from .messages import print_errors, workflow_command
from .preparation import check_flags, known_subsystems, parse_pairs

_AGAIN = "--again begins a new run"


def check_ended(last: Journal | None, arguments: Arguments) -> None:
    """Raise if the last run has not ended: a document has one run at a time."""
    if last is not None and not last.is_over:
        msg = f"the last run of {arguments.file} has not ended; {_explain_choices(arguments)}"
        raise InvalidJobException(msg)


def check_same(last: Journal, text: str, arguments: Arguments) -> None:
    """Raise if the document, the target or an option asks for something else than the last run.

    Say which values the run has that the user has not typed.

    Args:
        last: the last run.
        text: the document as it is now.
        arguments: options of the user.

    Raises:
        InvalidJobException: something differs.
        WorkflowError: the document is not valid with these options.
    """
    choices = _AGAIN if last.is_over else _explain_choices(arguments)
    request = read_request(last.path)
    if request.text != text:
        how = explain_again(last) if last.is_over else choices
        raise InvalidJobException(f"{arguments.file} has changed since its last run began; {how}")
    _check_target(last, arguments, choices)
    typed = parse_pairs(arguments.parameters, "NAME=VALUE")
    _check_valid(request, typed, arguments)
    difference = next(_find_differences(request, typed, arguments, is_over=last.is_over), None)
    if difference is not None:
        raise InvalidJobException(f"the last run of {arguments.file} {difference}; {choices}")
    if kept := _kept_options(text, request.parameters, typed):
        print_errors([f"the last run of {arguments.file} began with {kept}, which it keeps"])


def explain_again(last: Journal) -> str:
    """Return the options that begin a new run after one that is over."""
    again = "--again begins a new one, in which all tasks run again"
    has_missed = not all(it.is_done for it in last.all_parts())
    return again + (", and --failed one without those that completed" if has_missed else "")


def repeat_options(last: Journal, text: str, arguments: Arguments) -> Arguments:
    """Return the options for a run that repeats what failed, with the target and the values of the last one.

    Raises:
        InvalidJobException: the user asks for another target or value, or the document has another value now.
    """
    _check_target(last, arguments, _AGAIN)
    request = read_request(last.path)
    typed = parse_pairs(arguments.parameters, "NAME=VALUE")
    declared = parameter_names(text)
    # the user who removes a parameter from the document gives up its value
    kept_values = {name: it for name, it in request.parameters.items() if name in declared}
    values = {**kept_values, **typed}
    has, wanted = parameter_values(request.text, request.parameters), parameter_values(text, values)
    difference = _describe_changed(has, {name: it for name, it in wanted.items() if name in has})
    if difference is not None:
        raise InvalidJobException(f"the last run of {arguments.file} {difference}; {_AGAIN}")
    if kept := _kept_options(text, values, typed):
        print_errors([f"--failed keeps {kept} of the last run of {arguments.file}"])
    parameters = tuple(f"{name}={value}" for name, value in values.items())
    return attrs.evolve(arguments, executor=last.plan.target, parameters=parameters)


def _check_target(last: Journal, arguments: Arguments, choices: str) -> None:
    if arguments.executor is not None and arguments.executor != last.plan.target:
        # a misspelt name is the first thing to mend
        JobExecutor(arguments.executor).close()
        raise InvalidJobException(f"the last run of {arguments.file} is on {last.plan.target}; {choices}")


def _check_valid(request: RunRequest, typed: Mapping[str, str], arguments: Arguments) -> None:
    """Raise if the document of a run is not valid with options such as `--strict` and `--missing fail`."""
    check_flags(arguments)
    # without --strict, unknown keys were accepted when the run began
    findings = Findings(arguments.file, arguments.is_strict, is_lenient=not arguments.is_strict)
    is_missing_error = request.site.is_missing_error or arguments.missing == "fail"
    site = attrs.evolve(request.site, is_missing_error=is_missing_error)
    make_plan(load(request.text, findings, {**request.parameters, **typed}), site, findings)


def _find_differences(
    request: RunRequest, typed: Mapping[str, str], arguments: Arguments, *, is_over: bool
) -> Iterator[str]:
    """Yield each difference between a run and what the user asks for, to follow the run in a sentence."""
    has = parameter_values(request.text, request.parameters)
    wanted = parameter_values(request.text, typed if is_over else {**request.parameters, **typed})
    if (changed := _describe_changed(has, wanted)) is not None:
        yield changed
    for name, option in parse_pairs(arguments.constraints, "SUBSYSTEM.FIELD=OPTION").items():
        if request.site.constraints.get(name) != Mapped(option=option):
            yield f"began without --constraint {_render_value(name, option)}"
    directory = arguments.subsystems
    if directory is not None and known_subsystems(directory) != request.site.subsystems:
        yield f"began with other subsystems than {line('--subsystems', directory)} has"


def _describe_changed(has: Mapping[str, str], wanted: Mapping[str, str]) -> str | None:
    """Return which wanted values a run does not have, to follow the run in a sentence; None if it has all."""
    changed = [name for name, value in wanted.items() if has[name] != value]
    old, new = (" and ".join(_render_value(name, it[name]) for name in changed) for it in (has, wanted))
    return f"has {old}, not {new}" if changed else None


def _render_value(name: str, value: str) -> str:
    return f"{name}={line(value)}"


def _kept_options(text: str, values: Mapping[str, str], typed: Mapping[str, str]) -> str:
    """Return the options of a run that the user has not typed, and that change a value of the document.

    Each is as the user typed it for the run.
    """
    has, wanted = (parameter_values(text, it) for it in (values, typed))
    changed = [name for name, value in has.items() if wanted.get(name) != value]
    return " ".join(f"--set {_render_value(name, values[name])}" for name in changed)


def _explain_choices(arguments: Arguments) -> str:
    return (
        f"`{workflow_command('wait', arguments.file)}` goes on with that one as it was,"
        f" and `{workflow_command('cancel', arguments.file)}` ends it, before --again begins a new one"
    )

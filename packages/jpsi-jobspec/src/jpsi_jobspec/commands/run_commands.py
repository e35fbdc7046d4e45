"""The commands that run documents: run, wait and cancel."""

from __future__ import annotations

from collections.abc import Collection

import click

from jpsi import InvalidJobException, JobExecutor, parse_duration

from ..run_store import Journal, create_run, latest_run, locked_runs
from ..running import EXIT_DONE, check_jobs
from .arguments import Arguments
from .foreground import Waiting, drive_run
from .messages import print_errors, print_warnings
from .preparation import parse_pairs, prepare_plan, read_text
from .selection import last_run, select_entries


def run(arguments: Arguments, *, is_new: bool, as_json: bool) -> int:
    """Run a document, or go on with its last run, and return the exit code."""
    text = read_text(arguments.file)
    # if two processes begin at the same time, one goes on with the run of the other
    with locked_runs(arguments.file):
        last = latest_run(arguments.file)
        if last is None or is_new:
            _check_ended(last, arguments)
            chosen = _begin_run(text, arguments)
        else:
            _check_same(last, text, arguments)
            chosen = last
            if last.is_over:
                print_errors(["this run is over; --again begins a new one, in which all tasks run again"])
    return drive_run(chosen, Waiting(as_json=as_json))


def _begin_run(text: str, arguments: Arguments) -> Journal:
    """Create a run of which every job can be submitted."""
    plan, findings, site = prepare_plan(arguments, is_to_run=True)
    print_warnings(findings.warnings)
    check_jobs(plan)
    return create_run(arguments.file, text, site, parse_pairs(arguments.parameters, "NAME=VALUE"))


def _check_ended(last: Journal | None, arguments: Arguments) -> None:
    """Raise if the last run has not ended: a document has one run at a time."""
    if last is not None and not last.is_over:
        msg = f"the last run of {arguments.file} has not ended; {_explain_choices(arguments)}"
        raise InvalidJobException(msg)


def _check_same(last: Journal, text: str, arguments: Arguments) -> None:
    """Raise if the document or the target has changed since the run began."""
    choices = "--again begins a new run" if last.is_over else _explain_choices(arguments)
    if last.path.joinpath("document.yaml").read_text(encoding="utf-8") != text:
        raise InvalidJobException(f"{arguments.file} has changed since its last run began; {choices}")
    if arguments.executor is not None and arguments.executor != last.plan.target:
        # a misspelt name is the first thing to mend
        JobExecutor(arguments.executor).close()
        raise InvalidJobException(f"the last run of {arguments.file} is on {last.plan.target}; {choices}")


def _explain_choices(arguments: Arguments) -> str:
    file = arguments.file
    return (
        f"`jpsi workflow wait {file}` goes on with that one as it was,"
        f" and `jpsi workflow cancel {file}` ends it, before --again begins a new one"
    )


def wait(arguments: Arguments, *, tasks: Collection[str], timeout: str | None, as_json: bool) -> int:
    """Wait for the end of the last run, or of some of its entries, and return the exit code."""
    try:
        limit = None if timeout is None else parse_duration(timeout)
    except ValueError as e:
        raise InvalidJobException(f"--timeout: {e}", e) from e
    last = last_run(arguments.file)
    entries = select_entries(tasks, last) or None
    return drive_run(last, Waiting(entries=entries, limit=limit, as_json=as_json))


def cancel(arguments: Arguments, *, tasks: Collection[str]) -> int:
    """Cancel the last run, or some of its entries, and return the exit code."""
    last = last_run(arguments.file)
    entries = select_entries(tasks, last)
    if all(it.state.final for it in (entries.parts(last) if entries else last.all_parts())):
        click.echo("it is over already", err=True)
        return EXIT_DONE
    if not entries:
        last.cancel()
        drive_run(last, Waiting(is_reporting=False))
        return EXIT_DONE
    ending = entries.cancel(last)
    for group in entries.inside.keys() - ending.inside.keys():
        print_errors([f"{group} has not begun; once it does, what was cancelled does not run in it"])
    if ending:
        expectation = f"it will cancel {', '.join(tasks)}"
        drive_run(last, Waiting(entries=ending, expectation=expectation, is_reporting=False))
        last.read_new_events()
        click.echo(f"cancelled: {', '.join(ending.cancelled(last)) or 'nothing, all had ended'}", err=True)
    return EXIT_DONE

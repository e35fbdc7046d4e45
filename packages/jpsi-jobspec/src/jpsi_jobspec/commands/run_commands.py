"""The commands that run documents: run, wait and cancel."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

import click

from jpsi import InvalidJobException, parse_duration

from ..run_store import Journal, create_run, latest_run, locked_runs
from ..running import EXIT_DONE, check_jobs
from .arguments import Arguments
from .foreground import Waiting, driven
from .messages import complain, fenced, warn
from .preparation import pairs, prepared, read
from .selection import last_run, named


def run(arguments: Arguments, *, is_new: bool, as_json: bool) -> int:
    """Run a document, or go on with its last run, and return the exit code."""

    def command() -> int:
        text = read(arguments.file)
        # if two processes begin at the same time, one goes on with the run of the other
        with locked_runs(arguments.file):
            last = latest_run(arguments.file)
            if last is None or is_new:
                _check_ended(last, arguments)
                chosen = _begun(text, arguments)
            else:
                _check_same(last, text, arguments)
                chosen = last
                if last.is_over:
                    complain(["this run is over; --again begins a new one"])
        return driven(chosen, Waiting(as_json=as_json))

    return fenced(command)


def _begun(text: str, arguments: Arguments) -> Journal:
    """Create a run of which every job can be submitted."""
    plan, findings, site = prepared(arguments, is_to_run=True)
    warn(findings.warnings)
    check_jobs(plan)
    return create_run(arguments.file, text, site, pairs(arguments.parameters, "NAME=VALUE"))


def _check_ended(last: Journal | None, arguments: Arguments) -> None:
    """Raise if the last run has not ended: a document has one run at a time."""
    if last is not None and not last.is_over:
        msg = f"the last run of {arguments.file} has not ended; {_ways(arguments)}"
        raise InvalidJobException(msg)


def _check_same(last: Journal, text: str, arguments: Arguments) -> None:
    """Raise if the document or the target has changed since the run began."""
    ways = "--again begins a new run" if last.is_over else _ways(arguments)
    if last.path.joinpath("document.yaml").read_text(encoding="utf-8") != text:
        msg = f"{arguments.file} is not what it was when its last run began; {ways}"
        raise InvalidJobException(msg)
    if arguments.executor not in {None, last.plan.target}:
        msg = f"the last run of {arguments.file} is on {last.plan.target}; {ways}"
        raise InvalidJobException(msg)


def _ways(arguments: Arguments) -> str:
    file = arguments.file
    return (
        f"`jpsi workflow wait {file}` goes on with that one as it was,"
        f" and `jpsi workflow cancel {file}` ends it, before --again begins a new one"
    )


def wait(arguments: Arguments, *, tasks: Collection[str], timeout: str | None, as_json: bool) -> int:
    """Wait for the end of the last run, or of some of its entries, and return the exit code."""

    def command() -> int:
        limit = None if timeout is None else _duration(timeout)
        last = last_run(arguments.file)
        entries = named(tasks, last) or None
        return driven(last, Waiting(entries=entries, limit=limit, as_json=as_json))

    return fenced(command)


def _duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as e:
        msg = f"--timeout: {e}"
        raise InvalidJobException(msg, e) from e


def cancel(arguments: Arguments, *, tasks: Collection[str]) -> int:
    """Cancel the last run, or some of its entries, and return the exit code."""

    def command() -> int:
        last = last_run(arguments.file)
        entries = named(tasks, last)
        if all(it.state.final for it in (entries.parts(last) if entries else last.every_part())):
            click.echo("it is over already", err=True)
            return EXIT_DONE
        if not entries:
            last.cancel()
            driven(last, Waiting())
            return EXIT_DONE
        soon = entries.cancel(last)
        for group in entries.inside.keys() - soon.inside.keys():
            complain([f"{group} has not begun; once it does, that does not run in it"])
        if soon:
            driven(last, Waiting(entries=soon, asked=f"it is asked to cancel {', '.join(tasks)}"))
            last.catch_up()
            click.echo(f"cancelled: {', '.join(soon.cancelled(last)) or 'nothing, all had ended'}", err=True)
        return EXIT_DONE

    return fenced(command)

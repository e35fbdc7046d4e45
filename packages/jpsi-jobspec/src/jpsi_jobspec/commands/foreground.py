"""Drives a run in the foreground for a user who waits for it, with messages and Ctrl-C.

`jpsi workflow run`, `wait` and `cancel` use it.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from types import FrameType
from typing import NoReturn

import attrs
import click

from jpsi import JobExecutor, JobState

from ..groups import end_orphans
from ..planning import Entry
from ..reporting import explain_end, explain_failures, run_records
from ..run_store import Journal, Part, read_run
from ..running import EXIT_CANCELLED, EXIT_TIMEOUT, Driver, combined_state, exit_code_of
from .messages import print_errors, workflow_command
from .selection import Named

# The interval of checks on a run that another process drives.
_POLL_SECONDS = 0.5
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _WaitInterrupted(BaseException):
    """The end of the waiting, by a signal or a timeout."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


@attrs.frozen(slots=True, kw_only=True)
class Waiting:
    """Options of a command that waits for a run."""

    #: The document, as the user typed it.
    file: str
    #: Wait for these entries; None is all.
    entries: Named | None = None
    #: The longest time to wait.
    limit: timedelta | None = None
    as_json: bool = False
    #: What the command expects of another process that drives the run meanwhile.
    expectation: str = "waiting for its end"
    #: True to report failures of which this process has not been told while it drove the run.
    is_reporting: bool = True


def drive_run(run: Journal, options: Waiting) -> int:
    """Drive a run to its end, once no other process does, and return the exit code."""
    try:
        with _interruptible(options), run.lock() as is_locked:
            if not is_locked:
                print_errors(
                    [f"another process drives the last run of {options.file}; {options.expectation}"]
                )
                found = _follow(run, options)
            else:
                found = _drive(read_run(run.path), options)
    except _WaitInterrupted as e:
        print_errors([str(e)])
        return e.code
    if options.as_json:
        click.echo(json.dumps(list(run_records(found)), indent=2))
    return exit_code_of(found.all_parts() if options.entries is None else options.entries.parts(found))


def _follow(run: Journal, options: Waiting) -> Journal:
    """Wait for a run that another process drives; drive the rest if that process ends before."""
    while options.entries is not None:
        run.read_new_events()
        if options.entries.have_ended(run):
            _report_failures(run, options)
            return run
        with run.lock() as is_locked:
            if is_locked:
                return _drive(read_run(run.path), options)
        time.sleep(_POLL_SECONDS)
    with run.lock(is_waiting=True):
        return _drive(read_run(run.path), options)


def _drive(journal: Journal, options: Waiting) -> Journal:
    is_terminal = sys.stderr.isatty()

    def report_state(entry: Entry, state: JobState) -> None:
        why = explain_end(journal, entry) if state.final else ""
        if is_terminal or why:
            click.echo(f"{entry.id}: {state.value}" + (f": {why}" if why else ""), err=True)

    def report(sentence: str) -> None:
        print_errors([sentence])

    def show(data: bytes, stream: str) -> None:
        file = sys.stdout if stream == "stdout" and not options.as_json else sys.stderr
        click.echo(data, file=file, nl=False)

    executor = JobExecutor(journal.plan.target)
    try:
        until = None if options.entries is None else functools.partial(options.entries.have_ended, journal)
        if journal.is_over or (until is not None and until()):
            _report_failures(journal, options)
        if not journal.is_over:
            Driver(journal, executor, report_state, report=report, show=show).run(until)
        end_orphans(journal, executor)
        if journal.is_over:
            # no job of the run is left that could read staged files
            shutil.rmtree(journal.staging, ignore_errors=True)
    finally:
        journal.close()
    return journal


def _report_failures(run: Journal, options: Waiting) -> None:
    """Report what failed in a run, or among the entries of interest, that this process has not driven."""
    if not options.is_reporting:
        return
    entries: dict[str, list[Part]] = {}
    for part in run.all_parts() if options.entries is None else options.entries.parts(run):
        entries.setdefault(part.entry.id, []).append(part)
    for name, parts in entries.items():
        why = explain_end(run, parts[0].entry) if name in run.parts else explain_failures(parts)
        if why:
            click.echo(f"{name}: {combined_state([it.state for it in parts]).value}: {why}", err=True)


@contextlib.contextmanager
def _interruptible(options: Waiting) -> Iterator[None]:
    """Within the block, raise _WaitInterrupted on signals and at a time limit. On the main thread."""
    limit, command = options.limit, workflow_command("wait", options.file)

    def interrupt(number: int, _: FrameType | None) -> NoReturn:
        if number == signal.SIGALRM:
            sentence = f"--timeout is over; jobs run on, and `{command}` continues the run"
            raise _WaitInterrupted(sentence, EXIT_TIMEOUT)
        sentence = f"interrupted; jobs run on, and `{command}` continues the run"
        raise _WaitInterrupted(sentence, EXIT_CANCELLED)

    numbers = [it for it in _SIGNALS if signal.getsignal(it) is not signal.SIG_IGN]
    if limit is not None:
        numbers.append(signal.SIGALRM)
    handlers = {number: signal.signal(number, interrupt) for number in numbers}
    if limit is not None:
        signal.setitimer(signal.ITIMER_REAL, max(limit.total_seconds(), 1e-6))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)

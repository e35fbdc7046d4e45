"""Drives a run in the foreground for a user who waits for it, with messages and Ctrl-C."""

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
from ..reporting import ended_badly, run_records, why_not_completed
from ..run_store import Journal, read_run
from ..running import EXIT_CANCELLED, EXIT_TIMEOUT, Driver, exit_code_of
from .messages import complain
from .selection import Named

# The interval of checks on a run that another process drives.
_LOOK_SECONDS = 0.5
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Left(BaseException):
    """The end of the waiting, by a signal or a timeout."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


@attrs.frozen(slots=True, kw_only=True)
class Waiting:
    """Options of a command that waits for a run."""

    #: Wait for these entries; None is all.
    entries: Named | None = None
    #: The longest time to wait.
    limit: timedelta | None = None
    as_json: bool = False
    #: What the command expects of another process that drives the run meanwhile.
    asked: str = "waiting for its end"


def driven(run: Journal, how: Waiting) -> int:
    """Drive a run to its end, once no other process does, and return the exit code."""
    try:
        with _leaving(how.limit), run.held() as is_held:
            if not is_held:
                complain([f"another process drives this run; {how.asked}"])
                found = _followed(run, how)
            else:
                found = _drive(read_run(run.path), how)
    except _Left as e:
        complain([str(e)])
        return e.code
    if how.as_json:
        click.echo(json.dumps(list(run_records(found)), indent=2))
    return exit_code_of(found.every_part() if how.entries is None else how.entries.parts(found))


def _followed(run: Journal, how: Waiting) -> Journal:
    """Wait for a run that another process drives; drive the rest if that process ends before."""
    while how.entries is not None:
        run.catch_up()
        if how.entries.have_ended(run):
            return run
        with run.held() as is_held:
            if is_held:
                return _drive(read_run(run.path), how)
        time.sleep(_LOOK_SECONDS)
    with run.held(is_waiting=True):
        return _drive(read_run(run.path), how)


def _drive(journal: Journal, how: Waiting) -> Journal:
    is_seen = sys.stderr.isatty()

    def told(entry: Entry, state: JobState) -> None:
        parts = journal.parts[entry.id]
        worst = next(filter(ended_badly, parts), None) if state.final else None
        if is_seen or worst is not None:
            click.echo(
                f"{entry.id}: {state.value}" + (f": {why_not_completed(worst)}" if worst else ""), err=True
            )

    def remark(sentence: str) -> None:
        complain([sentence])

    def show(data: bytes, stream: str) -> None:
        file = sys.stdout if stream == "stdout" and not how.as_json else sys.stderr
        click.echo(data, file=file, nl=False)

    executor = JobExecutor(journal.plan.target)
    try:
        if not journal.is_over:
            until = None if how.entries is None else functools.partial(how.entries.have_ended, journal)
            Driver(journal, executor, told, remark=remark, show=show).run(until)
        end_orphans(journal, executor)
        if journal.is_over:
            # no job of the run is left that could read staged files
            shutil.rmtree(journal.staging, ignore_errors=True)
    finally:
        journal.close()
    return journal


@contextlib.contextmanager
def _leaving(limit: timedelta | None) -> Iterator[None]:
    """Within the block, raise _Left on signals and at the end of a time limit. On the main thread."""

    def interrupted(number: int, _: FrameType | None) -> NoReturn:
        if number == signal.SIGALRM:
            sentence = "not all has ended in that time; jobs run on, and `jpsi workflow wait` goes on"
            raise _Left(sentence, EXIT_TIMEOUT)
        sentence = "left; jobs run on, and `jpsi workflow wait` goes on with the rest"
        raise _Left(sentence, EXIT_CANCELLED)

    numbers = [it for it in _SIGNALS if signal.getsignal(it) is not signal.SIG_IGN]
    if limit is not None:
        numbers.append(signal.SIGALRM)
    before = {number: signal.signal(number, interrupted) for number in numbers}
    if limit is not None:
        signal.setitimer(signal.ITIMER_REAL, max(limit.total_seconds(), 1e-6))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)

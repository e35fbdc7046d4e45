"""The commands that look at runs: status and logs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping

import click

from jpsi import InvalidJobException, JobState, Reason, spooled

from . import journal as journals
from . import runs
from .drawing import COLOURS
from .given import Given
from .journal import Journal, Part
from .leftovers import judge
from .planned import Entry, Kind
from .progress import joined
from .telling import DONE, complain, fenced

_WIDEST = 30


def last_run(file: str) -> Journal:
    """The last run of a document.

    Raises:
        InvalidJobException: there is none.
    """
    last = runs.latest(file)
    if last is None:
        msg = f"{file} was never run here; `jpsi workflow run` does that"
        raise InvalidJobException(msg)
    return last


def status(given: Given, *, as_json: bool) -> int:
    """Show how far the last run has come, and return the exit code."""

    def command() -> int:
        last = last_run(given.file)
        is_left = not last.is_over and not last.is_driven
        _look(last)
        if as_json:
            click.echo(json.dumps(list(records(last)), indent=2))
            return DONE
        for journal in (last, *insides(last)):
            for entry in journal.plan.entries:
                click.echo(_line(entry, journal.parts[entry.id], is_coloured=sys.stdout.isatty()))
        if is_left:
            complain([f"nobody drives this run; `jpsi workflow wait {given.file}` goes on with it"])
        return DONE

    return fenced(command)


def logs(given: Given, *, task: str, is_stderr: bool) -> int:
    """Show what a task has written, and return the exit code."""

    def command() -> int:
        last = last_run(given.file)
        shown = (last, *insides(last))
        chosen = _named(task, _by_task(last, shown))
        jobs = {it.id: it for it in spooled.jobs(also=[it.work for it in shown])}
        for name, part in chosen.items():
            job = jobs.get(part.job_id or "")
            if len(chosen) > 1:
                click.echo(f"==> {name} <==")
            if job is None:
                complain([f"{name} has written nothing: it is {part.state.value}"])
                continue
            output, offset = job.output("stderr" if is_stderr else "stdout"), 0
            while (chunk := output.read(offset)) is not None and chunk.data:
                click.echo(chunk.data, nl=False)
                offset = chunk.end
        return DONE

    return fenced(command)


def insides(last: Journal) -> Iterator[Journal]:
    """What is on disk of the inside of each group."""
    for entry in last.plan.entries:
        if entry.kind is Kind.ALLOCATION:
            journal = journals.inner(last.path, entry)
            _look(journal)
            if last.have_ended([entry.id]):
                judge(journal)
            yield journal


def _by_task(last: Journal, shown: Iterable[Journal]) -> dict[str, list[Part]]:
    """Return the replicas of every entry by its name; those that have an allocation stand for it, too."""
    found = {name: it for run in shown for name, it in run.parts.items()}
    inside = {it.id: it.replicated for it in last.plan.entries}
    return found | {name: found[it.id] for name, it in inside.items() if it is not None}


def _named(task: str, parts: Mapping[str, list[Part]]) -> dict[str, Part]:
    """The replicas that a word stands for, by their names."""
    if task in parts and len(parts[task]) == 1:
        return {task: parts[task][0]}
    if task in parts:
        return {f"{task}.{number}": it for number, it in enumerate(parts[task], 1)}
    name, _, number = task.rpartition(".")
    if name in parts and number.isdecimal() and 1 <= int(number) <= len(parts[name]):
        return {task: parts[name][int(number) - 1]}
    msg = f"there is no task {task!r}; there are: {', '.join(parts)}"
    raise InvalidJobException(msg)


def _look(last: Journal) -> None:
    """See on disk how far the jobs have come that have not ended as far as the journal says."""
    open_parts = {
        part.job_id: part
        for parts in last.parts.values()
        for part in parts
        if part.job_id and not part.state.final
    }
    for job in spooled.jobs(also=[last.work]) if open_parts else ():
        part = open_parts.get(job.id)
        if part is not None:
            part.state, part.exit_code = job.status.state, job.status.exit_code
            part.reason = None if job.status.reason is None else job.status.reason.value
            part.message = job.status.message


def records(run: Journal) -> Iterator[dict[str, object]]:
    """What programs are told of a run, a mapping for each replica; those inside of groups come last."""
    for journal in (run, *insides(run)):
        for entry in journal.plan.entries:
            for number, part in enumerate(journal.parts[entry.id], 1):
                yield {
                    "id": entry.id,
                    "replica": number,
                    "state": part.state.value,
                    "job": part.job_id,
                    "exit_code": part.exit_code,
                    "reason": part.reason,
                    "message": part.message,
                }


def ended_badly(part: Part) -> bool:
    """Whether a replica has ended, and has not completed."""
    return part.state.final and part.state is not JobState.COMPLETED


def why(part: Part) -> str:
    """Why a replica has not completed."""
    if part.reason == Reason.EXIT_CODE.value:
        return f"exit code {part.exit_code}"
    return " ".join(": ".join(it for it in (part.reason, part.message) if it).split())


def _line(entry: Entry, parts: list[Part], *, is_coloured: bool) -> str:
    state = joined([it.state for it in parts]).value
    shown = (
        click.style(f"{state:<9}", fg=COLOURS.get(state, ("white", ""))[0]) if is_coloured else f"{state:<9}"
    )
    counts = ""
    if len(parts) > 1:
        done = sum(it.state.final for it in parts)
        counts = f" {done} of {len(parts)} have ended"
    worst = next(filter(ended_badly, parts), None)
    told = "" if worst is None else f"  {why(worst)}"
    return f"{shown}  {entry.id:<{_WIDEST}}{counts}{told}".rstrip()

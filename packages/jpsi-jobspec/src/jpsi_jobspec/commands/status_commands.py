"""The commands that show runs: status and logs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence

import click

from jpsi import InvalidJobException, Output
from jpsi_engine import job_store

from ..planning import Kind
from ..reporting import group_journals, is_from_before, refresh_states, render_entry, run_records
from ..run_store import Journal, Part
from ..running import EXIT_DONE
from .arguments import Arguments
from .messages import print_errors, workflow_command
from .selection import last_run


def status(arguments: Arguments, *, as_json: bool) -> int:
    """Show the state of the last run, and return the exit code."""
    last = last_run(arguments.file)
    is_unattended = not last.is_over and not last.is_driven
    refresh_states(last)
    if as_json:
        click.echo(json.dumps(list(run_records(last)), indent=2))
        return EXIT_DONE
    for journal in (last, *group_journals(last)):
        for parts in journal.parts.values():
            click.echo(render_entry(parts, is_coloured=sys.stdout.isatty()))
    if is_unattended:
        command = workflow_command("wait", arguments.file)
        print_errors([f"no process drives the last run of {arguments.file}; `{command}` continues it"])
    return EXIT_DONE


def logs(arguments: Arguments, *, tasks: Sequence[str], is_stderr: bool) -> int:
    """Show the output of tasks, without names that of all, and return the exit code."""
    last = last_run(arguments.file)
    journals = (last, *group_journals(last))
    parts = _replicas_by_name(last, journals)
    inside = {it.id for entry in last.plan.entries if (it := entry.replicated) is not None}
    jobs = {it.id: it for it in job_store.jobs(also=[it.work for it in journals])}
    # the replicas of a task are among them by the name of the task
    names = tasks or [it for it in parts if it not in inside and _is_begun_task(parts[it], jobs)]
    if not names:
        print_errors([f"no task of {arguments.file} has begun"])
    chosen = {name: part for it in names for name, part in _select_replicas(it, parts).items()}
    for name, part in chosen.items():
        job = jobs.get(part.job_id or "")
        if len(chosen) > 1:
            click.echo(f"==> {name} <==")
        if job is None or not _has_begun(job):
            print_errors([f"{name} has written nothing: it is {part.state.value}"])
        elif is_from_before([part]):
            _print_earlier_log(name, job, is_stderr=is_stderr)
        else:
            _print_log(name, job, is_stderr=is_stderr)
    return EXIT_DONE


def _print_earlier_log(name: str, job: job_store.StoredJob, *, is_stderr: bool) -> None:
    """Print the output of a task that completed in the run before, behind a message that says so."""
    output = job.output("stderr" if is_stderr else "stdout")
    first = output.read(0)
    nothing = f"nothing to standard {'error' if is_stderr else 'output'}"
    what = nothing if first is None or not first.data else "this"
    print_errors([f"{name} completed in the run before, and wrote {what} there"])
    _print_output(output)


def _print_log(name: str, job: job_store.StoredJob, *, is_stderr: bool) -> None:
    if not _print_output(job.output("stderr" if is_stderr else "stdout")):
        which = "error" if is_stderr else "output; --stderr shows standard error"
        print_errors([f"{name} has written nothing to standard {which}"])


def _print_output(output: Output) -> bool:
    """Print all of a job's output; return True if there is any."""
    offset = 0
    while (chunk := output.read(offset)) is not None and chunk.data:
        click.echo(chunk.data, nl=False)
        offset = chunk.end
    return offset > 0


def _is_begun_task(parts: Iterable[Part], jobs: Mapping[str, job_store.StoredJob]) -> bool:
    """Return True if an entry is no group, and has a job that has begun, or that is not recorded."""
    ids = [it.job_id for it in parts if it.entry.kind is not Kind.ALLOCATION and it.job_id is not None]
    return any(it not in jobs or _has_begun(jobs[it]) for it in ids)


def _has_begun(job: job_store.StoredJob) -> bool:
    """Return True if a job has begun; its output shows that, too, if it could not record its beginning."""
    if job.started is not None:
        return True
    first = job.output().read(0)
    return first is not None and bool(first.data)


def _replicas_by_name(last: Journal, journals: Iterable[Journal]) -> dict[str, list[Part]]:
    """Return the replicas of every entry by its name; an allocation of replicas has these by its own name."""
    found = {name: it for run in journals for name, it in run.parts.items()}
    inside = {it.id: it.replicated for it in last.plan.entries}
    return found | {name: found[it.id] for name, it in inside.items() if it is not None}


def _select_replicas(task: str, parts: Mapping[str, list[Part]]) -> dict[str, Part]:
    """Return the replicas that a word stands for, by their names."""
    if task in parts and len(parts[task]) == 1:
        return {task: parts[task][0]}
    if task in parts:
        return {f"{task}.{number}": it for number, it in enumerate(parts[task], 1)}
    name, _, number = task.rpartition(".")
    if name in parts and number.isdecimal() and 1 <= int(number) <= len(parts[name]):
        return {task: parts[name][int(number) - 1]}
    raise InvalidJobException(f"there is no task {task!r}; there are: {', '.join(parts)}")

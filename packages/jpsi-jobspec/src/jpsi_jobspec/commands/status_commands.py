"""The commands that show runs: status and logs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping

import click

from jpsi import InvalidJobException
from jpsi_engine import job_store

from ..reporting import group_journals, refresh_states, render_entry, run_records
from ..run_store import Journal, Part
from ..running import EXIT_DONE
from .arguments import Arguments
from .messages import print_errors
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
        print_errors([f"no process drives this run; `jpsi workflow wait {arguments.file}` continues it"])
    return EXIT_DONE


def logs(arguments: Arguments, *, task: str, is_stderr: bool) -> int:
    """Show the output of a task, and return the exit code."""
    last = last_run(arguments.file)
    journals = (last, *group_journals(last))
    chosen = _select_replicas(task, _replicas_by_name(last, journals))
    jobs = {it.id: it for it in job_store.jobs(also=[it.work for it in journals])}
    for name, part in chosen.items():
        job = jobs.get(part.job_id or "")
        if len(chosen) > 1:
            click.echo(f"==> {name} <==")
        if job is None:
            print_errors([f"{name} has written nothing: it is {part.state.value}"])
            continue
        output, offset = job.output("stderr" if is_stderr else "stdout"), 0
        while (chunk := output.read(offset)) is not None and chunk.data:
            click.echo(chunk.data, nl=False)
            offset = chunk.end
        if offset == 0 and not is_stderr:
            print_errors([f"{name} has written nothing to standard output; --stderr shows standard error"])
    return EXIT_DONE


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
    msg = f"there is no task {task!r}; there are: {', '.join(parts)}"
    raise InvalidJobException(msg)

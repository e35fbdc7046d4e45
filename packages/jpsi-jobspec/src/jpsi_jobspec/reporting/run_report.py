"""Reports about runs: the state of each entry, for people and for programs.

`jpsi workflow status`, `run` and `wait` print them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import click

from jpsi import JobState, Reason
from jpsi_engine import job_store

from ..groups import mark_lost
from ..planning import Entry, Kind
from ..run_store import COMPLETED_BEFORE, NOT_SUBMITTED, Journal, Part, inner_journal
from ..running import combined_state
from .plan_text import COLOURS

_NAME_WIDTH = 30
# The most replicas that a message names, and how much of an id it shows.
_MAX_REPLICAS = 5
_SHORT = 8


def run_records(run: Journal) -> Iterator[dict[str, object]]:
    """Yield a mapping for each replica of a run, for programs; those inside of groups come last."""
    for journal in (run, *group_journals(run)):
        for part in journal.all_parts():
            yield {
                "id": part.entry.id,
                "replica": part.replica,
                "state": part.state.value,
                "job": part.job_id,
                "exit_code": part.exit_code,
                "reason": part.reason,
                "message": part.message,
            }


def render_entry(parts: list[Part], *, is_coloured: bool) -> str:
    """Return the state of an entry, by those of its replicas, as a line for a terminal."""
    state = combined_state([it.state for it in parts]).value
    state_text = (
        click.style(f"{state:<9}", fg=COLOURS.get(state, ("white", ""))[0]) if is_coloured else f"{state:<9}"
    )
    counts = ""
    if len(parts) > 1:
        ended = sum(it.state.final for it in parts)
        counts = f"  {ended} of {len(parts)} have ended"
    explanation = explain_failures(parts) or ("completed in the run before" if is_from_before(parts) else "")
    explanation = f"  {explanation}" if explanation else ""
    return f"{state_text}  {parts[0].entry.id:<{_NAME_WIDTH}}{counts}{explanation}".rstrip()


def is_from_before(parts: Iterable[Part]) -> bool:
    """Return True if replicas of an entry completed in the run before, and did not run again."""
    return any(it.reason == COMPLETED_BEFORE for it in parts)


def group_journals(last: Journal) -> Iterator[Journal]:
    """Yield the journal of each group run, with the states that are on disk."""
    for entry in last.plan.entries:
        if entry.kind is Kind.ALLOCATION:
            journal = inner_journal(last.path, entry)
            refresh_states(journal)
            if last.have_ended([entry.id]):
                mark_lost(journal)
            yield journal


def refresh_states(last: Journal) -> None:
    """Update the states of jobs that have not ended, in this copy of the journal, from the job store."""
    open_parts = {it.job_id: it for it in last.all_parts() if it.is_live}
    for job in job_store.jobs(also=[last.work]) if open_parts else ():
        part = open_parts.get(job.id)
        if part is not None:
            part.state, part.exit_code = job.status.state, job.status.exit_code
            part.reason = None if job.status.reason is None else job.status.reason.value
            part.message = job.status.message


def is_unsuccessful(part: Part) -> bool:
    """Return True if a replica has ended, and has not completed."""
    return part.state.final and part.state is not JobState.COMPLETED


def explain_end(run: Journal, entry: Entry) -> str:
    """Return why an entry of a run has not completed, with its replicas or tasks that failed; or nothing."""
    (*_, last) = parts = run.parts[entry.id]
    own = explain_failures(parts)
    if entry.kind is not Kind.ALLOCATION or last.state is not JobState.FAILED:
        return own
    inside = inner_journal(run.path, entry).parts.values()
    failed = [explain_failures([it for it in parts if it.state is JobState.FAILED]) for parts in inside]
    named = [
        why if it[0].entry.task else f"{it[0].entry.name}: {why}"
        for it, why in zip(inside, failed, strict=True)
        if why
    ]
    return "; ".join(named if named and last.reason == Reason.EXIT_CODE.value else [own, *named])


def explain_failures(parts: Iterable[Part]) -> str:
    """Return why replicas of an entry have not completed, with their numbers or the job; or nothing."""
    by_reason: dict[str, list[Part]] = {}
    for part in filter(is_unsuccessful, parts):
        by_reason.setdefault(explain_failure(part), []).append(part)
    return "; ".join(f"{_render_replicas(it)}{why}{_render_job(it[0])}" for why, it in by_reason.items())


def _render_job(part: Part) -> str:
    """Return the id of a failed job for other commands, to which a name stands for the jobs of all runs."""
    has_job = part.state is JobState.FAILED and part.reason != NOT_SUBMITTED
    is_single = part.entry.kind in {Kind.JOB, Kind.ALLOCATION} and has_job
    return f" (job {part.job_id[:_SHORT]})" if part.job_id and is_single else ""


def _render_replicas(parts: Sequence[Part]) -> str:
    if parts[0].entry.replicas == 1:
        return ""
    numbers = ", ".join(str(it.replica) for it in parts[:_MAX_REPLICAS])
    more = f" and {len(parts) - _MAX_REPLICAS} more" if len(parts) > _MAX_REPLICAS else ""
    return f"replica{'s' if len(parts) > 1 else ''} {numbers}{more}: "


def explain_failure(part: Part) -> str:
    """Return why a replica has not completed."""
    if part.reason == Reason.EXIT_CODE.value:
        return f"exit code {part.exit_code}"
    return " ".join(": ".join(it for it in (part.reason, part.message) if it).split())

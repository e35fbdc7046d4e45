"""Turns jobs in qstat's listing into Observations.

The hooks that parse the output of qstat use it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from jpsi.plugin import JobState, Observation, Reason, kit

from ..native_ids import is_element
from ..sizes import UNITS
from ..states import ENDED, STATES
from .exit_status import End
from .listing import ListedJob

# src/include/job.h of OpenPBS 23.06.06: JOB_SUBSTATE_FINISHED
_FINISHED = 92
# The array's attributes that also hold for an element that qstat lists with them
_ELEMENT_ATTRIBUTES = ("job_state", "ctime", "qtime", "Hold_Types", "depend")
# The time that a job has used, in hours, which may be many
_CPU = re.compile(r"(\d+):(\d\d):(\d\d)")
# PBS's comment on a job that it could not start
_FAILED_START = "too many failed attempts to run"


def is_not_observable(job: ListedJob) -> bool:
    """Return True if the job has ended with unknown result: on another server, or as a forgotten element."""
    native_state = job.text("job_state")
    return (native_state == "M" and job.number("substate") == _FINISHED) or (
        native_state in ENDED and _has_array_attributes(job)
    )


def _has_array_attributes(job: ListedJob) -> bool:
    """Return True if the job is an array element whose attributes, except the state, are its array's.

    Such an element is pending, or it has ended: deleted before it started, or forgotten since.
    """
    return is_element(job.native_id) and not job.text("array_index")


def observe_jobs(
    named: Iterable[tuple[ListedJob, Iterable[str]]],
    system: str,
    derive_end: Callable[[ListedJob], End | None],
) -> dict[str, Observation]:
    """Return the Observations of listed jobs by the queried ids.

    Jobs for which `is_not_observable` is true are left out. Pending elements of one array share one
    Observation.

    Args:
        named: each listed job with the ids by which it was queried.
        system: the prefix of the names of details.
        derive_end: derives the end of a finished job; returns None if the listing does not show it.
    """
    observations: dict[str, Observation] = {}
    array_observations: dict[tuple[str, str], Observation] = {}
    for job, names in named:
        if is_not_observable(job) or not names:
            continue
        if _has_array_attributes(job):
            key = job.native_id.partition("[")[0], job.text("job_state")
            if key not in array_observations:
                kept = {it: job.attributes[it] for it in _ELEMENT_ATTRIBUTES if it in job.attributes}
                array_observations[key] = observe_job(attrs.evolve(job, attributes=kept), system, derive_end)
            observation = array_observations[key]
        else:
            observation = observe_job(job, system, derive_end)
        observations.update(dict.fromkeys(names, observation))
    return observations


def observe_job(job: ListedJob, system: str, derive_end: Callable[[ListedJob], End | None]) -> Observation:
    """Return the Observation of a listed job, with its tag and time of submission; arguments as above."""
    native_state = job.text("job_state")
    observation = Observation(
        state=None,
        native_state=native_state,
        tag=job.tag,
        submitted=job.submitted,
        details=_details(job, system),
    )
    end, meaning = derive_end(job) if native_state in ENDED else None, STATES.get(native_state)
    if end is not None:
        return attrs.evolve(
            observation,
            **attrs.asdict(end),
            details={**observation.details, **_usage(job)},
            time=job.moment("obittime", "mtime"),
            restarts=_restarts(job, has_begun=True),
            nodes=job.nodes,
        )
    if meaning is None:
        return observation
    is_queued = meaning.state is JobState.QUEUED
    restarts = _restarts(job, has_begun=not is_queued)
    return attrs.evolve(
        observation,
        state=meaning.state,
        reason=_pending_reason(job, restarts) if is_queued else None,
        message=(_pending_message(job) if is_queued else None) or meaning.message,
        time=job.moment("qtime" if is_queued else "stime"),
        restarts=restarts,
        nodes=() if is_queued else job.nodes,
    )


def _details(job: ListedJob, system: str) -> dict[str, Any]:
    names = {"state": "job_state", "substate": "substate", "exit_status": "Exit_status", "comment": "comment"}
    return {f"{system}.{name}": job.text(key) for name, key in names.items() if job.text(key)}


def _usage(job: ListedJob) -> dict[str, float]:
    """Return the seconds of CPU time and the bytes of memory of a job that has ended.

    pbs_resources(7B): cput and mem are those of the whole job. PBS measures them now and then, so that a zero
    stands for what was not measured.
    """
    cpu, memory = _CPU.fullmatch(job.text("resources_used.cput")), job.text("resources_used.mem")
    used: dict[str, float] = {}
    if cpu is not None:
        used["used.cpu"] = float((int(cpu[1]) * 60 + int(cpu[2])) * 60 + int(cpu[3]))
    with contextlib.suppress(ValueError):
        used["used.memory"] = kit.read_amount(memory, UNITS)
    return {name: amount for name, amount in used.items() if amount}


def _restarts(job: ListedJob, *, has_begun: bool) -> int | None:
    """Return the number of requeues: one less than the number of starts once the current run has begun."""
    count = job.number("run_count")
    return None if count is None else max(0, count - has_begun)


def _pending_message(job: ListedJob) -> str | None:
    if job.text("comment"):
        return job.text("comment").strip()
    return "the job waits for a job that it depends on" if _waits_for_dependency(job) else None


def _waits_for_dependency(job: ListedJob) -> bool:
    return job.text("Hold_Types") == "s" and job.text("depend").startswith("after")


def _pending_reason(job: ListedJob, restarts: int | None) -> Reason | None:
    if _FAILED_START in job.text("comment"):
        return Reason.LAUNCH
    return Reason.REQUEUED if restarts else None

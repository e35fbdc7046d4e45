"""Parses the agent's answers, as `client.py` prints them: one line of JSON.

The core's engine learns the states of jobs from it, as from the output of a batch system's commands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from jpsi.plugin import (
    CommandResult,
    Failure,
    FailureKind,
    JobState,
    Meaning,
    Observation,
    Reason,
    SubmitException,
    hookimpl,
)
from jpsi.plugin.kit import require_one_id

from .commands import IDS

#: The agent's words for the state of a job; `done` comes with an exit code.
_STATES: Mapping[str, Meaning] = {
    "waiting": Meaning(JobState.QUEUED),
    "running": Meaning(JobState.ACTIVE),
    "done": Meaning(JobState.COMPLETED),
    "failed": Meaning(JobState.FAILED),
    "cancelled": Meaning(JobState.CANCELED, Reason.CANCELLED),
    "timeout": Meaning(JobState.FAILED, Reason.TIMEOUT, "the job used up its duration and was ended"),
    "unable": Meaning(JobState.FAILED, Reason.LAUNCH),
    "lost": Meaning(JobState.FAILED, Reason.NODE_FAIL, "the pilot that the job ran in was lost"),
}
T = TypeVar("T")
# The key of the agent's answer that lists the ids of no known job.
_UNKNOWN = "unknown"
# The exit codes of client.py: the agent did not accept the request, or refuses the job.
_FAILURES = {3: FailureKind.TRANSIENT, 4: FailureKind.INVALID_JOB}


@hookimpl
def parse_submit(result: CommandResult) -> str:
    """Return the native id of the job."""
    found = str(_parse_answer(result).get("id", ""))
    return require_one_id([found] if IDS.is_id(found) else [], result.stdout)


@hookimpl
def classify_failure(result: CommandResult) -> Failure | None:
    """Return the meaning of an exit code; None for one that client.py does not use."""
    kind = _FAILURES.get(result.returncode)
    return None if kind is None else Failure(kind, result.complaint)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """Return the native ids of the jobs that carry these tags."""
    found = _answer_part(result, "found", dict)
    return {tag: str(found[tag]) for tag in tags if tag in found}


@hookimpl
def parse_status(result: CommandResult, native_ids: Sequence[str] | None) -> Mapping[str, Observation]:
    """Return the agent's observations of jobs, array elements one by one.

    Raises:
        SubmitException: the agent did not answer, or its answer leaves out one of the jobs.
    """
    unknown = _answer_part(result, _UNKNOWN, list)
    try:
        jobs = _answer_part(result, "jobs", dict).items()
        found = {native_id: _parse_observation(it) for native_id, it in jobs}
    except (AttributeError, KeyError, OSError, OverflowError, TypeError, ValueError):
        raise result.no_answer from None
    for native_id in native_ids or ():
        if native_id in unknown or native_id.partition("[")[0] in unknown:
            found.setdefault(native_id, Observation.denied(_UNKNOWN))
        elif native_id not in found:
            raise SubmitException(f"the agent's answer leaves out job {native_id}", transient=True)
    return found


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return no problems if the agent has answered: jobs that are unknown or have ended need no cancel."""
    try:
        _answer_part(result, "cancelled", dict)
    except SubmitException as e:
        return dict.fromkeys(native_ids, str(e))
    return {}


def _parse_observation(entry: Mapping[str, Any]) -> Observation:  # Any: as JSON has it
    native_state = str(entry["state"])
    node, time = entry.get("place"), entry.get("time")
    state, reason, message = _STATES.get(native_state, (None, None, None))
    return Observation(
        state=state,
        native_state=native_state,
        tag=str(entry["tag"]),
        reason=reason,
        message=entry.get("message") or message,
        exit_code=entry.get("code"),
        ran=entry.get("ran"),
        time=None if time is None else datetime.fromtimestamp(time, UTC),
        restarts=entry.get("restarts"),
        nodes=tuple(entry.get("nodes", ())),
        details={"pilot.place": node} if node else {},
    )


def _answer_part(result: CommandResult, name: str, kind: type[T]) -> T:
    """Return one part of an answer.

    Raises:
        SubmitException: the agent did not answer, or the part is missing or of another type.
    """
    try:
        part = _parse_answer(result.checked()).get(name)
    except ValueError:
        raise result.no_answer from None
    if not isinstance(part, kind):
        raise result.no_answer
    return part


def _parse_answer(result: CommandResult) -> dict[str, Any]:  # as above
    """Return the JSON object in the last line of the output; a site's Python may print text before it.

    Raises:
        ValueError: there is no such object.
    """
    lines = result.stdout.splitlines()
    answer = json.loads(lines[-1]) if lines else None
    if not isinstance(answer, dict):
        msg = f"the agent's answer is no JSON object: {result.stdout!r}"
        raise ValueError(msg)  # noqa: TRY004  the text is another one, the type is right
    return answer

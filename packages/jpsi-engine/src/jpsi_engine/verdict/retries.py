"""Decides whether a job that has ended is submitted again, as its attribute `retry` says; pure.

The decision follows from the spec of the attempt that has ended, its status, and the reasons of the retries
before. So all clients that see the same files decide the same.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs

from jpsi import JobStatus
from jpsi.plugin import JobSpec, JobState, Reason, ResourceSpecV1

#: The words for the ends after which a job may be submitted again, besides exit codes.
REASONS: Mapping[str, Reason] = {
    "out_of_memory": Reason.OUT_OF_MEMORY,
    "timeout": Reason.TIMEOUT,
    "node_failure": Reason.NODE_FAIL,
    "preempted": Reason.PREEMPTED,
    "lost": Reason.LOST,
}
_WORDS = {reason: word for word, reason in REASONS.items()}
#: The reasons of ends that an exit code tells.
_BY_CODE = frozenset({Reason.EXIT_CODE, Reason.SIGNAL})
#: By the reason of a retry: what then grows.
#: Where the system does not tell that memory ran out, the job was killed (SIGKILL) and has the code 137.
_GROWING = {"out_of_memory": "memory", "137": "memory", "timeout": "duration"}
_DELAY, _GROW, _MOST = "delay", "grow_", "max_"
_NUMBERS = (_DELAY, *(f"{kind}{name}" for kind in (_GROW, _MOST) for name in ("memory", "duration")))
_MAX_CODE = 255
# The wait doubles from retry to retry, up to a day.
_LONGEST_DELAY = 86_400.0


@attrs.frozen(slots=True, kw_only=True)
class Retry:
    """The decision that a job is submitted again, as it is written to the spool."""

    #: A word of `REASONS`, or an exit code as text.
    reason: str
    #: The earliest time of the next attempt.
    not_before: datetime
    #: The seconds between the end and that time; clocks may differ.
    wait: float = 0.0
    #: What the next attempt requests, in bytes and in seconds; None for what the last attempt requested.
    memory: int | None = None
    duration: float | None = None

    @property
    def content(self) -> dict[str, Any]:
        """The decision, as it is written to the spool."""
        numbers = {"memory": self.memory, "duration": self.duration}
        return {
            "reason": self.reason,
            "not_before": self.not_before.isoformat(),
            "wait": self.wait,
            **{name: it for name, it in numbers.items() if it is not None},
        }

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Retry:
        """Return the decision that was written as `content`; KeyError, TypeError, ValueError for another."""
        memory, duration = content.get("memory"), content.get("duration")
        return cls(
            reason=str(content["reason"]),
            not_before=datetime.fromisoformat(content["not_before"]),
            wait=float(content["wait"]),
            memory=None if memory is None else int(memory),
            duration=None if duration is None else float(duration),
        )

    @property
    def is_growing(self) -> bool:
        """True if the next attempt requests more than the last one."""
        return self.memory is not None or self.duration is not None

    def grown(self, spec: JobSpec, *, has_begun: bool = True) -> JobSpec:
        """Return the spec of the next attempt, given that of the last one, and whether any has begun."""
        resources, attributes = spec.resources, spec.attributes
        if self.memory is not None and isinstance(resources, ResourceSpecV1):
            resources = attrs.evolve(resources, memory=self.memory)
        if self.duration is not None:
            attributes = attrs.evolve(attributes, duration=timedelta(seconds=self.duration))
        if has_begun:
            # the jobs that it waited for have ended
            attributes = attrs.evolve(attributes, after=None)
        return attrs.evolve(spec, resources=resources, attributes=attributes)


def decide_retry(spec: JobSpec, status: JobStatus, earlier: Sequence[str]) -> tuple[Retry | None, str]:
    """Return the decision that a job is submitted again, or None; and a clause that says why not, if any.

    Args:
        spec: the spec of the attempt that has ended.
        status: its final status; its time is that of the decision.
        earlier: the reasons of the retries before it.
    """
    policy = {str(name): value for name, value in (spec.attributes.retry or {}).items()}
    reason = reason_of(status)
    if reason not in policy or retry_problems(spec):
        return None, ""
    counts = Counter(earlier)
    if counts[reason] >= policy[reason]:
        return None, _too_often(reason, counts[reason])
    requests = dict[str, Any]()
    name = _GROWING.get(reason, "")
    if f"{_GROW}{name}" in policy:
        requested = _requested(spec, name)
        position = sum(counts[it] for it, grown in _GROWING.items() if grown == name)
        wanted = _grown(policy[f"{_GROW}{name}"], requested, position)
        most = policy.get(f"{_MOST}{name}", math.inf)
        if min(wanted, most) <= requested:
            return None, f"it had the most {name} that its retries may request"
        requests[name] = min(wanted, most)
    wait = min(policy.get(_DELAY, 0) * 2.0 ** len(earlier), _LONGEST_DELAY)
    if "memory" in requests:
        requests["memory"] = math.ceil(requests["memory"])
    time = status.time + timedelta(seconds=wait)
    return Retry(reason=reason, not_before=time, wait=wait, **requests), ""


def _too_often(reason: str, count: int) -> str:
    end = f"an attempt ended with exit code {reason}" if _is_code(reason) else f"the end was {reason}"
    return f"it was submitted again {count} time{'s' * (count > 1)} because {end}" if count else ""


def reason_of(status: JobStatus) -> str:
    """Return the word or the exit code by which an attribute `retry` names an end; empty if none does.

    >>> reason_of(JobStatus(JobState.FAILED, exit_code=75, reason=Reason.EXIT_CODE))
    '75'
    """
    if status.state is JobState.COMPLETED or status.reason is None:
        return ""
    is_code = status.reason in _BY_CODE and status.exit_code is not None
    return str(status.exit_code) if is_code else _WORDS.get(status.reason, "")


def _requested(spec: JobSpec, name: str) -> float:
    """Return what an attempt has requested, in bytes or seconds; 0 if nothing."""
    if name == "memory":
        return (isinstance(spec.resources, ResourceSpecV1) and spec.resources.memory) or 0
    return 0 if spec.attributes.duration is None else spec.attributes.duration.total_seconds()


def _grown(growth: Any, requested: float, position: int) -> float:  # noqa: ANN401  a number or a list
    if isinstance(growth, list | tuple):
        return float(growth[min(position, len(growth) - 1)])
    return float(requested * growth)


def retry_problems(spec: JobSpec) -> list[str]:
    """Return everything that is wrong with the attribute `retry` of a spec, one sentence each."""
    policy = {str(name): it for name, it in (spec.attributes.retry or {}).items()}
    wrong = [f"attributes.retry: {name} {sentence}" for name, sentence in retry_entry_problems(spec)]
    return [*wrong, *_contradictions(policy, spec)]


def retry_entry_problems(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the name of each entry of the attribute `retry` that is wrong by itself, and what is wrong."""
    for name, value in (spec.attributes.retry or {}).items():
        if sentence := _value_problem(str(name), value):
            yield str(name), sentence


def _contradictions(policy: Mapping[str, Any], spec: JobSpec) -> Iterator[str]:
    for name in dict.fromkeys(_GROWING.values()):
        if f"{_GROW}{name}" in policy and not _requested(spec, name):
            request = "resources.memory of one kind" if name == "memory" else "attributes.duration"
            yield f"attributes.retry: {_GROW}{name} needs a first request, {request}"
        reasons = [reason for reason, it in _GROWING.items() if it == name]
        if f"{_GROW}{name}" in policy and not any(map(policy.get, reasons)):
            yield f"attributes.retry: {_GROW}{name} has no effect without {' or '.join(reasons)}"


def _value_problem(name: str, value: object) -> str:
    """Return what is wrong with an entry, as the end of a sentence; empty if nothing is."""
    if name in REASONS or _is_code(name):
        is_count = type(value) is int and value >= 0
        return "" if is_count else f"must be how often, a whole number, not {value!r}"
    if name not in _NUMBERS:
        closest = difflib.get_close_matches(name, (*REASONS, *_NUMBERS), n=1)
        hint = f"; did you mean {closest[0]!r}?" if closest else ""
        return f"is none of {', '.join((*REASONS, 'exit codes from 1 to 255', *_NUMBERS))}{hint}"
    if name.startswith(_GROW):
        is_growing = _is_rising(value) or (_over(value, 1))
        return "" if is_growing else f"must be a factor over 1, or a list of rising numbers, not {value!r}"
    return (
        "" if _over(value, 0) or (value == 0 and value is not False) else f"must be a number, not {value!r}"
    )


def _is_code(name: str) -> bool:
    return name.isascii() and name.isdigit() and 0 < int(name) <= _MAX_CODE and name == str(int(name))


def _over(value: object, least: float) -> bool:
    """Return True for a number over the least one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value > least  # type: ignore[arg-type, operator]


def _is_rising(value: object) -> bool:
    if not isinstance(value, list | tuple) or not value or not all(_over(it, 0) for it in value):
        return False
    return list(value) == sorted(set(value))

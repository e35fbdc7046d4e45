"""What a batch system said to one question, as a value and as JSON that other processes read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import attrs

from jpsi.plugin import JobState, Observation, Reason


@attrs.frozen(slots=True, kw_only=True)
class Answer:
    """An answer, and to what. Times are seconds of a clock that all who may see it share."""

    #: When the question was begun: what happened later it cannot know.
    begun: float
    ended: float
    #: The native ids that it was about; None if it was about all jobs of the user.
    asked: frozenset[str] | None
    #: What it said about each job that it mentioned.
    seen: Mapping[str, Observation]

    def tells_of(self, native_id: str, since: float) -> bool:
        """Whether it tells what became of a job since then, be it that there is no such job."""
        return since <= self.begun and (self.asked is None or native_id in self.asked)


def compared(answer: Answer, before: Answer) -> Answer:
    """An answer in which what was said before already of jobs that have not ended is the value that it was.

    What is said of many jobs in one is compared once; whether anything is new of each is then whether it is
    the same value. Of ends each stays as it is: an element may have ended as its array did, or by itself.
    """
    same: dict[int, Observation] = {}
    for native_id, observation in answer.seen.items():
        if id(observation) not in same:
            was = before.seen.get(native_id)
            is_same = was is not None and was == observation and not observation.final
            same[id(observation)] = was if is_same and was is not None else observation
    return attrs.evolve(answer, seen={name: same[id(it)] for name, it in answer.seen.items()})


def encode(answer: Answer) -> dict[str, Any]:
    """An answer as plain values, which JSON can hold unless a plugin put into `details` what it cannot.

    What was said of many jobs in one, as of elements of an array, is there once.
    """
    different: dict[int, tuple[Observation, list[str]]] = {}
    for native_id, observation in answer.seen.items():
        different.setdefault(id(observation), (observation, []))[1].append(native_id)
    return {
        "begun": answer.begun,
        "ended": answer.ended,
        "asked": None if answer.asked is None else sorted(answer.asked),
        "said": [_encode(observation) for observation, _ in different.values()],
        "seen": [native_ids for _, native_ids in different.values()],
    }


def decode(plain: Mapping[str, Any]) -> Answer:
    """The answer that `encode` made `plain` of.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: it was made by something else.
    """
    asked = plain["asked"]
    seen: dict[str, Observation] = {}
    for fields, native_ids in zip(_typed(plain["said"], list), _typed(plain["seen"], list), strict=True):
        seen.update(dict.fromkeys(_texts(native_ids), _decode(fields)))
    return Answer(
        begun=float(plain["begun"]),
        ended=float(plain["ended"]),
        asked=None if asked is None else frozenset(_texts(asked)),
        seen=seen,
    )


def _encode(observation: Observation) -> dict[str, Any]:
    values = ((name, getattr(observation, name)) for name in _FIELDS)
    told = ((name, value) for name, value in values if value not in _UNTOLD.get(name, _NOTHING))
    return {name: _FIELDS[name].encode(value) for name, value in told}


def _decode(plain: Mapping[str, Any]) -> Observation:
    fields = {name: _FIELDS[name].decode(_typed(value, _FIELDS[name].kind)) for name, value in plain.items()}
    return Observation(state=fields.pop("state", None), word=fields.pop("word"), **fields)


def _typed(value: Any, kind: type) -> Any:  # noqa: ANN401  any value of JSON
    if not isinstance(value, kind):
        msg = f"{value!r} is no {kind.__name__}"
        raise TypeError(msg)
    return value


def _texts(value: object) -> list[str]:
    found: list[str] = _typed(value, list)
    # at once, as there may be a hundred thousand
    if set(map(type, found)) - {str}:
        msg = "not all of these are native ids"
        raise TypeError(msg)
    return found


class _Field(NamedTuple):
    """How one field of an observation becomes a plain value of some type and comes back."""

    kind: type
    encode: Callable[[Any], Any] = lambda value: value
    decode: Callable[[Any], Any] = lambda value: value


_TIME = _Field(str, datetime.isoformat, datetime.fromisoformat)
_FIELDS: Mapping[str, _Field] = {
    "state": _Field(str, lambda state: state.value, JobState),
    "word": _Field(str),
    "tag": _Field(str),
    "submitted": _TIME,
    "exists": _Field(bool),
    "reason": _Field(str, lambda reason: reason.value, Reason),
    "message": _Field(str),
    "exit_code": _Field(int),
    "ran": _Field(bool),
    "time": _TIME,
    "restarts": _Field(int),
    "nodes": _Field(list, list, tuple),
    "position": _Field(int),
    "start_estimate": _TIME,
    "details": _Field(dict, dict),
}
# What a field is unless something is told; an empty tag tells that there is none.
_NOTHING: tuple[object, ...] = (None, (), {})
_UNTOLD: Mapping[str, tuple[object, ...]] = {"exists": (True,)}

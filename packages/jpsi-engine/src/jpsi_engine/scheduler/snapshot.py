"""The answer of a batch system to one poll, as a value and as JSON that other processes read.

`queue_poll` and `quota` exchange snapshots by `shared_poll`, so that one process polls for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import attrs

from jpsi.plugin import JobState, Observation, Reason


@attrs.frozen(slots=True, kw_only=True)
class Snapshot:
    """A snapshot of the queue. Times are seconds of a clock that all its readers share."""

    #: When the poll was begun: the snapshot cannot know what happened later.
    begun: float
    ended: float
    #: The native ids that the poll was about; None if it was about all jobs of the user.
    queried: frozenset[str] | None
    #: The observation of each job that the batch system mentioned.
    seen: Mapping[str, Observation]

    def covers(self, native_id: str, since: float) -> bool:
        """Return True if it covers a job, present or missing, and its poll was not begun before `since`."""
        return since <= self.begun and (self.queried is None or native_id in self.queried)


@attrs.frozen(slots=True)
class Mentions:
    """A snapshot, together with the arrays of the jobs that are to be looked up in it."""

    snapshot: Snapshot
    #: The native ids of the arrays, by the native ids of their elements.
    arrays: Mapping[str, str]

    def observation_of(self, native_id: str) -> Observation | None:
        """Return what the snapshot says of a job; None if it says nothing.

        An element that is not mentioned waits as its array does. The end of an array says nothing about such
        an element: it may have run, and been forgotten since.
        """
        seen, whole = self._observations(native_id)
        if whole is None or (seen is not None and seen is not whole):
            return seen
        return None if whole.final else whole

    def observation_of_unstarted(self, native_id: str) -> Observation | None:
        """Return what the snapshot says of an element that never began: it ended as its array did."""
        seen, whole = self._observations(native_id)
        return seen if seen is not None and seen is whole else self.observation_of(native_id)

    def is_left_out(self, native_id: str) -> bool:
        """Return True if the snapshot says that an array has ended, and nothing of this element of it."""
        seen, whole = self._observations(native_id)
        return seen is None and whole is not None and whole.final

    def _observations(self, native_id: str) -> tuple[Observation | None, Observation | None]:
        """Return the observation of a job, and that of the array that it is an element of."""
        array = self.arrays.get(native_id)
        return self.snapshot.seen.get(native_id), None if array is None else self.snapshot.seen.get(array)


def reuse_observations(snapshot: Snapshot, earlier_snapshot: Snapshot) -> Snapshot:
    """Return a snapshot in which each unfinished job's unchanged observation is the object of the one before.

    An observation that many jobs share is compared once; after that, the identity of the object tells for
    each job that nothing is new. Observations of ends stay as they are: an element may have ended with its
    array or by itself.
    """
    same: dict[int, Observation] = {}
    for native_id, observation in snapshot.seen.items():
        if id(observation) not in same:
            earlier = earlier_snapshot.seen.get(native_id)
            is_same = earlier is not None and earlier == observation and not observation.final
            same[id(observation)] = earlier if is_same and earlier is not None else observation
    return attrs.evolve(snapshot, seen={name: same[id(it)] for name, it in snapshot.seen.items()})


def encode(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as plain values; JSON can hold them unless a plugin put other values into `details`.

    An observation that many jobs share, such as elements of an array, is stored once.
    """
    different: dict[int, tuple[Observation, list[str]]] = {}
    for native_id, observation in snapshot.seen.items():
        different.setdefault(id(observation), (observation, []))[1].append(native_id)
    return {
        "begun": snapshot.begun,
        "ended": snapshot.ended,
        "queried": None if snapshot.queried is None else sorted(snapshot.queried),
        "observations": [_encode(observation) for observation, _ in different.values()],
        "native_ids": [native_ids for _, native_ids in different.values()],
    }


def decode(plain: Mapping[str, Any]) -> Snapshot:
    """Return the snapshot that `encode` turned into `plain`.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: `plain` is not a result of `encode`.
    """
    queried = plain["queried"]
    seen: dict[str, Observation] = {}
    for fields, native_ids in zip(
        _typed(plain["observations"], list), _typed(plain["native_ids"], list), strict=True
    ):
        seen.update(dict.fromkeys(_check_texts(native_ids), _decode(fields)))
    return Snapshot(
        begun=float(plain["begun"]),
        ended=float(plain["ended"]),
        queried=None if queried is None else frozenset(_check_texts(queried)),
        seen=seen,
    )


def _encode(observation: Observation) -> dict[str, Any]:
    values = ((name, getattr(observation, name)) for name in _FIELDS)
    stored = ((name, value) for name, value in values if value not in _OMITTED.get(name, _NOTHING))
    return {name: _FIELDS[name].encode(value) for name, value in stored}


def _decode(plain: Mapping[str, Any]) -> Observation:
    fields = {name: _FIELDS[name].decode(_typed(value, _FIELDS[name].kind)) for name, value in plain.items()}
    return Observation(state=fields.pop("state", None), native_state=fields.pop("native_state"), **fields)


def _typed(value: Any, kind: type) -> Any:  # noqa: ANN401  any value of JSON
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _check_texts(value: object) -> list[str]:
    found: list[str] = _typed(value, list)
    # one check for the whole list, which may have a hundred thousand items
    if set(map(type, found)) - {str}:
        raise TypeError("not all of these are native ids")
    return found


class _Field(NamedTuple):
    """The conversion of one field of an observation to a plain value of some type, and back."""

    kind: type
    encode: Callable[[Any], Any] = lambda value: value
    decode: Callable[[Any], Any] = lambda value: value


_TIME = _Field(str, datetime.isoformat, datetime.fromisoformat)
_FIELDS: Mapping[str, _Field] = {
    "state": _Field(str, lambda state: state.value, JobState),
    "native_state": _Field(str),
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
# The values that are not stored; an empty tag is stored, and says that the job has none.
_NOTHING: tuple[object, ...] = (None, (), {})
_OMITTED: Mapping[str, tuple[object, ...]] = {"exists": (True,)}

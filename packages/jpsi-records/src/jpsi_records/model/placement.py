"""The placement of a job: its executor and resources, which are not part of the computation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import attrs


@attrs.frozen(slots=True, kw_only=True)
class Placement:
    """The executor, queue, walltime and other resources to submit a job with."""

    #: The executor or configured target; None is the configured default, else `local`.
    executor: str | None = None
    queue_name: str | None = None
    project_name: str | None = None
    reservation_id: str | None = None
    #: The walltime in seconds; None is the default of the target.
    duration: float | None = None
    #: Bytes of memory for the whole job.
    memory: int | None = None
    #: GPUs for each process.
    gpus: int | None = None
    launcher: str | None = None
    #: Options of one batch system, named `<system>.<option>`.
    custom_attributes: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def time_limit(self) -> timedelta | None:
        """`duration` in the form that `JobAttributes` takes."""
        return None if self.duration is None else timedelta(seconds=self.duration)


_TEXTS = ("executor", "queue_name", "project_name", "reservation_id", "launcher")
_VARIABLE = re.compile(r"[\w-]+\.\S+")


def problems(placement: Placement) -> Iterator[str]:
    """Yield every problem of a placement."""
    for name in _TEXTS:
        value = getattr(placement, name)
        if value is not None and (not isinstance(value, str) or not value):
            yield f"placement: {name} must be text, not {value!r}"
    for name in ("memory", "gpus"):
        value = getattr(placement, name)
        if value is not None and (type(value) is not int or value < 0):
            yield f"placement: {name} must be a whole number, not {value!r}"
    duration: Any = placement.duration  # not yet checked
    if duration is not None and (
        isinstance(duration, bool) or not isinstance(duration, int | float) or duration < 0
    ):
        yield f"placement: duration must be a number of seconds, not {duration!r}"
    custom: Any = placement.custom_attributes
    if not isinstance(custom, Mapping):
        yield f"placement: custom_attributes must be a mapping, not {custom!r}"
        return
    for name in custom:
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            yield f"placement: custom_attributes: {name!r} is not of the form <system>.<option>"


def merged(placements: Iterable[Placement]) -> Placement:
    """Return one placement for several requests: that of the first, with the longest walltime.

    Zero, which is no limit, is the longest; None, the default of the target, is the shortest.
    """
    first, *others = placements
    duration = first.duration
    for other in others:
        duration = _longer(duration, other.duration)
    return attrs.evolve(first, duration=duration)


def _longer(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return 0 if 0 in {one, other} else max(one, other)

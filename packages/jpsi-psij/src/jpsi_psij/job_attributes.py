"""The attributes of a job: facts for the batch system other than resources."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import attrs

from .converted import Converted

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_NUMBER_AND_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*([dhms])")
_MAX_PARTS = 3


def parse_walltime(walltime: str) -> timedelta:
    """Return the duration that a text denotes: `hh:mm:ss`, `hh:mm`, a number of minutes, or `90 s`.

    >>> parse_walltime("1:30"), parse_walltime("90"), parse_walltime("600.0 s")
    (datetime.timedelta(seconds=5400), datetime.timedelta(seconds=5400), datetime.timedelta(seconds=600))

    Raises:
        ValueError: the text is none of these.
    """
    text = walltime.strip()
    if text.isdigit():
        return timedelta(minutes=int(text))
    parts = text.split(":")
    if 1 < len(parts) <= _MAX_PARTS and all(it.isdigit() for it in parts):
        hours, minutes, seconds = [*map(int, parts), 0][:_MAX_PARTS]
        return timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if found := _NUMBER_AND_UNIT.fullmatch(text):
        return timedelta(seconds=float(found[1]) * _UNITS[found[2]])
    raise ValueError(f"{walltime!r} is no duration; write hh:mm:ss, hh:mm, a number of minutes, or 90 s")


def _duration(value: timedelta | float | str | None) -> timedelta | None:
    if isinstance(value, int | float):
        return timedelta(seconds=value)
    return parse_walltime(value) if isinstance(value, str) else value


@attrs.define(slots=False, init=False)
class JobAttributes:
    """Properties of a job for the batch system, apart from the resources it needs."""

    #: The walltime: a timedelta; a number of seconds or a text, as in `parse_walltime`, becomes one.
    duration: Converted[timedelta | None, timedelta | float | str | None] = attrs.field(converter=_duration)
    queue_name: str | None
    account: str | None
    reservation_id: str | None
    #: Options of one batch system, named `<executor>.<option>`.
    custom_attributes: dict[str, Any] | None

    def __init__(
        self,
        duration: timedelta | float | str | None = timedelta(minutes=10),
        queue_name: str | None = None,
        account: str | None = None,
        reservation_id: str | None = None,
        custom_attributes: dict[str, Any] | None = None,
        project_name: str | None = None,
    ) -> None:
        self.duration = duration
        self.queue_name = queue_name
        self.account = project_name if account is None else account
        self.reservation_id = reservation_id
        self.custom_attributes = custom_attributes

    @property
    def project_name(self) -> str | None:
        """Another name of `account`."""
        return self.account

    @project_name.setter
    def project_name(self, value: str | None) -> None:
        self.account = value

    def set_custom_attribute(self, name: str, value: object) -> None:
        """Set one custom attribute."""
        self.custom_attributes = {**(self.custom_attributes or {}), name: value}

    def get_custom_attribute(self, name: str) -> object | None:
        """Return one custom attribute; None if it is not set."""
        return (self.custom_attributes or {}).get(name)

    parse_walltime = staticmethod(parse_walltime)

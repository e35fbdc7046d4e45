"""One job as qstat lists it, whatever the form in which it was listed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import attrs

from .ids import Asked
from .names import tag_in

_DIGITS = re.compile(r"[0-9]+")
# ctime(3): Sat Nov 21 09:00:42 2026
_CTIME = re.compile(r"\w{3} (\w{3}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})\Z")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@attrs.frozen(slots=True)
class Listed:
    """A job and its attributes, by the names that OpenPBS has for them."""

    native_id: str
    attributes: Mapping[str, str]
    #: The names and values of the job's variables, in whatever form.
    variables: str = ""

    def text(self, name: str) -> str:
        """An attribute; empty if the job has none of this name."""
        return self.attributes.get(name, "")

    def number(self, name: str) -> int | None:
        """An attribute that is a number."""
        try:
            return int(self.text(name))
        except ValueError:
            return None

    def moment(self, *names: str) -> datetime | None:
        """The first of these attributes that is a time: of the zone UTC, or in seconds since 1970."""
        return next((found for name in names if (found := _moment(self.text(name))) is not None), None)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that it runs on, such as those of `node1/0*2+node2/1`."""
        places = self.text("exec_host").split("+")
        return tuple(dict.fromkeys(name for place in places if (name := place.partition("/")[0])))


def named(jobs: Iterable[Listed], native_ids: Sequence[str] | None) -> dict[str, Listed]:
    """The jobs by the ids that were asked for."""
    asked = Asked(native_ids)
    return {name: job for job in jobs for name in asked.names(job.native_id)}


def tagged(jobs: Iterable[Listed], tags: Sequence[str]) -> dict[str, str]:
    """The native ids of the jobs that carry these tags.

    A job that another has submitted with its own environment carries the other's tag, and comes later.
    """
    sought, found = frozenset(tags), dict[str, str]()
    for job in sorted(jobs, key=_number):
        tag = tag_in(job.variables)
        if tag in sought:
            found.setdefault(tag, job.native_id)
    return found


def _number(job: Listed) -> int:
    digits = _DIGITS.match(job.native_id)
    return 0 if digits is None else int(digits[0])


def _moment(text: str) -> datetime | None:
    match = _CTIME.match(text)
    try:
        if match is None:
            return datetime.fromtimestamp(int(text), UTC)
        day, hour, minute, second, year = (int(match[group]) for group in range(2, 7))
        return datetime(year, _MONTHS.index(match[1]) + 1, day, hour, minute, second, tzinfo=UTC)
    except (OverflowError, OSError, ValueError):
        return None

"""The attributes of one job in qstat's listing, independent of the listing's format."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs

from jpsi.plugin.kit import parse_time

from ..job_names import parse_tag


@attrs.frozen(slots=True)
class ListedJob:
    """A listed job and its attributes, by their names in OpenPBS."""

    native_id: str
    attributes: Mapping[str, str]
    #: The names and values of the job's variables, in the listing's own notation.
    variables: str = ""
    #: False if the variables are missing, or not all of them could be parsed.
    has_variables: bool = False

    def text(self, name: str) -> str:
        """Return an attribute's text; "" if the job has no such attribute."""
        return self.attributes.get(name, "")

    def number(self, name: str) -> int | None:
        """Return a numeric attribute; None if it is missing or no number."""
        try:
            return int(self.text(name))
        except ValueError:
            return None

    def moment(self, *names: str) -> datetime | None:
        """Return the first of these attributes that is a time, in UTC or in seconds since 1970; else None."""
        return next((found for name in names if (found := parse_time(self.text(name))) is not None), None)

    @property
    def tag(self) -> str | None:
        """The job's tag; "" if it has none, None if that is uncertain."""
        return parse_tag(self.variables, is_complete=self.has_variables)

    @property
    def submitted(self) -> datetime | None:
        """The time of submission (`ctime`); `qtime` changes whenever the job enters a queue."""
        return self.moment("ctime")

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that the job runs on, such as those of `node1/0*2+node2/1`."""
        slots = self.text("exec_host").split("+")
        return tuple(dict.fromkeys(name for slot in slots if (name := slot.partition("/")[0])))

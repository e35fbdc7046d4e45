"""One job as qstat lists it, whatever the form in which it was listed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import attrs

from jpsi.plugin.kit import moment

from ..job_names import tag_in


@attrs.frozen(slots=True)
class Listed:
    """A job and its attributes, by the names that OpenPBS has for them."""

    native_id: str
    attributes: Mapping[str, str]
    #: The names and values of the job's variables, in whatever form.
    variables: str = ""
    #: False if they are not told, or not all of them can be read.
    has_variables: bool = False

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
        return next((found for name in names if (found := moment(self.text(name))) is not None), None)

    @property
    def tag(self) -> str | None:
        """The tag that it carries; empty if it carries none, None if that cannot be told."""
        return tag_in(self.variables, is_whole=self.has_variables)

    @property
    def submitted(self) -> datetime | None:
        """When the server took it: `qtime` is when it came into its queue, and changes with that."""
        return self.moment("ctime")

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that it runs on, such as those of `node1/0*2+node2/1`."""
        places = self.text("exec_host").split("+")
        return tuple(dict.fromkeys(name for place in places if (name := place.partition("/")[0])))

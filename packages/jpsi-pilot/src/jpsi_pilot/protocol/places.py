"""The nodes of pilots as places for jobs, and the names of places."""

from __future__ import annotations

import attrs


class PlaceLost(Exception):
    """A place is gone, and the outcome of its run is unknown."""


@attrs.frozen(slots=True, kw_only=True)
class Place:
    """A node of a pilot that has reported and takes jobs."""

    #: `PILOT/NODE.PID`; the file name of the node's log in the pilot's directory is the second part.
    name: str

    @property
    def node(self) -> str:
        """The name of the node."""
        return node_of(self.name)

    @property
    def pilot(self) -> str:
        """The name of the pilot."""
        return pilot_of(self.name)


def pilot_of(place: str) -> str:
    """Return the name of the pilot that a place belongs to."""
    return place.partition("/")[0]


def node_of(place: str) -> str:
    """Return the name of a place's node."""
    return place.partition("/")[2].rpartition(".")[0]

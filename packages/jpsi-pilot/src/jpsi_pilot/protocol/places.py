"""The nodes of pilots as places for jobs, and how places are named."""

from __future__ import annotations

import attrs


class PlaceLost(Exception):
    """A place is gone, and nobody knows what has become of the run that was there."""


@attrs.frozen(slots=True, kw_only=True)
class Place:
    """A node of a pilot that has reported and can be given jobs."""

    #: `PILOT/NODE.PID`; the node's log in the pilot's folder is called like its second part.
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
    """The name of the pilot that a place belongs to."""
    return place.partition("/")[0]


def node_of(place: str) -> str:
    """The name of the node that a place is."""
    return place.partition("/")[2].rpartition(".")[0]

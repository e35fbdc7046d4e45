"""The nodes of pilots, on which jobs run, and their names.

Agent and engines name a node by a `PilotNode`.
"""

from __future__ import annotations

import attrs


class NodeLost(Exception):
    """A node of a pilot is gone, and the outcome of its run is unknown."""


@attrs.frozen(slots=True, kw_only=True)
class PilotNode:
    """A node of a pilot that has reported and takes jobs."""

    #: `PILOT/HOSTNAME.PID`; the file name of the node's log in the pilot's directory is the second part.
    name: str

    @property
    def hostname(self) -> str:
        """The name of the machine."""
        return hostname_of(self.name)

    @property
    def pilot(self) -> str:
        """The name of the pilot."""
        return pilot_of(self.name)


def pilot_of(node: str) -> str:
    """Return the name of the pilot that a node belongs to."""
    return node.partition("/")[0]


def hostname_of(node: str) -> str:
    """Return the name of a node's machine."""
    return node.partition("/")[2].rpartition(".")[0]

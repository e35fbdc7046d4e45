"""The interface of an engine to the agent, and the types of its methods.

Authors of engines implement `PilotEngine`; the agent calls it. Both name a node by a `PilotNode`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import attrs

from .values import End, Settings, Task


@attrs.frozen(slots=True, kw_only=True)
class Equipment:
    """The process that a pilot runs on each of its nodes."""

    #: A module with arguments, run as `python -m` would; the pilot's directory, the number of cores of a
    #: node, and the name of the node follow as further arguments. It ends when its standard input ends, by
    #: which the node supervisor controls it, and when it has no agent to report to any more and the last of
    #: its jobs has ended. It records each job's beginning in the node's log before it starts the job, and its
    #: end afterwards: there, or, if another machine does that, in the log of `engine_log_node`.
    module: Sequence[str]
    #: The environment of the launcher that starts the pilot on its nodes.
    environment: Mapping[str, str] = attrs.field(factory=dict)


class PilotEngine(Protocol):
    """Runs tasks on nodes; all methods are called in the agent's event loop.

    The agent makes an engine by a call of what its entry point names, with a function that the engine calls
    whenever a node has come or gone, and the settings of the first pilot. Every port that it opens to the
    network must authenticate its peers. The agent, not the engine, retries lost tasks and chooses nodes.
    """

    @property
    def name(self) -> str:
        """The engine's name, for messages."""

    @property
    def spans_nodes(self) -> bool:
        """True if a job can have several nodes of a pilot; if not, a job that needs them is refused.

        Such a job's script runs on the first of them, in whatever order, and finds their nodes in that order,
        separated by blanks, in `JPSI_PILOT_NODES`. There must be a launcher that starts its processes. Where
        the engine itself assigns GPUs, `JPSI_PILOT_DEVICES` has those of the job, a line `NODE NAME=VALUE`
        for each variable on each node.
        """

    async def start(self) -> None:
        """Prepare for pilots, such as by opening a port.

        Raises:
            OSError: the engine cannot be started on this machine.
        """

    @property
    def needs_launcher(self) -> bool:
        """True if a job of several nodes has to name the launcher that starts its processes.

        Otherwise that is `flux`, and the engine makes sure that it works.
        """

    def equip(self, folder: Path, settings: Settings) -> Equipment:
        """Write the files that its nodes need into a pilot's private directory, and return their process."""

    def nodes(self) -> Mapping[str, PilotNode]:
        """Return the nodes that have reported and are not gone, by name."""

    async def run(self, nodes: Sequence[str], task: Task) -> End:
        """Run a task on these nodes, once, and return its end.

        Args:
            nodes: the node; several, of one pilot, only for an engine that spans nodes.
            task: the task, with its number of cores and GPUs of each node.

        Raises:
            NodeLost: the engine lost contact, and cannot say how or if the run ended. The lost node is no
                longer among `nodes`, and the agent judges the job by its log, or by the end of the pilot.
        """

    async def stop(self, node: str, native_id: str) -> None:
        """End the run of a job, with the reason `cancel`; `run` returns when it has ended.

        Args:
            node: a node of the run.
            native_id: the job.

        Raises:
            NodeLost: the engine has no contact with the node.
        """

    async def close(self) -> None:
        """Disconnect from the nodes; their jobs run on."""


#: The type of an entry point of the group `jpsi.pilot_engines`.
EngineMaker = Callable[[Callable[[], None], Settings], PilotEngine]


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

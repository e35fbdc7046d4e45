"""What an engine promises to the agent: the protocol, and what its methods take and return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import attrs

from .places import Place
from .values import End, Settings, Task


@attrs.frozen(slots=True, kw_only=True)
class Equipment:
    """What a pilot runs on each of its nodes."""

    #: A module, with arguments, that is run as `python -m` would, with the pilot's folder, the number of
    #: cores of a node, and the name of the place as further arguments. It ends when its standard input does,
    #: by which the node supervisor holds it, and when there is nobody any more whom it could report to and
    #: the last of its jobs has ended. Before each job it writes into the node's log, and after it how that
    #: has ended: there, or, where another machine does that, into `carrier_of` the place.
    module: Sequence[str]
    #: What the launcher that starts the pilot on its nodes is to have in its environment.
    environment: Mapping[str, str] = attrs.field(factory=dict)


class PilotEngine(Protocol):
    """Carries tasks to places; all methods are called in the agent's event loop.

    An engine is made by calling what its entry point names with a function to call whenever a place has come
    or gone, and the settings of the first pilot. What it opens to the network demands proof of who connects.
    It never runs by itself again what was lost, nor chooses another place: the agent does.
    """

    @property
    def name(self) -> str:
        """How it is called, for messages."""

    @property
    def spans_nodes(self) -> bool:
        """Whether a job can have several places of a pilot; one that needs them is refused if not.

        Such a job's script runs on the first of them, in whatever order, and finds their nodes in that order,
        separated by blanks, in `JPSI_PILOT_NODES`. There must be a launcher that starts its processes. Where
        the engine shares out GPUs by itself, `JPSI_PILOT_DEVICES` has those of the job, a line
        `NODE NAME=VALUE` for each variable on each node.
        """

    async def start(self) -> None:
        """Make ready for pilots.

        Raises:
            OSError: it cannot be done here.
        """

    @property
    def needs_launcher(self) -> bool:
        """Whether a job of several places has to name the launcher that starts its processes.

        Otherwise that is `flux`, and the engine sees to it that it works.
        """

    def equip(self, folder: Path, settings: Settings) -> Equipment:
        """Put into a pilot's private folder what its nodes need, and return what they run."""

    def places(self) -> Mapping[str, Place]:
        """The places that have reported and are not gone, by name."""

    async def run(self, places: Sequence[str], task: Task) -> End:
        """Run a task there, once, until its end.

        Args:
            places: the place; several, of one pilot, only for an engine that spans nodes.
            task: what is run, on as many cores and GPUs of each place as it says.

        Raises:
            PlaceLost: nobody knows how it ended, or whether it has. A place that was lost is no more among
                `places`, and the job is judged by its log, or by the end of the pilot.
        """

    async def stop(self, place: str, native_id: str) -> None:
        """Have the run of a job end, with the reason `cancel`; `run` tells when it has.

        Args:
            place: a place that it was given.
            native_id: the job.

        Raises:
            PlaceLost: it could not be told.
        """

    async def close(self) -> None:
        """Leave the places to themselves."""


#: What an entry point names.
EngineMaker = Callable[[Callable[[], None], Settings], PilotEngine]

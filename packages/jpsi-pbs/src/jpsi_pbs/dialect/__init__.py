"""How the commands of OpenPBS 23.06.06 and Torque 6.1.3 were recorded to answer, over a fake batch system."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import attrs

from jpsi.fakes import CommandFunction, mpirun_commands
from jpsi.plugin import CommandResult

from . import changing, openpbs
from . import torque as old
from .ids import SERVER
from .running import pbsdsh, slots
from .submitting import qsub

__all__ = ["pbs", "torque"]


_ON_NODES = frozenset({"pbsdsh", "mpiexec", "mpirun"})


@attrs.frozen(slots=True)
class PbsDialect:
    """The commands of one of the two; implements `jpsi.fakes.Dialect`."""

    #: The commands by name.
    commands: Mapping[str, CommandFunction]
    #: What they say while the server is down.
    down: Mapping[str, CommandResult]

    def unreachable(self, command: str) -> CommandResult:
        """What a command says while the server is down, and with it the nodes of the job."""
        gone = CommandResult(returncode=1, stderr=f"{command}: tm_init() failed: no answer of a node\n")
        return gone if command in _ON_NODES else self.down[command]


_REFUSED = f"Connection refused\n{{}}: cannot connect to server {SERVER} (errno=15010)\n"
_NOBODY = f"""
Unable to communicate with {SERVER}(10.77.0.1)
Cannot connect to specified server host '{SERVER}'.
"""

#: OpenPBS.
pbs = PbsDialect(
    {
        "qsub": functools.partial(qsub, openpbs.RULES),
        "qstat": openpbs.qstat,
        "pbsdsh": pbsdsh("c:n:sov"),
        **mpirun_commands(slots),
        **{name: functools.partial(function, openpbs.WORDS) for name, function in changing.COMMANDS.items()},
    },
    {
        "qsub": CommandResult(returncode=162, stderr=_REFUSED.format("qsub")),
        "qstat": CommandResult(returncode=255, stdout=openpbs.frame(0, {}), stderr=_REFUSED.format("qstat")),
        "qdel": CommandResult(
            returncode=162, stderr=f"Connection refused\nCouldn't connect to cluster: {SERVER}\n"
        ),
        "qhold": CommandResult(returncode=162, stderr=_REFUSED.format("qhold")),
        "qrls": CommandResult(returncode=162, stderr=_REFUSED.format("qrls")),
    },
)

#: Torque.
torque = PbsDialect(
    {
        "qsub": functools.partial(qsub, old.RULES),
        "qstat": old.qstat,
        "pbsdsh": pbsdsh("c:n:h:suvoe:"),
        **mpirun_commands(slots),
        **{name: functools.partial(function, old.WORDS) for name, function in changing.COMMANDS.items()},
    },
    {
        name: CommandResult(
            returncode=111,
            stderr=f"{_NOBODY}{name}: cannot connect to server {SERVER} (errno=111) Connection refused\n",
        )
        for name in ("qsub", "qdel", "qhold", "qrls")
    }
    | {
        "qstat": CommandResult(
            returncode=111,
            stderr=f"{_NOBODY * 3}qstat: cannot connect to server {SERVER} (errno=111) Connection refused\n"
            "qstat: Error (111 - Connection refused) \n",
        )
    },
)

"""The fakes of PBS and Torque, after recordings of OpenPBS 23.06.06 and Torque 6.1.3."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import attrs

from jpsi.plugin import CommandResult
from jpsi_testing.fake import CommandFunction, mpirun_commands

from . import openpbs_listing, torque_listing
from .control import COMMANDS
from .native_ids import SERVER
from .pbsdsh import pbsdsh, slots
from .submit import qsub

_ON_NODES = frozenset({"pbsdsh", "mpiexec", "mpirun"})


@attrs.frozen(slots=True)
class FakePbsSystem:
    """The commands of PBS or of Torque; implements `jpsi_testing.fake.FakeSystem`."""

    #: The commands by name.
    commands: Mapping[str, CommandFunction]
    #: The output of each command while the server is down.
    down: Mapping[str, CommandResult]

    def unreachable(self, command: str) -> CommandResult:
        """Return the output of a command while the server, and with it the nodes of the job, is down."""
        error = CommandResult(returncode=1, stderr=f"{command}: tm_init() failed: no answer of a node\n")
        return error if command in _ON_NODES else self.down[command]


_REFUSED = f"Connection refused\n{{}}: cannot connect to server {SERVER} (errno=15010)\n"
_NO_SERVER = f"""
Unable to communicate with {SERVER}(10.77.0.1)
Cannot connect to specified server host '{SERVER}'.
"""

#: The fake of OpenPBS.
pbs = FakePbsSystem(
    {
        "qsub": functools.partial(qsub, openpbs_listing.RULES),
        "qstat": openpbs_listing.qstat,
        "pbsdsh": pbsdsh("c:n:sov"),
        **mpirun_commands(slots),
        **{
            name: functools.partial(function, openpbs_listing.CONTROL_MESSAGES)
            for name, function in COMMANDS.items()
        },
    },
    {
        "qsub": CommandResult(returncode=162, stderr=_REFUSED.format("qsub")),
        "qstat": CommandResult(
            returncode=255, stdout=openpbs_listing.json_document(0, {}), stderr=_REFUSED.format("qstat")
        ),
        "qdel": CommandResult(
            returncode=162, stderr=f"Connection refused\nCouldn't connect to cluster: {SERVER}\n"
        ),
        "qhold": CommandResult(returncode=162, stderr=_REFUSED.format("qhold")),
        "qrls": CommandResult(returncode=162, stderr=_REFUSED.format("qrls")),
    },
)

#: The fake of Torque.
torque = FakePbsSystem(
    {
        "qsub": functools.partial(qsub, torque_listing.RULES),
        "qstat": torque_listing.qstat,
        "pbsdsh": pbsdsh("c:n:h:suvoe:"),
        **mpirun_commands(slots),
        **{
            name: functools.partial(function, torque_listing.CONTROL_MESSAGES)
            for name, function in COMMANDS.items()
        },
    },
    {
        name: CommandResult(
            returncode=111,
            stderr=f"{_NO_SERVER}{name}: cannot connect to server {SERVER} (errno=111) Connection refused\n",
        )
        for name in ("qsub", "qdel", "qhold", "qrls")
    }
    | {
        "qstat": CommandResult(
            returncode=111,
            stderr=f"{_NO_SERVER * 3}qstat: cannot connect to server {SERVER} (errno=111) "
            "Connection refused\nqstat: Error (111 - Connection refused) \n",
        )
    },
)

"""The fakes of PBS and Torque, after recordings of OpenPBS 23.06.06 and Torque 6.1.3.

Tests and `jpsi fake` run jobs on the fakes, without a real PBS or Torque.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import attrs

from jpsi.plugin import CommandResult
from jpsi_testing.fake import CommandFunction, mpirun_commands

from . import openpbs_listing, torque_listing
from .control import COMMANDS
from .native_ids import SERVER
from .pbsdsh import pbsdsh, slots
from .submit import Rules, qsub

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


def _commands(
    rules: Rules, qstat: Callable[..., CommandResult | str], pbsdsh_letters: str
) -> Mapping[str, CommandFunction]:
    return {
        "qsub": functools.partial(qsub, rules),
        "pbsdsh": pbsdsh(pbsdsh_letters),
        **mpirun_commands(slots),
        **by_rules(rules, qstat),
    }


def by_rules(rules: Rules, qstat: Callable[..., CommandResult | str]) -> Mapping[str, CommandFunction]:
    """Return the commands that list and change jobs, of a server with these rules."""
    functions = {"qstat": qstat, **COMMANDS}
    return {name: functools.partial(function, rules) for name, function in functions.items()}


_REFUSED = f"Connection refused\n{{}}: cannot connect to server {SERVER} (errno=15010)\n"
_NO_SERVER = f"""
Unable to communicate with {SERVER}(10.77.0.1)
Cannot connect to specified server host '{SERVER}'.
"""
_NO_SERVER_END = f"{{}}: cannot connect to server {SERVER} (errno=111) Connection refused\n"

#: The fake of OpenPBS.
pbs = FakePbsSystem(
    _commands(openpbs_listing.RULES, openpbs_listing.qstat, "c:n:sov"),
    {
        **{
            name: CommandResult(returncode=162, stderr=_REFUSED.format(name))
            for name in ("qsub", "qhold", "qrls")
        },
        "qstat": CommandResult(
            returncode=255,
            stdout=openpbs_listing.json_document(SERVER, 0, {}),
            stderr=_REFUSED.format("qstat"),
        ),
        "qdel": CommandResult(
            returncode=162, stderr=f"Connection refused\nCouldn't connect to cluster: {SERVER}\n"
        ),
    },
)

#: The fake of Torque.
torque = FakePbsSystem(
    _commands(torque_listing.RULES, torque_listing.qstat, "c:n:h:suvoe:"),
    {
        **{
            name: CommandResult(returncode=111, stderr=_NO_SERVER + _NO_SERVER_END.format(name))
            for name in ("qsub", "qdel", "qhold", "qrls")
        },
        "qstat": CommandResult(
            returncode=111,
            stderr=_NO_SERVER * 3
            + _NO_SERVER_END.format("qstat")
            + "qstat: Error (111 - Connection refused) \n",
        ),
    },
)

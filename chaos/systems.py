"""The fakes of all batch systems: their commands, and a fake that tampers with answers."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import attrs

from chaos.tampering import Garble
from jpsi.plugin import CommandResult
from jpsi_testing.fake import (
    CommandFunction,
    FakeScheduler,
    FakeSystem,
    Invocation,
    call_command,
    find_fake,
)


@dataclass(frozen=True)
class System:
    """A fake batch system, and jpsi's configuration for it."""

    name: str
    #: The command that submits, for faults of commands.
    submit: str
    #: The commands that report about jobs, some with a second word that makes them do so.
    status: frozenset[str]
    config_class: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)

    def is_status(self, invocation: Invocation) -> bool:
        """Return True if a call is only a query."""
        words = invocation.argv[:2]
        return words[0] in self.status or " ".join(words) in self.status

    def commands(self) -> list[str]:
        """Return the commands that report about jobs, by the names that faults use."""
        return sorted({it.split()[0] for it in self.status})


SYSTEMS: Mapping[str, System] = {
    it.name: it
    for it in (
        System("toy", "tsubmit", frozenset({"tstat"})),
        System("slurm", "sbatch", frozenset({"squeue", "sacct"}), "jpsi_slurm.config:SlurmConfig"),
        System("pbs", "qsub", frozenset({"qstat"}), "jpsi_pbs.config:PbsConfig"),
        System("torque", "qsub", frozenset({"qstat"}), "jpsi_pbs.config:PbsConfig"),
        System("lsf", "bsub", frozenset({"bjobs", "bhist"}), "jpsi_lsf.config:LsfConfig"),
        System("flux", "flux", frozenset({"flux jobs"}), "jpsi_flux.config:FluxConfig"),
        System(
            "gridengine",
            "qsub",
            frozenset({"qstat", "qacct"}),
            "jpsi_gridengine.config:GridEngineConfig",
            {"parallel_environment": "mpi-{slots}", "node_environment": "smp"},
        ),
        System("oar", "oarsub", frozenset({"oarstat"}), "jpsi_oar.config:OarConfig"),
    )
}


class GarblingFake:
    """A fake that tampers with its answers about jobs; a `jpsi_testing.fake.FakeSystem`."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._fake_system: FakeSystem = find_fake(system.name)
        #: The change to answers about jobs; None leaves them unchanged.
        self.garble: Garble | None = None
        self.commands: Mapping[str, CommandFunction] = {
            name: functools.partial(self._call, function)
            for name, function in self._fake_system.commands.items()
        }

    def unreachable(self, command: str) -> CommandResult:
        """Return the result of this command if it cannot contact the batch system."""
        return self._fake_system.unreachable(command)

    def _call(
        self, function: CommandFunction, scheduler: FakeScheduler, invocation: Invocation
    ) -> CommandResult:
        result = call_command(function, scheduler, invocation)
        if self.garble is None or not self._system.is_status(invocation):
            return result
        # it claims that all is well
        return attrs.evolve(result, returncode=0, stdout=self.garble(result.stdout), stderr="")


def toy_plugin(folder: Path) -> Path:
    """Write a directory for PYTHONPATH that installs the executor `toy`; return it."""
    info = folder / "toy-1.0.dist-info"
    if not info.exists():
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[jpsi.executors]\ntoy = jpsi_testing.toy\n")
    return folder

"""`ExecutorConformance`: the conformance tests that every backend passes; its tests inherit the class."""

from __future__ import annotations

from jpsi_testing.conformance.attributes import AttributeTests
from jpsi_testing.conformance.bulk import ArrayTests
from jpsi_testing.conformance.command_output import OutputTests
from jpsi_testing.conformance.dependencies import DependencyTests
from jpsi_testing.conformance.ends import EndTests
from jpsi_testing.conformance.faults import FaultTests
from jpsi_testing.conformance.host_faults import HostFaultTests
from jpsi_testing.conformance.hostile_text import HostileTests
from jpsi_testing.conformance.identity import IdentityTests
from jpsi_testing.conformance.limits import LimitTests
from jpsi_testing.conformance.nodes import ComponentTests, NodeTests
from jpsi_testing.conformance.recovery import RecoveryTests
from jpsi_testing.conformance.runs import RunTests
from jpsi_testing.conformance.staging import StagingTests


class ExecutorConformance(
    AttributeTests,
    OutputTests,
    RunTests,
    NodeTests,
    ComponentTests,
    StagingTests,
    HostileTests,
    EndTests,
    DependencyTests,
    RecoveryTests,
    FaultTests,
    IdentityTests,
    HostFaultTests,
    ArrayTests,
    LimitTests,
):
    """All conformance tests of a backend; its test class inherits them and sets class attributes.

        class TestSlurm(ExecutorConformance):
            executor_name = "slurm"
            fake_system = "slurm"
            submit_command = "sbatch"
            config_class = SlurmConfig
            plugin = jpsi_slurm.hooks

    The commands of the fake are then on PATH, over a fake batch system in real time whose jobs really run.
    Without a fake, the tests run against the batch system that the commands on PATH reach, and tests that
    inject faults are skipped. Every fixture may be overridden: `executor`, `config`, `work_directory`,
    `scheduler`.
    """

"""The tests that every backend passes."""

from __future__ import annotations

from jpsi.testing.conformance_answers import AnswerTests
from jpsi.testing.conformance_components import ComponentTests
from jpsi.testing.conformance_dependencies import DependencyTests
from jpsi.testing.conformance_ends import EndTests
from jpsi.testing.conformance_faults import FaultTests
from jpsi.testing.conformance_hostile import HostileTests
from jpsi.testing.conformance_identity import IdentityTests
from jpsi.testing.conformance_limits import LimitTests
from jpsi.testing.conformance_many import ArrayTests
from jpsi.testing.conformance_nodes import NodeTests
from jpsi.testing.conformance_recovery import RecoveryTests
from jpsi.testing.conformance_runs import RunTests
from jpsi.testing.conformance_staging import StagingTests
from jpsi.testing.conformance_surroundings import SurroundingsTests


class ExecutorConformance(
    AnswerTests,
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
    SurroundingsTests,
    ArrayTests,
    LimitTests,
):
    """Inherit it in a backend's tests, and say what is to be tested.

        class TestSlurm(ExecutorConformance):
            executor_name = "slurm"
            dialect = "slurm"
            submit_command = "sbatch"
            config_class = SlurmConfig
            plugin = jpsi_slurm.hooks

    The commands of the dialect are then on PATH, over a fake batch system in real time whose jobs really run.
    Without a dialect the executor is tested with whatever its commands reach, and tests that inject faults
    are skipped. Every fixture may be overridden: `executor`, `config`, `work_directory`, `scheduler`.
    """

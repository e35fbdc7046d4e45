"""Door 3: fake batch systems for tests; they need no pytest.

A `FakeScheduler` is the batch system. A backend ships its `Dialect`: the functions that answer its commands
over a fake scheduler. `on_path` puts these commands on PATH, so that any program can be tried without a
cluster.
"""

from jpsi_testing.fake.clock import FakeClock
from jpsi_testing.fake.faults import Faults
from jpsi_testing.fake.invocation import Invocation
from jpsi_testing.fake.job import FakeJob, FakeState, Outcome
from jpsi_testing.fake.limits import limit
from jpsi_testing.fake.log import Call, Log
from jpsi_testing.fake.mpi import mpirun_commands
from jpsi_testing.fake.path import command_folder, on_path
from jpsi_testing.fake.program import NO_ANSWER, answer
from jpsi_testing.fake.registry import CommandFunction, FakeSystem, find_fake
from jpsi_testing.fake.scheduler import FakeScheduler
from jpsi_testing.fake.tasks import Task, TaskLaunch

__all__ = [
    "NO_ANSWER",
    "Call",
    "CommandFunction",
    "FakeClock",
    "FakeJob",
    "FakeScheduler",
    "FakeState",
    "FakeSystem",
    "Faults",
    "Invocation",
    "Log",
    "Outcome",
    "Task",
    "TaskLaunch",
    "answer",
    "command_folder",
    "find_fake",
    "limit",
    "mpirun_commands",
    "on_path",
]

"""Door 3: batch systems that are not there, for tests; they need no pytest.

A `FakeScheduler` is the batch system. A backend ships its `Dialect`: how its commands read and answer over
one. `on_path` puts these commands on PATH, so that any program can be tried without a cluster.
"""

from jpsi.fakes.answering import NO_ANSWER, answer
from jpsi.fakes.clock import FakeClock
from jpsi.fakes.dialects import CommandFunction, Dialect, Invocation, dialect
from jpsi.fakes.faults import Faults
from jpsi.fakes.job import FakeJob, FakeState, Outcome
from jpsi.fakes.limiting import limit
from jpsi.fakes.log import Call, Log
from jpsi.fakes.mpi import mpirun_commands
from jpsi.fakes.path import command_folder, on_path
from jpsi.fakes.scheduler import FakeScheduler
from jpsi.fakes.tasks import Task, TaskLaunch

__all__ = [
    "NO_ANSWER",
    "Call",
    "CommandFunction",
    "Dialect",
    "FakeClock",
    "FakeJob",
    "FakeScheduler",
    "FakeState",
    "Faults",
    "Invocation",
    "Log",
    "Outcome",
    "Task",
    "TaskLaunch",
    "answer",
    "command_folder",
    "dialect",
    "limit",
    "mpirun_commands",
    "on_path",
]

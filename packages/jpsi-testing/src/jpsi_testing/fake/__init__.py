"""Fake batch systems for tests; they need no pytest.

A `FakeScheduler` is the batch system. A backend ships its `FakeSystem`: the functions that implement its
commands on a fake scheduler. `on_path` puts these commands on PATH, so that any program can be tried without
a cluster.
"""

from jpsi_testing.fake.client import receive, send
from jpsi_testing.fake.clock import FakeClock
from jpsi_testing.fake.commands import (
    NO_ANSWER,
    CommandFunction,
    FakeSystem,
    answer,
    call_command,
    find_fake,
    join_lines,
    node_name,
    refuse_if,
)
from jpsi_testing.fake.faults import Faults
from jpsi_testing.fake.invocation import Call, CommandError, Invocation, Log
from jpsi_testing.fake.job import FakeJob, FakeState, Outcome, limit, wait_for_jobs
from jpsi_testing.fake.mpi import mpirun_commands
from jpsi_testing.fake.options import Arguments, OptionTable, parse_dashed, parse_letters
from jpsi_testing.fake.path import command_folder, on_path, write_commands
from jpsi_testing.fake.scheduler import FakeScheduler
from jpsi_testing.fake.server import read_stdin, result_fields
from jpsi_testing.fake.spoken import (
    SPEC,
    Speaker,
    SpokenQueue,
    inherited_variables,
    interpreter,
    lost_attributes,
    script_command,
    with_command,
)
from jpsi_testing.fake.task_runner import run_tasks
from jpsi_testing.fake.tasks import Task, TaskLaunch

__all__ = [
    "NO_ANSWER",
    "SPEC",
    "Arguments",
    "Call",
    "CommandError",
    "CommandFunction",
    "FakeClock",
    "FakeJob",
    "FakeScheduler",
    "FakeState",
    "FakeSystem",
    "Faults",
    "Invocation",
    "Log",
    "OptionTable",
    "Outcome",
    "Speaker",
    "SpokenQueue",
    "Task",
    "TaskLaunch",
    "answer",
    "call_command",
    "command_folder",
    "find_fake",
    "inherited_variables",
    "interpreter",
    "join_lines",
    "limit",
    "lost_attributes",
    "mpirun_commands",
    "node_name",
    "on_path",
    "parse_dashed",
    "parse_letters",
    "read_stdin",
    "receive",
    "refuse_if",
    "result_fields",
    "run_tasks",
    "script_command",
    "send",
    "wait_for_jobs",
    "with_command",
    "write_commands",
]

"""Fake batch systems for tests; they need no pytest.

A `FakeScheduler` is the batch system. A backend ships its `FakeSystem`: the functions that implement its
commands on a fake scheduler. `on_path` puts these commands on PATH, so that any program can be tried without
a cluster.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_testing.fake.callers import *
    from jpsi_testing.fake.client import *
    from jpsi_testing.fake.clock import *
    from jpsi_testing.fake.commands import *
    from jpsi_testing.fake.faults import *
    from jpsi_testing.fake.invocation import *
    from jpsi_testing.fake.job import *
    from jpsi_testing.fake.mpi import *
    from jpsi_testing.fake.options import *
    from jpsi_testing.fake.path import *
    from jpsi_testing.fake.scheduler import *
    from jpsi_testing.fake.server import *
    from jpsi_testing.fake.spoken import *
    from jpsi_testing.fake.task_runner import *
    from jpsi_testing.fake.tasks import *

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

if not TYPE_CHECKING:
    from jpsi.plugin.engine import door

    _below = ["clock", "invocation", "job", "commands", "faults", "options", "tasks", "spoken"]
    _rooms = [*_below, "client", "callers", "server", "path", "task_runner", "mpi", "scheduler"]
    __getattr__, __dir__ = door(__name__, __all__, [f"{__name__}.{it}" for it in _rooms])

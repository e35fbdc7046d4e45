"""Runs the tasks of a step on a machine that has no queue: in a job on the node of a cluster."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import attrs

from jpsi_testing.fake import FakeJob, Invocation, TaskLaunch, call_command, find_fake, result_fields
from jpsi_testing.fake import run_tasks as run

from .server import GROUP

if TYPE_CHECKING:
    from jpsi_testing.fake import FakeScheduler


_CHECK_SECONDS = 1.0


@attrs.frozen(slots=True)
class _NoJobs:
    """A batch system that knows no job."""

    jobs: tuple[FakeJob, ...] = ()

    def next_number(self) -> int:
        """Return the number of a step outside of jobs."""
        return 0


def main() -> int:
    """Run the command that the arguments name after the language; return its exit code."""
    language, *argv = sys.argv[1:]
    function = find_fake(language, GROUP).commands[argv[0]]
    call = Invocation(argv=argv, environment=dict(os.environ), directory=os.getcwd())  # noqa: PTH109  as it is
    result = call_command(function, cast("FakeScheduler", _NoJobs()), call)
    sys.stdout.write(result.stdout)
    sys.stderr.write(result.stderr)
    if not isinstance(result, TaskLaunch):
        return result.returncode
    return run(argv[0], result_fields(result), wait_for_orphaning)


def wait_for_orphaning(
    parent: Callable[[], int] = os.getppid, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Return when the process that called the command is gone, as in a job that was killed."""
    original = parent()
    while parent() == original:
        sleep(_CHECK_SECONDS)


if __name__ == "__main__":
    sys.exit(main())

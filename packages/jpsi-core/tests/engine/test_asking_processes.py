"""Real processes that follow jobs through real commands ask together."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from jpsi.fakes import FakeScheduler, Outcome, on_path
from jpsi.testing import toy_dialect

PROCESSES = 4
SHORTEST = 0.5
QUESTIONS = 6

# Submits a job, says when it was told something about it, and follows it until its input ends.
PROGRAM = f"""
import sys
from datetime import timedelta
from pathlib import Path
import pluggy
from jpsi.contract.config import BatchConfig
from jpsi.contract.hookspecs import PROJECT, ExecutorHooks
from jpsi.contract.protocols import EngineSetup, Submission
from jpsi.contract.shell import ShellLine
from jpsi.engine import defaults
from jpsi.engine.batch import BatchEngine
from jpsi.engine.transport import LocalTransport
from jpsi.model.spec import JobSpec
from jpsi.testing import toy

root, job_id = sys.argv[1:]
interval = timedelta(seconds={SHORTEST})
manager = pluggy.PluginManager(PROJECT)
manager.add_hookspecs(ExecutorHooks)
manager.register(defaults)
manager.register(toy)
engine = BatchEngine(
    EngineSetup(
        executor="toy",
        version="1",
        config=BatchConfig(work_directory=root, shortest_interval=interval, longest_interval=interval),
        transport=LocalTransport(),
        publish=lambda job_id, status: print(status.state, flush=True),
        process_engine=lambda setup: None,
    ),
    manager.hook,
)
spec = JobSpec("/bin/true", directory=Path(root))
engine.submit(Submission(job_id=job_id, attempt=1, spec=spec, launch=[ShellLine('exec "$@"')]))
engine.track(job_id)
sys.stdin.read()
"""


@pytest.mark.clause("bulk-status")
@pytest.mark.alone
def test_processes_ask_about_as_often_as_one(tmp_path: Path) -> None:
    with ExitStack() as stack:
        scheduler = stack.enter_context(FakeScheduler(outcome=Outcome(seconds=600)))
        stack.enter_context(on_path(toy_dialect, scheduler))
        clients = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", PROGRAM, str(tmp_path), f"a{number}"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
            for number in range(PROCESSES)
        ]
        for client in clients:
            assert client.stdout is not None
            assert client.stdout.readline() == b"ACTIVE\n"
        assert scheduler.wait_for(lambda: len(scheduler.log.of("tstat")) >= QUESTIONS)
        # on a busy machine the last of them may ask about some only
        assert scheduler.wait_for(lambda: {"1", "2", "3", "4"} in _asked(scheduler))
        for client in clients:
            client.communicate()

    calls = [call for call in scheduler.log.of("tstat") if "--finished" not in call.invocation.argv]
    seconds = calls[-1].time - calls[0].time
    # one that is slow to be answered on a busy machine is not waited for without end
    assert len(calls) - 1 <= 1.5 * seconds / SHORTEST


def _asked(scheduler: FakeScheduler) -> list[set[str]]:
    """What each question was about."""
    return [set(call.invocation.argv[1:]) for call in scheduler.log.of("tstat")]

"""Real processes that follow jobs through real commands share polls; the test sets the time."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import attrs
import pytest

from jpsi_testing import toy_fake
from jpsi_testing.fake import FakeScheduler, Outcome, on_path

PROCESSES = 4
SHORTEST = 1.0
INTERVALS = 8
# The time between the turns of two processes.
PAUSE = 0.05

# Submits a job, and follows it: polls when that is due at the time that it reads, and prints its states.
PROGRAM = f"""
import sys
from datetime import timedelta
from pathlib import Path
import pluggy
from jpsi.contract.config import BatchConfig
from jpsi.contract.hookspecs import PROJECT, ExecutorHooks
from jpsi.contract.engine import EngineSetup, Submission
from jpsi.contract.shell import ShellLine
from jpsi.layers import default_hooks
from jpsi_engine.batch import BatchEngine
from jpsi_engine.host.local_transport import LocalTransport
from jpsi.model.spec import JobSpec
from jpsi_testing import toy

root, job_id = sys.argv[1:]
interval = timedelta(seconds={SHORTEST})
manager = pluggy.PluginManager(PROJECT)
manager.add_hookspecs(ExecutorHooks)
manager.register(default_hooks)
manager.register(toy)
states = []
engine = BatchEngine(
    EngineSetup(
        executor="toy",
        version="1",
        config=BatchConfig(work_directory=root, shortest_interval=interval, longest_interval=interval),
        transport=LocalTransport(),
        publish=lambda job_id, status: states.append(status.state.name),
        process_engine=lambda setup: None,
    ),
    manager.hook,
)
spec = JobSpec("/bin/true", directory=Path(root))
engine.submit(Submission(job_id=job_id, attempt=1, spec=spec, launch=[ShellLine('exec "$@"')]))
monitor, _ = engine._open()
job = monitor.get(job_id)
for line in sys.stdin:
    time = float(line)
    if not job.is_followed:
        monitor.follow([job], time)
    if monitor.next_poll_time() <= time:
        monitor.poll(lambda: time)
    print(*states, flush=True)
"""


@attrs.define
class Client:
    """A client process that follows a job."""

    process: subprocess.Popen[str]

    def at(self, time: float) -> list[str]:
        """Run its round at a time, and return the states that it got until then."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(time, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, "it has ended"
        return line.split()


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    with FakeScheduler(outcome=Outcome(seconds=600)) as scheduler, on_path(toy_fake, scheduler):
        yield scheduler


@pytest.fixture
def clients(scheduler: FakeScheduler, tmp_path: Path) -> Iterator[list[Client]]:
    with ExitStack() as stack:
        yield [
            Client(
                stack.enter_context(
                    subprocess.Popen(
                        [sys.executable, "-c", PROGRAM, str(tmp_path), f"a{number}"],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        text=True,
                    )
                )
            )
            for number in range(PROCESSES)
        ]


@pytest.mark.clause("bulk-status")
def test_processes_poll_about_as_often_as_one(scheduler: FakeScheduler, clients: list[Client]) -> None:
    begin = 1000.0
    states: list[list[str]] = []
    times: list[float] = []

    for turn in range(int(INTERVALS * SHORTEST / PAUSE)):
        time, queried = begin + turn * PAUSE, len(_queries(scheduler))
        states.append(clients[turn % PROCESSES].at(time))
        times += [time] * (len(_queries(scheduler)) - queried)

    assert all("ACTIVE" in it for it in states[-PROCESSES:])
    assert all(it == {"1", "2", "3", "4"} for it in _queries(scheduler)[1:])
    assert all(later >= earlier + SHORTEST for earlier, later in itertools.pairwise(times))
    assert len(times) >= INTERVALS / 2


def _queries(scheduler: FakeScheduler) -> list[set[str]]:
    """Return the native ids of each query."""
    argvs = [call.invocation.argv[1:] for call in scheduler.log.of("tstat")]
    return [set(argv) for argv in argvs if "--finished" not in argv]

"""Conformance tests of configured limits on jobs, which count the jobs of other programs as well."""

from __future__ import annotations

import threading
from pathlib import Path

import attrs
import pytest

from jpsi import Job, JobSpec, JobState
from jpsi.plugin import BatchConfig, ExecutorConfig
from jpsi_testing.conformance.base import ExecutorTestBase, Gate, shell
from jpsi_testing.fake import FakeScheduler, FakeState

# Prints how many jobs run, itself included; each has a file in the directory `$1`.
_COUNT = 'touch "$1/$2" && ls "$1" | wc -l && sleep 0.2 && rm "$1/$2"'


class LimitTests(ExecutorTestBase):
    """Tests of limits for every executor."""

    def test_no_more_jobs_run_than_max_active(
        self, config: ExecutorConfig, scheduler: FakeScheduler | None, tmp_path: Path
    ) -> None:
        """Further jobs wait to be submitted until a running job ends."""
        running = tmp_path / "running"
        running.mkdir()
        outputs = [tmp_path / f"count {number}" for number in range(5)]
        specs = [
            shell(_COUNT, running, number, stdout_path=output, name="alike" if number < 3 else f"n{number}")
            for number, output in enumerate(outputs)
        ]
        jobs = [Job(spec) for spec in specs]

        with self.new_executor(attrs.evolve(config, max_active=2)) as executor:
            executor.submit_many(jobs)
            assert [self.end(job).exit_code for job in jobs] == [0] * 5

        assert max(int(output.read_text()) for output in outputs) <= 2

    def test_there_are_no_more_jobs_than_max_queued(
        self, config: ExecutorConfig, fake: FakeScheduler, tmp_path: Path
    ) -> None:
        """Jobs of another program and elements of its arrays count, waiting or running."""
        if not isinstance(config, BatchConfig):
            pytest.skip("it has no queue")
        gate = Gate(tmp_path / "gate")
        fake.slots = 2
        others, jobs = [Job(gate.job()) for _ in range(4)], [Job(JobSpec("/bin/true")) for _ in range(3)]
        with self.new_executor(config) as other:
            other.submit_many(others)
            assert fake.wait_for(lambda: self._running(fake) == 2, self.timeout_seconds)

        with self.new_executor(attrs.evolve(config, max_queued=5)) as executor:
            thread = threading.Thread(target=executor.submit_many, args=[jobs])
            thread.start()
            assert jobs[0].wait(self.timeout_seconds, target_states=JobState.QUEUED)
            listed = [it for it in fake.jobs if not it.state.final]
            assert len(listed) == 5
            gate.open()
            thread.join(self.timeout_seconds)
            assert [self.end(job).exit_code for job in (*others, *jobs)] == [0] * 7

    @staticmethod
    def _running(fake: FakeScheduler) -> int:
        return sum(it.state is FakeState.RUNNING for it in fake.jobs)

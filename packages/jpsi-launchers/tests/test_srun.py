"""The launcher `srun` where it belongs: in the jobs of the executor `slurm`, over the fake Slurm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi
import jpsi_launchers.srun
from jpsi.plugin import BatchConfig
from jpsi_slurm import SlurmConfig
from jpsi_testing import LauncherConformance
from jpsi_testing.conformance.bulk import ArrayTests
from jpsi_testing.conformance.ends import EndTests
from jpsi_testing.conformance.nodes import ComponentTests, NodeTests
from jpsi_testing.conformance.runs import RunTests
from jpsi_testing.conformance.staging import StagingTests
from jpsi_testing.fake import FakeScheduler

# Without a name of its own, a job of any executor's tests is launched by this.
_CONFIGURATION = "executors: {slurm: {defaults: {launcher: srun}}}\n"


class TestSrun(LauncherConformance):
    """Several processes each."""

    launcher_name = "srun"
    program = "srun"
    max_processes = 3
    plugin = jpsi_launchers.srun

    @pytest.fixture(autouse=True)
    def _slurm(self, fake_commands: Callable[..., FakeScheduler]) -> None:
        """Put the fake's srun on PATH, also for lines that run outside of a job."""
        fake_commands("slurm")

    @pytest.fixture
    def executor(self, tmp_path: Path) -> Iterator[jpsi.JobExecutor]:
        config = BatchConfig(
            work_directory=tmp_path / "work",
            shortest_interval=timedelta(seconds=0.1),
            longest_interval=timedelta(seconds=0.3),
            grace=timedelta(seconds=1),
        )
        with jpsi.JobExecutor.get_instance("slurm", config=config) as executor:
            yield executor


class TestSlurm(RunTests, NodeTests, ComponentTests, StagingTests, EndTests, ArrayTests):
    """Whatever launches the job, the executor keeps the promises in which the job's processes take part."""

    executor_name = "slurm"
    fake_system = "slurm"
    submit_command = "sbatch"
    config_class = SlurmConfig

    @pytest.fixture(autouse=True)
    def _by_srun(
        self, scheduler: FakeScheduler | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert scheduler is not None
        configuration = tmp_path / "jpsi.yaml"
        configuration.write_text(_CONFIGURATION)
        monkeypatch.setenv("JPSI_CONFIG", str(configuration))

    def test_jobs_are_launched_by_srun(self, executor: jpsi.JobExecutor, tmp_path: Path) -> None:
        spec = jpsi.JobSpec("/bin/sh", ["-c", 'echo "$SLURM_PROCID"'], stdout_path=tmp_path / "out")

        assert self.run(executor, spec).state is jpsi.JobState.COMPLETED
        assert (tmp_path / "out").read_text() == "0\n"

    @pytest.mark.parametrize("inherits", [True, False])
    def test_processes_see_the_index_of_their_user(
        self, executor: jpsi.JobExecutor, tmp_path: Path, inherits: bool
    ) -> None:
        """The variables of srun, among which is Slurm's own index, do not replace it."""
        command = 'echo "$SLURM_ARRAY_TASK_ID" >"$1/$2-$SLURM_PROCID"'
        jobs = [
            jpsi.Job(
                jpsi.JobSpec(
                    "/bin/sh",
                    ["-c", command, "sh", tmp_path, name],
                    environment={"JPSI_ARRAY_INDEX": name},
                    inherit_environment=inherits,
                    resources=jpsi.ResourceSpecV1(process_count=2),
                )
            )
            for name in ("40", "43")
        ]

        executor.submit_many(jobs)

        assert [self.end(job).exit_code for job in jobs] == [0, 0]
        found = {it.name: it.read_text() for it in tmp_path.glob("4?-?")}
        assert found == {"40-0": "40\n", "40-1": "40\n", "43-0": "43\n", "43-1": "43\n"}

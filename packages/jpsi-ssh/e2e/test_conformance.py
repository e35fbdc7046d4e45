"""The executors `local` and `slurm` conform on a remote host behind ssh."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from jpsi import Job, JobExecutor, JobSpec, escape
from jpsi.plugin import BatchConfig
from jpsi_slurm import SlurmConfig
from jpsi_slurm.directives import legal_name
from jpsi_testing import ExecutorConformance
from jpsi_testing.conformance.attributes import TRANSLATED
from jpsi_testing.conformance.base import Gate
from jpsi_testing.fake import FakeScheduler


class _RemoteConformance(ExecutorConformance):
    """All conformance tests that need no injected fault."""

    url = "ssh://cluster"
    is_remote = True

    @pytest.fixture(autouse=True)
    def _connected(self, runtime: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Give each test its own connection and its own state directory."""
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state here"))

    def test_the_environment_is_inherited_or_not(
        self, executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A job inherits the environment of a login on the remote host."""
        monkeypatch.setenv("FROM_OUTSIDE", "inherited")
        text = 'echo "${SSH_CONNECTION:+login},$FROM_OUTSIDE,$GIVEN" >"$1"'
        for inherits in (True, False):
            arguments = ["-c", escape(text), "sh", str(tmp_path / str(inherits))]
            spec = JobSpec("/bin/sh", arguments, environment={"GIVEN": "a"}, inherit_environment=inherits)
            assert self.run(executor, spec).exit_code == 0

        assert (tmp_path / "True").read_text() == "login,,a\n"
        assert (tmp_path / "False").read_text() == ",,a\n"


class TestLocal(_RemoteConformance):
    """Processes of the remote host."""

    executor_name = "local"
    config_class = BatchConfig
    settings: ClassVar[Mapping[str, Any]] = {"default_duration": timedelta(0)}
    unknown_id = f"999999.1.0.{platform.node()}"
    ignored_attributes = TRANSLATED.keys() - {"resources.node_count", "attributes.duration"}

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        """Terminate the leader of the job."""
        os.kill(int(native_id.partition(".")[0]), signal.SIGTERM)

    def test_a_job_outlives_the_connection(
        self, executor: JobExecutor, runtime: Path, tmp_path: Path
    ) -> None:
        gate = Gate(tmp_path / "gate")
        job = Job(gate.job(7))
        executor.submit(job)
        self.active(job)

        for socket in runtime.glob("jpsi-ssh/*.?"):
            subprocess.run(
                ["ssh", "-O", "exit", "-S", str(socket), "cluster"], capture_output=True, check=True
            )
        gate.open()

        assert self.end(job).exit_code == 7


@pytest.mark.skipif(shutil.which("sbatch") is None, reason="there is no sbatch on PATH")
class TestSlurm(_RemoteConformance):
    """Jobs of a real Slurm."""

    executor_name = "slurm"
    config_class = SlurmConfig
    unknown_id = "99999999"
    directives = ("#SBATCH --job-name=evil", "#SBATCH --partition=nowhere")

    def native_name(self, name: str) -> str:
        """Return the name that Slurm has of a job."""
        return legal_name(name)

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        """Cancel a job with scancel."""
        subprocess.run(["scancel", native_id], check=True)

"""Conformance of the executor `pilot` with agent and pilots on a remote host, through a real sshd."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi import JobExecutor, JobSpec, escape
from jpsi.plugin import ExecutorConfig
from jpsi_pilot import hooks
from jpsi_pilot.config import PilotConfig
from jpsi_testing import ExecutorConformance
from pilot_support import end_agent

_KEY = Path("~/.ssh/jpsi-client")


@pytest.mark.long
@pytest.mark.skipif(not _KEY.expanduser().exists(), reason="ci/sshd/up was not run for this user")
class TestRemotePilots(ExecutorConformance):
    executor_name = "pilot"
    config_class = PilotConfig
    plugin = hooks
    url = "ssh://cluster"
    is_remote = True
    unknown_id = "aaaaaaaa-999999"
    # an agent gives its jobs no names
    ignored_attributes = ("name",)
    timeout_seconds = 240.0

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _connected(cls) -> Iterator[None]:
        """Use a connection of the test's own."""
        # a socket's path must be shorter than pytest's
        folder = Path(tempfile.mkdtemp(prefix="jpsi-e2e-", dir="/tmp"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", str(folder))
            yield
        for socket in folder.glob("jpsi-ssh/*.?"):
            ending = ["ssh", "-O", "exit", "-S", str(socket), "cluster"]
            subprocess.run(ending, capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)

    @pytest.fixture
    def config(self, work_directory: Path) -> Iterator[ExecutorConfig]:
        yield PilotConfig(
            work_directory=work_directory,
            python=sys.executable,
            cores_per_node=8,
            idle_time=timedelta(seconds=30),
            kill_delay=timedelta(seconds=0.5),
            shortest_interval=timedelta(seconds=0.1),
            longest_interval=timedelta(seconds=0.3),
            grace=timedelta(seconds=1),
        )
        end_agent(work_directory / "pilots")

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

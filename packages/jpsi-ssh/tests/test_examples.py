"""The program examples/remote.py over a fake of ssh, with processes and a fake of Slurm."""

from __future__ import annotations

import runpy
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

import jpsi
from fake_ssh import FakeSsh
from jpsi_testing.fake import on_path

EXAMPLE = Path(__file__).parents[3] / "examples/remote.py"


@pytest.fixture
def remote_home(ssh: FakeSsh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the remote home directory; the program runs in another directory."""
    home = tmp_path / "there"
    here = tmp_path / "here"
    home.mkdir()
    here.mkdir()
    ssh.login(f"cd {shlex.quote(str(home))}; HOME=$PWD; unset XDG_STATE_HOME\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(here / "state"))
    monkeypatch.chdir(here)
    return home


@pytest.fixture
def example() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(EXAMPLE)))


@pytest.mark.clause("layer-remote")
@pytest.mark.parametrize("name", ["local", "slurm"])
def test_results_are_staged_back(
    name: str, remote_home: Path, example: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    with on_path("slurm"):
        code = example.main(name, "ssh://cluster")

    assert code == 0
    assert capsys.readouterr().out == "counted the words of words.txt\nCOMPLETED, exit code 0\n127\n"
    assert sorted(path.name for path in remote_home.glob("jpsi-example/*")) == ["result.txt", "words.txt"]


def test_a_job_of_another_host_is_followed(
    remote_home: Path, example: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spec = jpsi.JobSpec("/bin/sh", ["-c", "until [ -e go ]; do sleep 0.1; done"], name=example.NAME)
    spec.directory = Path("~")
    job = jpsi.Job(spec)
    with on_path("slurm"):
        jpsi.JobExecutor("slurm", url="ssh://cluster").submit(job)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
        found = example.find_unfinished(jpsi.JobExecutor("slurm", url="ssh://cluster"))
        (remote_home / "go").touch()

        status = found.wait()

    assert found.id == job.id
    assert status.state is jpsi.JobState.COMPLETED

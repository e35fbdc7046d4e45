"""Processes in other directories find the configuration file of a relative path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import jpsi
from jpsi.contract.command import Command
from jpsi_engine.host.child_environment import child_environment
from jpsi_engine.host.local_transport import LocalTransport


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name a configuration file by a path that is relative to a directory of its own."""
    file = tmp_path / "beside" / "mine.yaml"
    file.parent.mkdir()
    file.write_text("{}")
    monkeypatch.chdir(file.parent)
    monkeypatch.setenv("JPSI_CONFIG", f"./{tmp_path.name}/../mine.yaml")
    (file.parent / tmp_path.name).mkdir()
    return file


def test_without_a_named_file_it_is_that_of_this_process() -> None:
    assert child_environment() is os.environ


def test_commands_and_jobs_get_the_absolute_path(
    executor: jpsi.JobExecutor, named: Path, tmp_path: Path
) -> None:
    relative = os.environ["JPSI_CONFIG"]
    jpsi.configuration()

    printed = LocalTransport().run(Command(["/bin/sh", "-c", 'echo "$JPSI_CONFIG"'])).stdout
    script = 'cat "$JPSI_CONFIG" >seen'
    job = jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", script], directory=tmp_path))
    executor.submit(job)
    job.wait()

    assert Path(printed.strip()).resolve() == named
    assert Path(printed.strip()).is_absolute()
    assert (tmp_path / "seen").read_text() == "{}"
    assert os.environ["JPSI_CONFIG"] == relative

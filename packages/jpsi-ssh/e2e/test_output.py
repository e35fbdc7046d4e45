"""The output of a remote job is shown while the job writes it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_JPSI = [sys.executable, "-m", "jpsi_cli"]


@pytest.fixture
def environment(runtime: Path, tmp_path: Path) -> dict[str, str]:
    """Return an environment in which `cluster` is a target."""
    configuration = tmp_path / "jpsi.yaml"
    configuration.write_text("targets: {cluster: {executor: local, url: 'ssh://cluster'}}\n")
    return {**os.environ, "JPSI_CONFIG": str(configuration), "XDG_STATE_HOME": str(tmp_path / "state")}


def test_run_streams_the_output(environment: dict[str, str], tmp_path: Path) -> None:
    go = tmp_path / "go"
    text = f"echo one; until [ -e {go} ]; do sleep 0.1; done; echo two; echo three >&2; exit 3"
    command = [*_JPSI, "run", "-x", "cluster", "--", "sh", "-c", text]

    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"one\n"
        go.touch()
        out, err = running.communicate(timeout=60)

    assert (running.returncode, out) == (3, b"two\n")
    assert b"three\n" in err


def test_logs_follow_a_job_that_another_program_submitted(
    environment: dict[str, str], tmp_path: Path
) -> None:
    go = tmp_path / "go"
    text = f"echo one; until [ -e {go} ]; do sleep 0.1; done; echo two"
    submitting = [*_JPSI, "submit", "-x", "cluster", "--", "sh", "-c", text]
    submitted = subprocess.run(submitting, env=environment, capture_output=True, check=True)
    job_id = submitted.stdout.decode().strip()

    command = [*_JPSI, "logs", "-f", job_id]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == b"one\n"
        go.touch()
        out, _ = following.communicate(timeout=60)

    assert (following.returncode, out) == (0, b"two\n")
    shown = subprocess.run([*_JPSI, "logs", job_id], env=environment, capture_output=True, check=True)
    assert shown.stdout == b"one\ntwo\n"

"""A job's time limit is kept although no client lives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from jpsi_engine.local import watchdog


@pytest.fixture
def runner() -> subprocess.Popen[bytes]:
    """A process that leads a session, which has another member, and that ends at TERM."""
    command = ["sh", "-c", "sleep 1000 & echo; wait"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch, runner: subprocess.Popen[bytes]) -> None:
    assert runner.stdout is not None
    runner.stdout.read(1)
    monkeypatch.setattr(watchdog, "RUNNER_FD", os.pidfd_open(runner.pid))
    monkeypatch.setattr(watchdog, "CLIENT_SECONDS", 0.0)
    monkeypatch.setattr(watchdog, "_POLL_SECONDS", 0.0)


def end(runner: subprocess.Popen[bytes]) -> int:
    """Wait until all members of the session have closed their output; return the runner's exit code."""
    assert runner.stdout is not None
    runner.stdout.read()
    runner.stdout.close()
    return runner.wait()


def test_a_job_beyond_its_limit_is_ended_with_its_session(
    runner: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    stop_file = tmp_path / "stop.1.json"

    watchdog.main(0.0, 1000.0, str(stop_file), runner.pid)

    assert end(runner) == -signal.SIGTERM
    assert json.loads(stop_file.read_text())["why"] == "timeout"
    assert list(tmp_path.iterdir()) == [stop_file]


def test_what_another_process_began_is_finished(runner: subprocess.Popen[bytes], tmp_path: Path) -> None:
    stop_file = tmp_path / "stop.1.json"
    stop_file.write_text("cancel")

    watchdog.main(0.0, 0.0, str(stop_file), runner.pid)

    assert end(runner) == -signal.SIGKILL
    assert stop_file.read_text() == "cancel"


def test_a_job_that_has_ended_is_left_alone(runner: subprocess.Popen[bytes], tmp_path: Path) -> None:
    os.kill(runner.pid, signal.SIGKILL)

    watchdog.main(1000.0, 0.0, str(tmp_path / "stop.1.json"), runner.pid)

    assert list(tmp_path.iterdir()) == []
    os.killpg(runner.pid, signal.SIGKILL)
    end(runner)

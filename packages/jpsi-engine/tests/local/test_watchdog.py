"""A job's time limit is kept although no client lives."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi_engine import host
from jpsi_engine.local import watchdog
from jpsi_testing.threads import in_this_thread


@pytest.fixture
def runner() -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads a session, which has another member, and that ends at TERM."""
    command = ["sh", "-c", "sleep 1000 & echo; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        yield process
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch, runner: subprocess.Popen[bytes]) -> None:
    assert runner.stdout is not None
    runner.stdout.read(1)
    monkeypatch.setattr(watchdog, "RUNNER_FD", os.pidfd_open(runner.pid))
    monkeypatch.setattr(watchdog, "CLIENT_SECONDS", 0.0)
    monkeypatch.setattr(watchdog, "_POLL_SECONDS", 0.0)


def start(runner: subprocess.Popen[bytes]) -> int:
    process = host.identify(runner.pid)
    assert process is not None
    return process.start


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

    watchdog.main(0.0, 1000.0, str(stop_file), runner.pid, start(runner))

    assert end(runner) == -signal.SIGTERM
    assert json.loads(stop_file.read_text())["why"] == "timeout"
    assert list(tmp_path.iterdir()) == [stop_file]


def test_what_another_process_began_is_finished(runner: subprocess.Popen[bytes], tmp_path: Path) -> None:
    stop_file = tmp_path / "stop.1.json"
    stop_file.write_text("cancel")

    watchdog.main(0.0, 0.0, str(stop_file), runner.pid, start(runner))

    assert end(runner) == -signal.SIGKILL
    assert stop_file.read_text() == "cancel"


def test_a_job_that_has_ended_is_left_alone(runner: subprocess.Popen[bytes], tmp_path: Path) -> None:
    os.kill(runner.pid, signal.SIGKILL)

    watchdog.main(1000.0, 0.0, str(tmp_path / "stop.1.json"), runner.pid, start(runner))

    assert list(tmp_path.iterdir()) == []


def test_a_member_whose_name_is_cut_in_a_character_is_ended(tmp_path: Path) -> None:
    program = tmp_path / ("x" * 14 + "\u00e9")
    program.symlink_to("/bin/sh")

    with subprocess.Popen(["sh", "-c", "read word"], executable=program, stdin=subprocess.PIPE) as process:
        members = watchdog._members(os.getsid(0))

    assert process.pid in dict(members)


@pytest.mark.parametrize("has_ended", [False, True])
def test_another_session_with_the_number_of_the_old_one_is_left_alone(
    runner: subprocess.Popen[bytes], has_ended: bool
) -> None:
    members = watchdog._members(runner.pid)
    other = {(pid, began - 1) for pid, began in members}
    began = start(runner)
    if has_ended:
        runner.kill()
        runner.wait()

    kept = watchdog._left(runner.pid, began, members)
    refused = watchdog._left(runner.pid, began - 1, other)

    assert (kept, refused) == (members, set())


def test_a_runner_that_ends_while_the_stop_is_recorded_is_left_alone(
    runner: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(_: str) -> bool:
        runner.kill()
        runner.wait()
        return True

    monkeypatch.setattr(watchdog, "_record_stop", slow)
    began = start(runner)

    watchdog.main(0.0, 0.0, str(tmp_path / "stop.1.json"), runner.pid, began)

    os.killpg(runner.pid, 0)


def test_a_link_that_nfs_made_twice_counts_as_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def twice(source: str, target: str) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", in_this_thread(twice, os.link))

    assert watchdog._record_stop(str(tmp_path / "stop.1.json"))
    assert not watchdog._record_stop(str(tmp_path / "stop.1.json"))


def test_the_time_in_which_the_machine_sleeps_counts(
    runner: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([0.0, 3600.0])
    monkeypatch.setattr(time, "clock_gettime", in_this_thread(lambda _: next(times), time.clock_gettime))

    assert not watchdog._has_ended(3600.0)

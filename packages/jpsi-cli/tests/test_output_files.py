"""A file that was there before the job is no output of a job that has not opened it."""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import Started
from jpsi_testing.fake import FakeScheduler, on_path

Run = Callable[..., subprocess.CompletedProcess[bytes]]
FILES = ("--stdout", "res.txt", "--stderr", "er.txt")


@pytest.fixture(autouse=True)
def _old_files(tmp_path: Path) -> None:
    for name in ("res.txt", "er.txt"):
        (tmp_path / name).write_text("OLD\n")
        os.utime(tmp_path / name, (1, 1))


@pytest.fixture
def held(run: Run) -> Iterator[str]:
    job = run("submit", "--hold", *FILES, "--", "sh", "-c", "echo new; echo NEW >&2").stdout.decode().strip()
    yield job
    run("cancel", job)


def test_a_job_that_failed_to_open_its_files_has_no_output(run: Run, tmp_path: Path) -> None:
    failed = run("run", "--name", "fit", "--stdin", "missing", *FILES, "--", "cat")

    shown, errors, explained = run("logs", "fit"), run("logs", "--stderr", "fit"), run("explain", "fit")

    assert failed.stderr.decode().endswith("standard input could not be opened: missing\n")
    assert [(it.returncode, it.stdout) for it in (shown, errors)] == [(125, b"")] * 2
    where = f"the job did not open {tmp_path}/res.txt, which was there before\n"
    assert shown.stderr.decode() == f"jpsi: there is no output: {where}"
    assert b"OLD" not in explained.stdout


def test_a_job_that_has_not_begun_has_written_nothing(run: Run, held: str) -> None:
    waiting = run("logs", held)
    run("cancel", held)
    cancelled = run("logs", held)

    assert (waiting.returncode, waiting.stdout) == (0, b"")
    assert waiting.stderr.decode().endswith(" has written nothing yet\n")
    assert (cancelled.returncode, cancelled.stdout) == (125, b"")
    assert cancelled.stderr.decode().endswith(" never started, and so has no output\n")


def test_following_begins_with_the_first_line_of_the_job(
    run: Run, start: Callable[..., Started], environment: dict[str, str]
) -> None:
    """While the job waits in the queue, the file has what others wrote."""
    with FakeScheduler(slots=0) as fake, on_path("slurm", fake):
        environment["PATH"] = os.environ["PATH"]
        command = ("submit", "-x", "slurm", *FILES, "--", "sh", "-c", "echo new")
        following = start("logs", "-f", run(*command).stdout.decode().strip())
        # it says why the job waits, once that has waited for a while
        assert following.process.stderr is not None
        assert select.select([following.process.stderr], [], [], 60)[0]
        with fake.lock:
            fake.slots = 8
            fake.settle()

        code, out, _ = following.end()

    assert (code, out) == (0, b"new\n")


def test_the_file_of_a_job_that_ran_is_shown(run: Run, tmp_path: Path) -> None:
    job = run("submit", *FILES, "--", "sh", "-c", "echo new").stdout.decode().strip()
    run("wait", job)
    # a job may set any time
    os.utime(tmp_path / "res.txt", (1, 1))

    assert (run("logs", job).stdout, run("logs", "--stderr", job).stdout) == (b"new\n", b"")


def test_a_message_points_to_no_empty_file(run: Run) -> None:
    failed = run("run", *FILES, "--", "./missing").stderr.decode()

    assert "er.txt" not in failed

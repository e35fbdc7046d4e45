"""The options --retry and --grow, and the process by which `jpsi submit` has jobs submitted again."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import jpsi
from jpsi_testing.waiting import eventually

Run = Callable[..., subprocess.CompletedProcess[bytes]]
COMMAND = 'echo ran | tee -a tries; test "$(wc -l <tries)" = 3 || exit 75'


def runs_of(folder: Path) -> int:
    tries = folder / "tries"
    return len(tries.read_text().splitlines()) if tries.exists() else 0


def test_run_waits_for_the_last_attempt(run: Run, tmp_path: Path) -> None:
    done = run("run", "--executor", "local", "--retry", "75=2", "--", "sh", "-c", COMMAND)

    assert (done.returncode, runs_of(tmp_path), done.stdout) == (0, 3, b"ran\n" * 3)


def test_submit_starts_a_process_that_submits_again(run: Run, tmp_path: Path) -> None:
    done = run("submit", "--executor", "local", "--retry", "75=2", "--", "sh", "-c", COMMAND)
    job = done.stdout.decode().strip()

    assert (done.returncode, f"If it is killed, jpsi wait {job} goes on" in done.stderr.decode()) == (0, True)
    assert eventually(lambda: json.loads(run("show", "--json", job).stdout)[0]["state"] == "COMPLETED")
    assert runs_of(tmp_path) == 3
    explained = run("explain", job).stdout.decode()
    assert explained.startswith("COMPLETED: ")
    assert "attempt 1 ended at " in explained
    assert "attempt 2 ended at " in explained


def test_a_job_between_two_attempts_is_shown_and_cancelled(run: Run, tmp_path: Path) -> None:
    spec = jpsi.JobSpec("/bin/sh", ["-c", COMMAND], directory=tmp_path)
    spec.attributes.retry = {"75": 2, "delay": 3600}
    (tmp_path / "job.yaml").write_text(jpsi.write_document(spec))
    job = run("submit", "--executor", "local", "-f", "job.yaml").stdout.decode().strip()

    assert eventually(lambda: "attempt 2 follows, not before" in run("explain", job).stdout.decode())
    cancelled = run("cancel", job)

    assert cancelled.returncode == 0
    assert run("explain", job).stdout.decode().startswith("CANCELED")
    assert runs_of(tmp_path) == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--retry", "oom"], "'oom' is not of the form NAME=NUMBER,..., such as oom=3,timeout=1"),
        (["--retry", "oom=1.5"], "'oom=1.5' is not of the form NAME=NUMBER"),
        (["--retry", "lust=1"], "lust is none of out_of_memory, timeout"),
        (["--retry", "timeout=1", "--grow", "cores=2"], "cores does not grow, only memory and time"),
        (["--retry", "oom=1", "--grow", "memory=2"], "grow_memory needs a first request"),
    ],
)
def test_a_wrong_option_is_named(run: Run, options: list[str], problem: str) -> None:
    done = run("run", "--executor", "local", *options, "--", "true")

    assert done.returncode != 0
    assert problem in done.stderr.decode()

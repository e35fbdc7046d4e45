"""Jobs that failed are submitted again, with one word and without their mistakes in bookkeeping."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jpsi_testing.fake import FakeScheduler, on_path

Run = Callable[..., subprocess.CompletedProcess[bytes]]
# An element completes once its file is there.
_COMMAND = ("sh", "-c", "echo $JPSI_ARRAY_INDEX; test -e ok-$JPSI_ARRAY_INDEX")


def printed(result: subprocess.CompletedProcess[bytes]) -> str:
    assert (result.returncode, result.stderr) == (0, b"")
    return result.stdout.decode().strip()


def listed(run: Run) -> list[dict[str, Any]]:
    return list(json.loads(run("ls", "--json").stdout))


@pytest.fixture
def fake() -> Iterator[FakeScheduler]:
    with FakeScheduler(slots=8) as fake, on_path("slurm", fake):
        yield fake


@pytest.fixture
def slurm(run: Run, fake: FakeScheduler, environment: dict[str, str]) -> Run:
    """Run `jpsi` with the fake Slurm on its PATH, as the default executor."""
    Path(environment["XDG_CONFIG_HOME"], "jpsi").mkdir()
    Path(environment["XDG_CONFIG_HOME"], "jpsi", "config.yaml").write_text("default_executor: slurm\n")
    here = {**environment, "PATH": os.environ["PATH"]}
    return lambda *arguments, **options: run(*arguments, **{"env": here, **options})


def test_only_the_elements_that_failed_run_again_with_their_indices(slurm: Run, tmp_path: Path) -> None:
    (tmp_path / "ok-1").touch()
    array = printed(slurm("submit", "--name", "sweep", "--array", "0-2", "--", *_COMMAND))
    assert slurm("wait", array).returncode == 1
    (tmp_path / "ok-0").touch()
    (tmp_path / "ok-2").touch()

    again = printed(slurm("resubmit", "--failed", array))
    assert slurm("wait", again).returncode == 0
    jobs = [job for job in listed(slurm) if job["array_id"] == again]
    assert [(job["name"], job["array_index"]) for job in jobs] == [("sweep", 0), ("sweep", 2)]
    assert [job["native_id"].partition("_")[2] for job in jobs] == ["1", "2"]
    assert slurm("logs", again).stdout.decode().splitlines()[1::2] == ["0", "2"]
    assert slurm("wait", array).returncode == 1
    assert [it["array_id"] for it in listed(slurm)] == [array] * 3 + [again] * 2


def test_what_was_resubmitted_is_not_resubmitted_again(slurm: Run) -> None:
    job = printed(slurm("submit", "--name", "sim", "--", "false"))
    slurm("wait", job)
    again = printed(slurm("resubmit", "--failed", "sim"))
    slurm("wait", again)

    (third,) = printed(slurm("resubmit", "--failed", "sim")).split()
    result = slurm("resubmit", "--failed", job)
    assert (result.returncode, result.stdout) == (0, b"")
    assert result.stderr.decode() == (
        f"jpsi: nothing to submit: what failed was submitted again before, as {again}\n"
    )
    assert third not in {job, again}
    assert len(listed(slurm)) == 3


def test_one_element_is_repeated_alone(slurm: Run, tmp_path: Path) -> None:
    array = printed(slurm("submit", "--array", "0-1", "--", *_COMMAND))
    slurm("wait", array)
    (tmp_path / "ok-1").touch()

    again = printed(slurm("resubmit", "1_2"))
    assert slurm("wait", again).returncode == 0
    (job,) = [it for it in listed(slurm) if it["id"] == again]
    assert (job["array_id"], job["array_index"]) == (None, 1)


def test_options_override_the_request_and_the_directory_stays(run: Run, tmp_path: Path) -> None:
    job = printed(run("submit", "--time", "10m", "--", "sh", "-c", "pwd; false"))
    run("wait", job)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    again = printed(run("resubmit", "--time", "2h", "--memory", "1G", job, cwd=elsewhere))
    run("wait", again)
    (shown,) = json.loads(run("show", "--json", again).stdout)
    assert "7200" in json.dumps(shown["document"])
    assert str(2**30) in json.dumps(shown["document"])
    assert run("logs", again).stdout.decode() == f"{tmp_path}\n"


def test_dependencies_are_left_out(slurm: Run, fake: FakeScheduler) -> None:
    fake.slots = 0
    first = printed(slurm("submit", "--", "true"))
    job = printed(slurm("submit", "--after", f"any:{first}", "--", "false"))
    with fake.lock:
        fake.slots = 8
        fake.settle()
    slurm("wait", job)

    result = slurm("resubmit", job)
    again = result.stdout.decode().strip()
    assert result.stderr.decode() == (
        "jpsi: the old jobs waited for others, the new ones do not; --after has them wait\n"
    )
    slurm("wait", again)
    assert "after:" not in slurm("show", again).stdout.decode()


def test_a_job_that_was_submitted_held_is_repeated_at_once(slurm: Run) -> None:
    job = printed(slurm("submit", "--hold", "--", "false"))
    slurm("release", job)
    slurm("wait", job)

    again = printed(slurm("resubmit", job))
    assert slurm("wait", "--timeout", "30", again).returncode == 1


def test_the_new_job_may_wait_for_others(run: Run) -> None:
    job = printed(run("submit", "--", "false"))
    run("wait", job)
    held = run("submit", "--hold", "--", "true").stdout.decode().strip()

    again = run("resubmit", "--after", held, job).stdout.decode().strip()
    (shown,) = json.loads(run("show", "--json", again).stdout)
    assert (shown["state"], shown["remark"].startswith(f"it is submitted after {held[:8]}")) == ("NEW", True)
    assert run("cancel", again, held).returncode == 0


def test_a_job_that_has_not_ended_is_not_repeated(run: Run) -> None:
    job = run("submit", "--hold", "--", "true").stdout.decode().strip()

    result = run("resubmit", job)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.decode() == (
        f"jpsi: job {job} has not ended: it is held, and not submitted yet: jpsi release {job}\n"
    )


def test_nothing_failed(run: Run) -> None:
    job = printed(run("submit", "--", "true"))
    run("wait", job)

    result = run("resubmit", "--failed", job)
    assert (result.returncode, result.stdout) == (0, b"")
    assert result.stderr == b"jpsi: nothing to submit: none has failed or was cancelled\n"


def test_a_document_of_an_element_is_that_of_a_single_job(slurm: Run, tmp_path: Path) -> None:
    array = printed(slurm("submit", "--array", "4-5", "--", *_COMMAND))
    slurm("wait", array)
    (tmp_path / "ok-5").touch()

    document = slurm("show", "--document", "1_2").stdout
    assert b"jpsi.array_id" not in document
    result = slurm("run", "-f", "-", input=document)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"5\n", b"")
    assert [it["array_id"] for it in listed(slurm)] == [array, array, None]


def test_documents_of_several_jobs_are_lines_of_json(slurm: Run, tmp_path: Path) -> None:
    array = printed(slurm("submit", "--array", "4-5", "--", *_COMMAND))
    slurm("wait", array)

    refused = slurm("show", "--document", array)
    assert refused.returncode == 2
    assert refused.stderr.decode() == (
        "jpsi: these are 2 jobs, and a document is one; --json writes a document on each line, for: "
        "jpsi submit --many -\n"
    )
    lines = slurm("show", "--document", "--json", array).stdout
    assert len(lines.splitlines()) == 2
    assert slurm("submit", "--many", "-", input=lines).returncode == 0

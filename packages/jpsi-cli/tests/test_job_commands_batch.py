"""The commands about jobs of a fake batch system: elements of arrays, and pending jobs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import jpsi
from jpsi_testing import PluginDirectory, toy
from jpsi_testing.fake import FakeScheduler, FakeState, on_path

if TYPE_CHECKING:
    from conftest import Started

Run = Callable[..., subprocess.CompletedProcess[bytes]]
TIMEOUT_SECONDS = 60.0
CONFIG = """
default_executor: toy
executors:
  toy: {config: {shortest_interval: 0.1, longest_interval: 0.3, grace: 0.5}}
"""


@pytest.fixture
def fake(plugin_directory: PluginDirectory) -> Iterator[FakeScheduler]:
    plugin_directory.add(
        "jpsi-toy",
        "0.1",
        entry_points={"jpsi.executors": {"toy": "jpsi_toy"}},
        files={"jpsi_toy.py": Path(toy.__file__).read_text()},
    )
    # no free slots, so jobs are pending
    with FakeScheduler(kill_delay=0.5, slots=0) as scheduler, on_path("toy", scheduler):
        yield scheduler


@pytest.fixture
def environment(
    fake: FakeScheduler, plugin_directory: PluginDirectory, environment: dict[str, str]
) -> dict[str, str]:
    folder = Path(environment["XDG_CONFIG_HOME"], "jpsi")
    folder.mkdir()
    (folder / "config.yaml").write_text(CONFIG)
    return {**environment, "JPSI_PLUGIN_PATH": str(plugin_directory.path)}


@pytest.fixture
def ids(run: Run) -> list[str]:
    """Return the ids of three jobs in one array, which end with 0, 1 and 2."""
    specs = [jpsi.JobSpec("sh", ["-c", f"echo {code}; exit {code}"], name="mine") for code in range(3)]
    lines = [json.dumps(json.loads(jpsi.write_document(spec, as_json=True))) for spec in specs]
    result = run("submit", "--many", "-", input="\n".join(lines).encode())
    assert (result.returncode, result.stderr) == (0, b"")
    return result.stdout.decode().split()


def free_slots(fake: FakeScheduler) -> None:
    with fake.lock:
        fake.slots = 8
        fake.settle()


def listed(run: Run, *arguments: str) -> dict[str, dict[str, Any]]:
    return {job["id"]: job for job in json.loads(run("ls", "--json", *arguments).stdout)}


def test_elements_of_an_array_are_jobs_like_others(run: Run, fake: FakeScheduler, ids: list[str]) -> None:
    waiting = listed(run)
    assert {job["native_id"]: job["state"] for job in waiting.values()} == {
        f"1.{index}": "QUEUED" for index in (1, 2, 3)
    }
    shown = run("show", "mine")
    cancelled = run("cancel", waiting[ids[1]]["native_id"])
    free_slots(fake)
    waited = run("wait", ids[0], ids[2])

    assert shown.returncode == 0
    assert all(job_id.encode() in shown.stdout for job_id in ids)
    assert (cancelled.returncode, cancelled.stderr) == (0, b"")
    assert waited.returncode == 2
    assert run("logs", ids[2]).stdout == b"2\n"
    assert [listed(run)[job_id]["state"] for job_id in ids] == ["COMPLETED", "CANCELED", "FAILED"]
    assert run("logs", ids[1]).returncode == 125


def test_listing_queries_no_batch_system(run: Run, environment: dict[str, str], ids: list[str]) -> None:
    quiet = run("ls", "--json", env={**environment, "PATH": "/nonexistent"})

    assert (quiet.returncode, quiet.stderr) == (0, b"")
    assert sorted(job["id"] for job in json.loads(quiet.stdout)) == sorted(ids)


def test_refresh_queries_reasons_and_ends(run: Run, fake: FakeScheduler, ids: list[str]) -> None:
    (other,) = run("submit", "--", "sh", "-c", "exit 7").stdout.decode().split()
    held = run("hold", other)
    free_slots(fake)
    assert fake.wait_for(lambda: sum(job.state.final for job in fake.jobs) == 3, TIMEOUT_SECONDS)

    assert held.returncode == 0
    assert listed(run, "--refresh")[other]["state"] == "QUEUED"
    assert [listed(run)[job_id]["exit_code"] for job_id in ids] == [0, 1, 2]
    assert run("release", other).returncode == 0
    assert run("wait", other).returncode == 7


def test_refreshing_a_target_finds_jobs_of_other_hosts(
    run: Run, fake: FakeScheduler, environment: dict[str, str], tmp_path: Path
) -> None:
    config = Path(environment["XDG_CONFIG_HOME"], "jpsi", "config.yaml")
    url = f"remote://{tmp_path}/remote home"
    config.write_text(f"{CONFIG}targets:\n  cluster: {{executor: toy, url: '{url}'}}\n")
    free_slots(fake)
    sign = tmp_path / "sign"
    os.mkfifo(sign)
    submitted = run("submit", "-x", "cluster", "--", "sh", "-c", f"echo >'{sign}'; sleep 1000")
    assert (submitted.returncode, submitted.stderr) == (0, b"")
    with sign.open() as stream:  # it has begun, so no process can still be submitting it
        stream.read()
    job_id = submitted.stdout.decode().strip()
    other = {**environment, "XDG_STATE_HOME": str(tmp_path / "state of another machine")}

    def ids(*options: str) -> list[str]:
        return run("ls", "--ids", *options, env=other).stdout.decode().split()

    assert ids("--refresh") == []
    assert ids("--refresh", "-x", "cluster") == [job_id]
    assert ids() == [job_id]
    assert run("cancel", job_id, env=other).returncode == 0


def test_the_submit_script_is_shown(run: Run, fake: FakeScheduler) -> None:
    shown = json.loads(run("script", "--json", "--name", "mine", "--", "true").stdout)

    assert shown["command"][0] == "tsubmit"
    assert shown["path"] in shown["script"]
    assert fake.jobs == []


def test_explain_queries_the_pending_reason(run: Run, ids: list[str]) -> None:
    result = run("explain", ids[0])

    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.startswith(b"QUEUED: it waits, for ")


def test_a_job_that_never_started_has_no_output(run: Run, ids: list[str]) -> None:
    waiting = run("logs", ids[0])
    run("cancel", ids[0])
    cancelled = run("logs", ids[0])

    assert (waiting.returncode, cancelled.returncode) == (0, 125)
    assert cancelled.stderr.decode() == f"jpsi: job {ids[0]} (mine) never started, and so has no output\n"


def test_attach_follows_a_job_of_another_program(
    run: Run, environment: dict[str, str], fake: FakeScheduler, tmp_path: Path
) -> None:
    free_slots(fake)
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexit 5\n")
    with script.open("rb") as file:
        printed = subprocess.run(["tsubmit"], stdin=file, env=environment, capture_output=True, check=True)
    native_id = printed.stdout.decode().split()[-1]
    assert fake.wait_for(lambda: fake.job(native_id).state is FakeState.FAILED, TIMEOUT_SECONDS)

    result = run("attach", native_id, "--json")

    assert (result.returncode, result.stdout) == (5, b"")
    assert run("attach", "no id").returncode == 125


def test_attaching_to_an_unknown_job_warns_immediately(run: Run) -> None:
    result = run("attach", "99")

    messages = result.stderr.decode().splitlines()
    assert result.returncode == 125
    assert messages[0] == "jpsi: warning: toy knows no job 99; jpsi asks again before it gives up"
    assert messages[1].startswith(
        "jpsi: cannot follow 99 on toy: the batch system does not know the native id"
    )


def test_attaching_to_an_unknown_job_warns_immediately_on_a_terminal(
    start_on_terminal: Callable[..., Started],
) -> None:
    started = start_on_terminal("attach", "99")

    started.wait_for(b"jpsi: warning: toy knows no job 99; jpsi asks again before it gives up")
    assert started.end()[0] == 125


def test_attaching_during_an_outage_warns_immediately(
    start: Callable[..., Started], fake: FakeScheduler
) -> None:
    fake.faults.fail("tstat", None, stderr="cannot contact the controller\n")
    started = start("attach", "99")
    assert started.process.stderr is not None

    messages = started.process.stderr.readline().decode()

    assert messages.startswith("jpsi: warning: toy: ")
    assert "cannot contact the controller" in messages


def test_refusals_of_the_batch_system_are_reported_per_job(run: Run, fake: FakeScheduler) -> None:
    documents = [jpsi.write_document(jpsi.JobSpec("true", name=name), as_json=True) for name in "ab"]
    fake.faults.fail("tsubmit", stderr="no more than one\n")

    result = run(
        "submit", "--many", "-", input="\n".join(json.dumps(json.loads(it)) for it in documents).encode()
    )

    messages = result.stderr.decode().splitlines()
    assert (result.returncode, len(result.stdout.split())) == (125, 1)
    assert messages[0] == "jpsi: 1 of 2 jobs could not be submitted:"
    assert messages[1].startswith("  - standard input, line ")
    assert "no more than one" in "".join(messages)


def test_many_jobs_are_watched(
    run: Run, fake: FakeScheduler, ids: list[str], start_on_terminal: Callable[..., Started]
) -> None:
    started = start_on_terminal("ls", "--watch", "--refresh")
    started.wait_for(b"3 QUEUED")
    free_slots(fake)
    started.wait_for(b"1 COMPLETED, 2 FAILED")
    started.type(b"\x03")

    assert started.end()[0] == 0


def test_jobs_of_an_uninstalled_plugin_stay_listed(
    run: Run, environment: dict[str, str], ids: list[str]
) -> None:
    without_plugin = {**environment, "JPSI_PLUGIN_PATH": ""}
    Path(environment["XDG_CONFIG_HOME"], "jpsi", "config.yaml").unlink()

    found = json.loads(run("ls", "--json", env=without_plugin).stdout)
    refused = run("cancel", ids[0], env=without_plugin)

    assert {job["executor"] for job in found} == {"toy"}
    assert len(found) == 3
    assert refused.returncode == 125
    assert f"jpsi: job {ids[0]}: no executor 'toy'" in refused.stderr.decode()


# --------------------------------------------------------------------------- ambiguous submissions


@pytest.fixture
def ambiguous_id(run: Run, fake: FakeScheduler) -> str:
    """Return the id of a job that the batch system accepted without confirming it."""
    fake.faults.cut("tsubmit")
    fake.faults.down()
    submitted = run("submit", "--name", "mine", "--", "sh", "-c", "exit 3")
    assert (submitted.returncode, submitted.stdout) == (125, b"")
    assert b"which will not run" in submitted.stderr
    (job_id,) = listed(run)
    return job_id


def test_a_withdrawn_submission_is_reported(run: Run, fake: FakeScheduler, ambiguous_id: str) -> None:
    sentence = "it was not submitted, and cannot run: toy gave no clear answer: accepted"

    def assert_reported() -> None:
        job = listed(run)[ambiguous_id]
        assert (job["state"], job["exit_code"], job["remark"]) == ("NEW", None, sentence)
        shown = run("show", ambiguous_id).stdout.decode()
        assert "CANCELED" not in shown
        assert sentence in shown
        explained = json.loads(run("explain", "--json", ambiguous_id).stdout)
        assert (explained["state"], explained["sentence"]) == ("NEW", sentence)
        end = f"end it, so that its program does not submit it either: jpsi cancel {ambiguous_id}"
        assert explained["advice"] == [f"{end}; then submit it again: jpsi resubmit {ambiguous_id}"]
        waited = run("wait", ambiguous_id)
        assert waited.returncode == 125
        assert waited.stderr.decode() == f"jpsi: job {ambiguous_id}: {sentence}\n"

    assert_reported()
    fake.faults.clear()
    free_slots(fake)
    assert fake.wait_for(lambda: all(job.state.final for job in fake.jobs), TIMEOUT_SECONDS)
    assert_reported()


def test_a_withdrawn_submission_is_cancelled_and_submitted_again(
    run: Run, fake: FakeScheduler, ambiguous_id: str
) -> None:
    early = run("resubmit", ambiguous_id)
    cancelled = run("cancel", ambiguous_id)
    fake.faults.clear()
    again = run("resubmit", ambiguous_id)

    assert early.returncode == 2
    assert f"jpsi cancel {ambiguous_id}" in early.stderr.decode()
    assert (cancelled.returncode, cancelled.stderr) == (0, b"")
    assert listed(run)[ambiguous_id]["state"] == "CANCELED"
    assert (again.returncode, again.stderr) == (0, b"")
    assert listed(run)[again.stdout.decode().strip()]["state"] == "QUEUED"


def test_an_ambiguous_submission_is_reported_until_it_is_found(
    run: Run, fake: FakeScheduler, ambiguous_id: str, environment: dict[str, str]
) -> None:
    """The client was killed before it could revoke the attempt."""
    folder = Path(environment["XDG_STATE_HOME"], "jpsi", "work", "toy", "jobs", ambiguous_id)
    for name in ("unsent.1", "claim.1"):
        (folder / name).unlink()
    sentence = "it is not known yet whether it was submitted"

    assert (listed(run)[ambiguous_id]["state"], sentence in listed(run)[ambiguous_id]["remark"]) == (
        "NEW",
        True,
    )
    waited = run("wait", ambiguous_id)
    assert waited.returncode == 125
    assert sentence in waited.stderr.decode()
    assert "cannot contact the toy server" in waited.stderr.decode()
    explained = json.loads(run("explain", "--json", ambiguous_id).stdout)
    assert (explained["state"], sentence in explained["sentence"]) == ("NEW", True)
    assert explained["advice"] == [f"have jpsi look for it: jpsi wait {ambiguous_id}"]

    fake.faults.clear()
    assert json.loads(run("explain", "--json", ambiguous_id).stdout)["state"] == "QUEUED"
    assert (listed(run)[ambiguous_id]["state"], listed(run)[ambiguous_id]["native_id"]) == ("QUEUED", "1")
    free_slots(fake)
    assert run("wait", ambiguous_id).returncode == 3
    assert listed(run)[ambiguous_id]["state"] == "FAILED"


def started(run: Run, tmp_path: Path) -> str:
    """Submit a job, and return its id once it runs."""
    sign = tmp_path / "sign"
    os.mkfifo(sign)
    submitted = run("submit", "--", "sh", "-c", f"echo >'{sign}'; exec sleep 1000")
    with sign.open() as stream:
        stream.read()
    return submitted.stdout.decode().strip()


def test_repeated_refreshes_end_a_job_that_the_batch_system_lost(
    run: Run, fake: FakeScheduler, environment: dict[str, str], tmp_path: Path
) -> None:
    free_slots(fake)
    job_id = started(run, tmp_path)
    with fake.lock:
        (job,) = fake.jobs
        fake.vanish(job.native_id)

    explained = run("explain", job_id)
    states = [listed(run, "--refresh")[job_id]["state"]]
    while states[-1] == "ACTIVE" and len(states) < 20:
        states.append(listed(run, "--refresh")[job_id]["state"])

    assert b"now toy does not mention it" in explained.stdout
    assert f"jpsi wait {job_id}".encode() in explained.stdout
    assert states[-1] == "FAILED"
    assert listed(run)[job_id]["reason"] == "lost"


def test_doctor_reports_state_and_cancel_command_of_a_damaged_job(
    run: Run, fake: FakeScheduler, environment: dict[str, str], tmp_path: Path
) -> None:
    free_slots(fake)
    job_id = started(run, tmp_path)
    (job,) = fake.jobs
    (intent,) = Path(environment["XDG_STATE_HOME"]).glob(f"**/{job_id}/intent.1.json")
    intent.write_bytes(b"")

    running = run("doctor", "--no-job").stdout.decode()
    refused = run("cancel", job_id)
    with on_path("toy", fake):
        subprocess.run(["tdel", job.native_id], check=True)
    assert fake.wait_for(lambda: fake.jobs[0].state.final, TIMEOUT_SECONDS)
    without_plugin = run("doctor", "--no-job").stdout.decode()

    known = f"toy (native id {job.native_id}, tag jpsi-{job_id}-1)"
    assert f"{known} shows it as" in running
    assert f"or end it: tdel {job.native_id}, save its output" in running
    assert refused.returncode == 125
    assert f"{known} does not show it" in without_plugin


def test_an_array_whose_elements_are_submitted_again_is_shown_as_one(
    run: Run, fake: FakeScheduler, tmp_path: Path
) -> None:
    free_slots(fake)
    command = 'echo ran >>"try$JPSI_ARRAY_INDEX"; test "$(wc -l <"try$JPSI_ARRAY_INDEX")" -ge "$1" || exit 75'
    options = ("--array", "7-9", "--retry", "75=1")
    done = run("submit", *options, "--", "sh", "-c", f'set -- "$((JPSI_ARRAY_INDEX - 6))"; {command}')
    array = done.stdout.decode().strip()
    assert done.returncode == 0
    assert "submits again what ends for a reason of --retry" in done.stderr.decode()

    waited = run("wait", array)

    assert waited.returncode != 0
    stored = sorted(json.loads(run("show", "--json", array).stdout), key=lambda it: it["array_index"])
    assert [it["state"] for it in stored] == ["COMPLETED", "COMPLETED", "FAILED"]
    assert [(tmp_path / f"try{index}").read_text().count("ran") for index in (7, 8, 9)] == [1, 2, 2]
    table = run("ls", "--all").stdout.decode()
    assert "2 COMPLETED, 1 FAILED" in table
    assert "index 9 (2.2) failed: exit code 75" in table
    explained = run("explain", stored[2]["id"]).stdout.decode()
    assert "attempt 1 ended at " in explained
    assert "submitted again 1 time" in explained
    assert run("usage", array).returncode == 0
    again = run("resubmit", "--failed", array)
    assert (again.returncode, len(again.stdout.split())) == (0, 1), again.stderr

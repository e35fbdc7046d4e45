from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

import jpsi
from jpsi_cli.output import outcome
from jpsi_cli.output.display import JsonLines, Quiet, Terminal

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
QUEUED = jpsi.JobStatus(jpsi.JobState.QUEUED, time=NOON)
ACTIVE = jpsi.JobStatus(jpsi.JobState.ACTIVE, time=NOON)
COMPLETED = jpsi.JobStatus(jpsi.JobState.COMPLETED, exit_code=0, time=NOON + timedelta(seconds=75))
EXITED = jpsi.JobStatus(
    jpsi.JobState.FAILED,
    exit_code=3,
    message="the executable returned exit code 3",
    reason=jpsi.Reason.EXIT_CODE,
    time=NOON + timedelta(seconds=1.25),
)
LOST = jpsi.JobStatus(jpsi.JobState.FAILED, message="gone\x1b[2J", reason=jpsi.Reason.LOST, time=NOON)
CANCELED = jpsi.JobStatus(jpsi.JobState.CANCELED, message="the job was cancelled", time=NOON)
NOT_FOUND = jpsi.JobStatus(
    jpsi.JobState.FAILED,
    exit_code=127,
    message="not found",
    metadata={"phase": "executable"},
    reason=jpsi.Reason.EXECUTABLE,
)


@pytest.fixture
def job() -> jpsi.Job:
    return jpsi.Job(jpsi.JobSpec("simulate"))


@pytest.mark.parametrize("status", [QUEUED, ACTIVE, COMPLETED, EXITED], ids=lambda status: status.state.value)
def test_the_quiet_display_repeats_no_exit_code(job: jpsi.Job, status: jpsi.JobStatus) -> None:
    assert Quiet().status(job, status) == ""


def test_the_quiet_display_explains_other_failures(job: jpsi.Job) -> None:
    assert Quiet().status(job, LOST) == "jpsi: job failed: gone\\x1b[2J\n"
    assert Quiet().status(job, NOT_FOUND) == "jpsi: job failed: not found\n"
    assert Quiet().status(job, CANCELED) == "jpsi: job cancelled: the job was cancelled\n"


def test_the_element_of_an_array_is_named_by_its_index(job: jpsi.Job) -> None:
    assert job.spec is not None
    job.spec.environment = {"JPSI_ARRAY_INDEX": "13"}

    assert Quiet().status(job, NOT_FOUND) == "jpsi: job failed: index 13: not found\n"


def test_the_quiet_display_says_once_why_a_job_waits_after_some_seconds() -> None:
    display = Quiet()
    waits = attrs.evolve(QUEUED, message="the job requests more time than its partition allows")

    shown = [display.waiting(waits) for _ in range(7)]

    advice = "it never starts like this: lower --time; Ctrl-C ends the waiting"
    reason = f"jpsi: the job waits: {waits.message}; {advice}\n"
    assert shown == ["", "", "", "", reason, "", ""]
    assert display.waiting(attrs.evolve(QUEUED, message="(Priority)")) == "jpsi: the job waits: (Priority)\n"


def test_the_quiet_display_does_not_confirm_its_own_cancellation(job: jpsi.Job) -> None:
    display = Quiet()

    assert display.cancelling() == ""
    assert display.status(job, CANCELED) == ""


def test_json_holds_everything_on_one_line(job: jpsi.Job) -> None:
    line = JsonLines().status(job, EXITED)

    assert line.endswith("}\n")
    assert line.count("\n") == 1
    assert json.loads(line) == {
        "job_id": job.id,
        "native_id": None,
        "executor": None,
        "state": "FAILED",
        "time": "2026-01-02T12:00:01.250000+00:00",
        "exit_code": 3,
        "message": "the executable returned exit code 3",
        "reason": "exit_code",
        "evidence": None,
        "metadata": {},
    }


def test_a_terminal_shows_a_line_for_each_state(job: jpsi.Job) -> None:
    display = Terminal()

    assert display.status(job, QUEUED) == f"jpsi: QUEUED     job {job.id}\n"
    assert display.status(job, ACTIVE) == "jpsi: ACTIVE\n"
    assert display.status(job, COMPLETED) == "jpsi: COMPLETED  after 0:01:15\n"
    assert (
        display.status(job, EXITED) == "jpsi: FAILED     the executable returned exit code 3 (after 1.2 s)\n"
    )
    assert display.status(job, LOST) == "jpsi: FAILED     gone\\x1b[2J (after 0.0 s)\n"


class Submitted(jpsi.Job):
    """A job that has an executor."""

    def __init__(self, native_id: str) -> None:
        super().__init__()
        self._bind(native_id, 1)
        self._publish(QUEUED)

    @property
    def executor(self) -> Any:  # in place of an executor
        return SimpleNamespace(name="slurm")


@pytest.mark.parametrize(
    ("width", "native_id", "expected"),
    [
        (120, "4711", "native id 4711 on slurm, job {id}"),
        (80, "4711", "native id 4711 on slurm"),
        (80, "1" * 40, "job {id} on slurm"),
    ],
    ids=["both", "the native id is shorter", "the native id is longer"],
)
def test_a_terminal_shows_the_id_of_a_queued_job(
    monkeypatch: pytest.MonkeyPatch, width: int, native_id: str, expected: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    job, display = Submitted(native_id), Terminal()

    assert display.status(job, QUEUED) == f"jpsi: QUEUED     {expected.format(id=job.id)}\n"
    is_new = len(native_id) > 36
    assert display.status(job, ACTIVE) == ("jpsi: ACTIVE" + f"     native id {native_id}" * is_new + "\n")


def test_a_terminal_shows_each_wait_reason_once() -> None:
    display = Terminal()
    first, second = (attrs.evolve(QUEUED, message=text) for text in ("the nodes are in use", "held\x1b[2J"))

    lines = [display.waiting(status) for status in (QUEUED, first, first, second, ACTIVE)]

    assert lines == [
        "",
        "jpsi: QUEUED     the nodes are in use\n",
        "",
        "jpsi: QUEUED     held\\x1b[2J\n",
        "",
    ]


def test_a_failed_post_launch_is_reported(job: jpsi.Job) -> None:
    failed = [attrs.evolve(it, metadata={"post_launch": "failed"}) for it in (COMPLETED, EXITED)]

    assert [Quiet().status(job, status) for status in failed] == ["jpsi: warning: post_launch failed\n"] * 2
    display = Terminal()
    display.status(job, ACTIVE)
    assert [display.status(job, status) for status in failed] == [
        "jpsi: COMPLETED  after 0:01:15; post_launch failed\n",
        "jpsi: FAILED     the executable returned exit code 3; post_launch failed (after 1.2 s)\n",
    ]


def test_a_failed_staging_step_is_reported_once(job: jpsi.Job) -> None:
    stage_out_failed = attrs.evolve(
        EXITED, metadata={"stage_out": "failed"}, message=f"{EXITED.message}; stage_out failed: a\x1b"
    )
    cleanup_failed = attrs.evolve(COMPLETED, metadata={"cleanup": "failed"}, message="cleanup failed: b")

    assert [Quiet().status(job, status) for status in (stage_out_failed, cleanup_failed)] == [
        "jpsi: warning: stage_out failed: a\\x1b\n",
        "jpsi: warning: cleanup failed: b\n",
    ]
    display = Terminal()
    display.status(job, ACTIVE)
    assert [display.status(job, status) for status in (stage_out_failed, cleanup_failed)] == [
        "jpsi: FAILED     the executable returned exit code 3; stage_out failed: a\\x1b (after 1.2 s)\n",
        "jpsi: COMPLETED  after 0:01:15; cleanup failed: b\n",
    ]


def test_a_job_that_never_ran_has_no_time(job: jpsi.Job) -> None:
    assert Terminal().status(job, CANCELED) == "jpsi: CANCELED   the job was cancelled\n"


def test_an_end_without_a_message_has_its_exit_code(job: jpsi.Job) -> None:
    assert outcome.explain_end(job, jpsi.JobStatus(jpsi.JobState.FAILED, exit_code=4)) == "exit code 4"
    assert outcome.explain_end(job, jpsi.JobStatus(jpsi.JobState.FAILED)) == "no reason is known"

"""The fake of OAR does what the recordings show."""

from __future__ import annotations

import json

import pytest

from jpsi.plugin import CommandResult
from jpsi_oar import fake
from jpsi_testing.fake import FakeClock, FakeScheduler, FakeState, Invocation, Outcome, answer


@pytest.fixture
def scheduler() -> FakeScheduler:
    return FakeScheduler(FakeClock(), slots=4, outcome=Outcome(60, 3))


def _call(scheduler: FakeScheduler, *argv: str) -> CommandResult:
    return answer(scheduler, fake, Invocation(argv=argv, environment={"PATH": "/bin"}))


def _rows(scheduler: FakeScheduler, condition: str) -> list[dict[str, object]]:
    text = _call(scheduler, "oarstat", "-f", "-J", "--sql", condition).stdout
    return list(json.loads(text).values()) if text else []


def test_a_job_waits_for_another(scheduler: FakeScheduler) -> None:
    _call(scheduler, "oarsub", "true")
    _call(scheduler, "oarsub", "--anterior=1", "true")
    assert scheduler.job("2").state is FakeState.PENDING

    scheduler.cancel("1")
    scheduler.settle()

    assert scheduler.job("2").state is FakeState.RUNNING


def test_a_requeued_job_gets_a_new_number_and_keeps_its_array_id(scheduler: FakeScheduler) -> None:
    _call(scheduler, "oarsub", "--type=besteffort", "--name=x jpsi-a-1", "true")
    scheduler.requeue("1")

    first, last = sorted(_rows(scheduler, "array_id = 1"), key=lambda it: str(it["Job_Id"]))

    assert (first["Job_Id"], first["state"]) == (1, "Error")
    assert (last["Job_Id"], last["array_id"], last["state"]) == (2, 1, "Running")
    assert scheduler.job("1").environment["OAR_JOB_ID"] == "2"


def test_elements_have_numbers_of_their_own(scheduler: FakeScheduler) -> None:
    printed = _call(scheduler, "oarsub", "--array=3", "true").stdout

    assert printed.endswith("OAR_JOB_ID=1\nOAR_JOB_ID=2\nOAR_JOB_ID=3\nOAR_ARRAY_ID=1\n")
    (row,) = _rows(scheduler, "array_id = 1 AND array_index IN (2)")
    assert (row["Job_Id"], row["array_index"]) == (2, 2)
    _call(scheduler, "oardel", "--sql", "array_id = 1 AND array_index IN (2)")
    assert [job.state for job in scheduler.jobs] == [
        FakeState.RUNNING,
        FakeState.CANCELLED,
        FakeState.RUNNING,
    ]


@pytest.mark.parametrize("condition", ["job_id = 9", "nosuch = 1", "job_id ="])
def test_without_a_job_nothing_is_printed(scheduler: FakeScheduler, condition: str) -> None:
    result = _call(scheduler, "oarstat", "-f", "-J", "--sql", condition)

    assert (result.returncode, result.stdout) == (0, "")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--queue=nosuch"], 248),
        (["--type=nosuch"], 254),
        (["--resource=/nosuch=1"], 8),
        (["--resource=walltime=abc"], 255),
        (["--reservation=tomorrow"], 7),
        (["--nosuch"], 1),
        (["--name=it's"], 8),
        (["true"], 5),
    ],
    ids=str,
)
def test_what_oar_refuses_is_refused(scheduler: FakeScheduler, options: list[str], code: int) -> None:
    assert _call(scheduler, "oarsub", *options, "true").returncode == code
    assert scheduler.jobs == []

"""The tables that the fake qstat prints for people, with the recorded columns."""

from __future__ import annotations

import pytest

from jpsi_pbs import fake
from jpsi_testing.fake import FakeClock, FakeScheduler, FakeSystem, Invocation, Outcome, answer


@pytest.fixture
def scheduler(fake_clock: FakeClock) -> FakeScheduler:
    return FakeScheduler(fake_clock, slots=1, outcome=Outcome(60))


def run(scheduler: FakeScheduler, fake: FakeSystem, *argv: str, stdin: str = "") -> str:
    return answer(scheduler, fake, Invocation(argv=argv, stdin=stdin)).stdout


def owned(scheduler: FakeScheduler) -> None:
    for job in scheduler.jobs:
        job.owner = "tester"


def test_a_table_of_openpbs(scheduler: FakeScheduler) -> None:
    for name in ("r.sh", "q.sh"):
        run(scheduler, fake.pbs, "qsub", "-N", name, stdin="true\n")
    owned(scheduler)

    assert run(scheduler, fake.pbs, "qstat") == (
        "Job id            Name             User              Time Use S Queue\n"
        "----------------  ---------------- ----------------  -------- - -----\n"
        "1.node01          r.sh             tester            00:00:00 R workq           \n"
        "2.node01          q.sh             tester                   0 Q workq           \n"
    )


def test_a_table_of_torque(scheduler: FakeScheduler, fake_clock: FakeClock) -> None:
    run(scheduler, fake.torque, "qsub", "-N", "j.sh", stdin="true\n")
    owned(scheduler)
    fake_clock.advance(60)

    assert run(scheduler, fake.torque, "qstat", "1") == (
        "Job ID                    Name             User            Time Use S Queue\n"
        "------------------------- ---------------- --------------- -------- - -----\n"
        "1.node01                   j.sh             tester          00:00:00 C batch          \n"
    )


@pytest.mark.parametrize("name", ["pbs", "torque"])
def test_without_jobs_there_is_not_even_a_heading(scheduler: FakeScheduler, name: str) -> None:
    assert run(scheduler, getattr(fake, name), "qstat") == ""


def test_the_full_display_of_a_job_of_openpbs(scheduler: FakeScheduler) -> None:
    run(scheduler, fake.pbs, "qsub", "-N", "r.sh", "-v", "A=1,B=2", stdin="true\n")

    lines = run(scheduler, fake.pbs, "qstat", "-f", "1").splitlines()

    assert lines[:2] == ["Job Id: 1.node01", "    Job_Name = r.sh"]
    assert "    job_state = R" in lines
    assert any(line.startswith("    Variable_List = ") and "A=1,B=2" in line for line in lines)

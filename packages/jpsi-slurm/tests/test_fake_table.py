"""The tables of the fake squeue and sacct, and their formats for programs."""

from __future__ import annotations

import pytest

from jpsi.plugin import CommandResult
from jpsi_slurm import fake
from jpsi_testing.fake import FakeClock, FakeJob, FakeScheduler, FakeState, Invocation, Outcome, answer


@pytest.fixture
def scheduler(fake_clock: FakeClock) -> FakeScheduler:
    scheduler = FakeScheduler(fake_clock, slots=1, outcome=Outcome(seconds=4000, exit_code=3))
    for number, name in (("59", "simulation"), ("60", "s.sh")):
        scheduler.submit(FakeJob(number, name=name, owner="tester", queue="main"))
    fake_clock.advance(63)
    return scheduler


def run(scheduler: FakeScheduler, *argv: str) -> CommandResult:
    return answer(scheduler, fake, Invocation(argv=argv))


def test_squeue_prints_the_table_that_was_recorded(scheduler: FakeScheduler) -> None:
    assert run(scheduler, "squeue").stdout == (
        "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
        "                60      main     s.sh   tester PD       0:00      1 (Resources)\n"
        "                59      main simulati   tester  R       1:03      1 node01\n"
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("-h", "-o", "%i %T"), "60 PENDING\n59 RUNNING\n"),
        (("--noheader", "--format=%.6i|%8u|%j", "-j", "60"), "    60|tester  |s.sh\n"),
        (("-h", "-o%A,%5t,%r", "-n", "s.sh"), "60,PD   ,Resources\n"),
        (("-u", "nobody", "-o", "%k"), "COMMENT\n"),
    ],
    ids=str,
)
def test_squeue_prints_the_requested_fields(
    scheduler: FakeScheduler, arguments: tuple[str, ...], expected: str
) -> None:
    assert run(scheduler, "squeue", *arguments).stdout == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ("-O", "JobArrayID,StateCompact,Reason"),
            (
                "JOBID               ST                  REASON              \n"
                "60                  PD                  Resources           \n"
                "59                  R                   None                \n"
            ),
        ),
        (
            ("--Format=JobID:8,StateCompact:.10,Reason:,Name",),
            (
                "JOBID           STREASONNAME                \n"
                "60              PDResourcess.sh                \n"
                "59               RNonesimulation          \n"
            ),
        ),
        (("-h", "-O", "JobID:@@,StateCompact:5@,Reason:3"), "60@@PD   @Res\n59@@R    @Non\n"),
    ],
    ids=["usual", "widths", "ends"],
)
def test_fields_have_the_form_that_a_real_squeue_gives_them(
    scheduler: FakeScheduler, arguments: tuple[str, ...], expected: str
) -> None:
    assert run(scheduler, "squeue", *arguments).stdout == expected


def test_elapsed_hours_are_printed(scheduler: FakeScheduler, fake_clock: FakeClock) -> None:
    fake_clock.advance(3600)

    assert run(scheduler, "squeue", "-h", "-o", "%M", "-j", "59").stdout == "1:01:03\n"


@pytest.mark.parametrize(
    ("argv", "stderr"),
    [
        (("squeue", "-o", "%J"), "squeue: error: Invalid job format specification: J\n"),
        (("squeue", "-O", "nothing"), "squeue: error: Invalid job format specification: nothing\n"),
        (("sacct", "-o", "nothing"), 'sacct: fatal: Invalid field requested: "nothing"\n'),
        (("sacct", "--nothing"), "sacct: unrecognized option '--nothing'\n"),
        (("scancel", "--nothing", "59"), "scancel: unrecognized option '--nothing'\n"),
    ],
    ids=str,
)
def test_unknown_format_letters_are_reported(
    scheduler: FakeScheduler, argv: tuple[str, ...], stderr: str
) -> None:
    result = run(scheduler, *argv)

    assert (result.returncode, result.stdout, result.stderr) == (1, "", stderr)


def test_sacct_names_its_fields_and_takes_all_of_them(scheduler: FakeScheduler) -> None:
    """AiiDA asks for what is known of a job that way; a comma follows the last name."""
    known = run(scheduler, "sacct", "--helpformat").stdout
    assert (
        known.splitlines()[0]
        == "Account             AllocCPUS           AllocNodes          AllocTRES           "
    )
    names = known.split()

    listed = run(scheduler, "sacct", "-j", "59", "--parsable", f"--format={','.join(names)},").stdout

    heading, row, *_ = listed.splitlines()
    assert heading == "".join(f"{name}|" for name in names)
    assert row.count("|") == len(names)


def test_sacct_prints_a_table_or_parsable_lines(scheduler: FakeScheduler, fake_clock: FakeClock) -> None:
    fake_clock.advance(4000)

    assert run(scheduler, "sacct", "-j", "59").stdout == (
        "       JobID      JobName        State     ExitCode \n"
        "------------ ------------ ------------ ------------ \n"
        "          59   simulation       FAILED          3:0 \n"
    )
    assert run(scheduler, "sacct", "-P", "-o", "JobID,MaxRSS,NTasks", "-j", "59").stdout == (
        "JobID|MaxRSS|NTasks\n59||\n59.batch||1\n"
    )
    assert run(scheduler, "sacct", "-X", "-P", "-o", "JobID,State").stdout == (
        "JobID|State\n59|FAILED\n60|RUNNING\n"
    )


def test_scancel_may_be_quiet(scheduler: FakeScheduler) -> None:
    mine = scheduler.submit(FakeJob("61"))

    assert run(scheduler, "scancel", "-Q", "61") == CommandResult(returncode=0)
    assert mine.state is FakeState.CANCELLED


def test_a_job_can_query_the_names_of_its_nodes(scheduler: FakeScheduler) -> None:
    invocation = Invocation(
        argv=("scontrol", "show", "hostnames"), environment={"SLURM_JOB_NODELIST": "node[01-02]"}
    )

    assert answer(scheduler, fake, invocation).stdout == "node01\nnode02\n"


def test_squeue_selects_states_by_their_long_and_short_names(scheduler: FakeScheduler) -> None:
    assert run(scheduler, "squeue", "-h", "-o", "%i", "-t", "PD").stdout == "60\n"
    assert run(scheduler, "squeue", "-h", "-o", "%i", "--states=running,pending").stdout == "60\n59\n"


def test_sacct_takes_several_ids_and_widths(scheduler: FakeScheduler) -> None:
    words = ("sacct", "-n", "-P", "-X", "-j", "59", "-j", "60", "-o", "JobID%30,Elapsed,Timelimit")

    assert run(scheduler, *words).stdout == "59|00:01:03|UNLIMITED\n60|00:00:00|UNLIMITED\n"


def test_scancel_selects_jobs_by_name(scheduler: FakeScheduler) -> None:
    jobs = [scheduler.submit(FakeJob(number, name=name)) for number, name in (("61", "a"), ("62", "b"))]

    assert run(scheduler, "scancel", "--name=b").returncode == 0

    assert [job.state for job in jobs] == [FakeState.PENDING, FakeState.CANCELLED]


def test_scancel_reports_a_signal_that_cannot_be_sent(scheduler: FakeScheduler) -> None:
    scheduler.submit(FakeJob("61"))

    result = run(scheduler, "scancel", "-s", "USR1", "61")

    assert "signal cannot be sent" in result.stderr
    assert "Unknown job signal: NONE" in run(scheduler, "scancel", "-s", "NONE", "61").stderr


def test_scontrol_shows_a_job(scheduler: FakeScheduler) -> None:
    shown = run(scheduler, "scontrol", "show", "job", "59").stdout

    assert shown.startswith("JobId=59 JobName=simulation\n   UserId=tester")
    assert "   JobState=RUNNING Reason=None Dependency=(null)\n" in shown
    assert len(run(scheduler, "scontrol", "-o", "show", "job").stdout.splitlines()) == 2
    assert run(scheduler, "scontrol", "show", "job", "7").stderr == (
        "slurm_load_jobs error: Invalid job id specified\n"
    )

"""sacct: what is asked, and what its figures mean."""

from __future__ import annotations

import pytest

from jpsi.plugin import NOT_OFFERED, Command, JobState, Observation, Reason, Site, SubmitException
from jpsi.testing import answered
from jpsi_slurm import hooks
from jpsi_slurm.config import SlurmConfig
from slurm_support import SITE, accounted, recordings, replayed_sacct, sacct_line, site

NEW_SITE = Site(config=SlurmConfig(), offers={"version": [25, 11]})


def _seen(where: Site = SITE, **values: str) -> Observation:
    values = {"NodeList": "node01", **values}
    return hooks.parse_finished(answered(sacct_line(JobID="7", JobIDRaw="7", **values)), where)["7"]


def test_the_question_reaches_back_to_the_beginning() -> None:
    command = hooks.query_finished(["7", "8"], SITE)

    assert isinstance(command, Command)
    assert "--starttime=2001-01-01" in command.argv
    assert command.argv[-1] == "--jobs=7,8"


@pytest.mark.parametrize(
    ("configured", "found", "asked"),
    [
        (None, None, True),
        (None, True, True),
        (None, False, False),
        (True, False, True),
        (False, True, False),
    ],
)
def test_it_is_asked_where_there_is_one(configured: bool | None, found: bool | None, asked: bool) -> None:
    where = Site(config=SlurmConfig(accounting=configured), offers={"accounting": found})

    assert (hooks.query_finished(["7"], where) is not NOT_OFFERED) is asked


def test_a_completed_job_returned_zero() -> None:
    seen = _seen(State="COMPLETED", ExitCode="0:0")

    assert (seen.state, seen.exit_code) == (JobState.COMPLETED, 0)


@pytest.mark.parametrize("code", ["0:0", "7:0", "9:0", "127:0"])
def test_a_code_that_may_have_lost_128_is_not_told(code: str) -> None:
    """Sacct before 25.11 prints 137 as 9, and so 7 may be 135."""
    seen = _seen(State="FAILED", ExitCode=code)

    assert (seen.state, seen.exit_code, seen.reason) == (JobState.FAILED, None, None)
    assert seen.message is not None
    assert "sacct does not tell which" in seen.message


def test_an_end_without_its_time_is_not_told_yet() -> None:
    """Slurmdbd may know the state of a job that has ended before it knows anything else of the end."""
    line = sacct_line(JobID="7", JobIDRaw="7", State="FAILED", ExitCode="0:0", End="Unknown")

    assert hooks.parse_finished(answered(line), SITE) == {}


def test_a_newer_sacct_tells_the_code() -> None:
    assert _seen(NEW_SITE, State="FAILED", ExitCode="137:0").exit_code == 137


def test_a_signal_is_told() -> None:
    seen = _seen(State="FAILED", ExitCode="0:9")

    assert (seen.exit_code, seen.reason) == (137, Reason.SIGNAL)


def test_a_job_that_could_not_be_started() -> None:
    seen = _seen(State="FAILED", ExitCode="0:53")

    assert (seen.exit_code, seen.reason) == (None, Reason.LAUNCH)


def test_who_cancelled_it_is_told() -> None:
    seen = _seen(State="CANCELLED by 1001", ExitCode="0:15")

    assert (seen.state, seen.reason, seen.exit_code) == (JobState.CANCELED, Reason.CANCELLED, None)
    assert seen.details["slurm.cancelled_by"] == "1001"
    assert seen.message == "the job was cancelled by the user with number 1001"


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("TIMEOUT", Reason.TIMEOUT),
        ("OUT_OF_MEMORY", Reason.OUT_OF_MEMORY),
        ("NODE_FAIL", Reason.NODE_FAIL),
        ("PREEMPTED", Reason.PREEMPTED),
        ("DEADLINE", Reason.DEADLINE),
        ("BOOT_FAIL", Reason.NODE_FAIL),
    ],
)
def test_an_end_that_slurm_brought_about_has_no_exit_code(word: str, reason: Reason) -> None:
    seen = _seen(State=word, ExitCode="0:125")

    assert (seen.state, seen.reason, seen.exit_code) == (JobState.FAILED, reason, None)
    assert seen.message


def test_the_recorded_ends() -> None:
    """The jobs of the scenario sacct, read once all had ended."""
    full = [step for step in recordings("sacct") if step.argv[0] == "sacct" and "JobIDRaw" in str(step.argv)]
    rows = [row for row in accounted(full[-1]) if "." not in row["JobID"]]

    found = hooks.parse_finished(replayed_sacct(list(rows)), SITE)

    seen = {row["JobID"]: found[row["JobID"]] for row in rows if row["JobID"] in found}
    assert {name: (it.state, it.exit_code, it.reason) for name, it in seen.items()} == {
        "87": (JobState.FAILED, None, Reason.TIMEOUT),
        "88": (JobState.COMPLETED, 0, None),
        "89": (JobState.FAILED, None, None),
        "90": (JobState.FAILED, 137, Reason.SIGNAL),
        "91": (JobState.FAILED, 143, Reason.SIGNAL),
        "92": (JobState.FAILED, None, None),
        "93": (JobState.FAILED, None, None),
        "94": (JobState.FAILED, 137, Reason.SIGNAL),
        "95": (JobState.COMPLETED, 0, None),
        "96": (JobState.FAILED, None, None),
        "99+1": (JobState.COMPLETED, 0, None),
        "101": (JobState.CANCELED, None, Reason.CANCELLED),
        "102": (JobState.CANCELED, None, Reason.CANCELLED),
        "103": (JobState.CANCELED, None, Reason.CANCELLED),
        "97_0": (JobState.COMPLETED, 0, None),
        "97_1": (JobState.FAILED, None, None),
        "97_2": (JobState.FAILED, None, None),
        "97_3": (JobState.FAILED, None, None),
        "106": (JobState.FAILED, 137, Reason.SIGNAL),
        "107": (JobState.FAILED, None, Reason.NODE_FAIL),
        "109": (JobState.FAILED, None, Reason.DEADLINE),
        "110": (JobState.ACTIVE, None, None),
        "111": (JobState.FAILED, None, Reason.LAUNCH),
        "112": (JobState.FAILED, None, Reason.LAUNCH),
        "116": (JobState.QUEUED, None, None),
        "117": (JobState.CANCELED, None, Reason.CANCELLED),
        "118": (JobState.COMPLETED, 0, None),
        "119": (JobState.COMPLETED, 0, None),
        "104": (JobState.COMPLETED, 0, None),
        "105": (JobState.COMPLETED, 0, None),
        "108": (JobState.COMPLETED, 0, None),
    }


def test_of_a_job_that_was_put_back_the_last_run_counts() -> None:
    duplicates = next(step for step in recordings("sacct") if step.argv[:3] == ("sacct", "-P", "-D"))
    rows = [{**row, "JobIDRaw": row["JobID"]} for row in accounted(duplicates)]

    found = hooks.parse_finished(replayed_sacct(list(rows)), SITE)

    assert {name: found[name].word for name in ("104", "108")} == {"104": "COMPLETED", "108": "COMPLETED"}


def test_a_site_without_accounting_has_answered() -> None:
    disabled = answered(stderr="Slurm accounting storage is disabled\n", returncode=1)

    assert hooks.parse_finished(disabled, SITE) == {}


def test_an_accounting_that_is_down_has_not() -> None:
    down = answered(stderr="sacct: error: Problem talking to the database\n", returncode=1)

    with pytest.raises(SubmitException, match="Problem talking"):
        hooks.parse_finished(down, site())

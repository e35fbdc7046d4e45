"""The sacct command, and the meaning of its output."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest

from jpsi.plugin import (
    NOT_OFFERED,
    Command,
    CommandResult,
    JobState,
    Observation,
    Reason,
    Site,
    SubmitException,
)
from jpsi_slurm import hooks
from jpsi_slurm.config import SlurmConfig
from jpsi_slurm.queue import sacct
from jpsi_slurm.queue.listing import SEPARATOR
from jpsi_testing import command_result
from slurm_support import (
    SITE,
    recorded_accounting,
    recordings,
    replayed_sacct,
    sacct_line,
    sacct_line_of_22,
    sacct_result,
    sacct_result_of_22,
    site,
    truncate_both,
)

SITE_OF_22 = Site(config=SlurmConfig(), offers={"version": [22, 5]})
NEW_SITE = Site(config=SlurmConfig(), offers={"version": [25, 11]})


def _observation(where: Site = SITE, **values: str) -> Observation:
    values = {"JobID": "7", "JobIDRaw": "7", "NodeList": "node01", **values}
    line, result = (sacct_line, sacct_result) if where is SITE else (sacct_line_of_22, sacct_result_of_22)
    return hooks.parse_finished(result(line(**values)), where)["7"]


def test_the_query_covers_all_times() -> None:
    command = hooks.query_finished(["7", "8"], SITE)

    assert isinstance(command, Command)
    assert command.argv[2:5] == (
        'first=$1 second=$2; shift 2; "$0" --noheader "$first" "$@" && exec "$0" "$second" "$@"',
        "sacct",
        "--format=JobID",
    )
    assert "--starttime=2001-01-01" in command.argv
    assert command.argv[-1] == "--jobs=7,8"


@pytest.mark.parametrize(
    ("version", "is_requested"),
    [([], False), ([20, 11], False), ([21, 8], True), ([22, 5], True), ([25, 11], True)],
)
def test_sacct_prints_the_submit_line_if_it_has_one(version: list[int], is_requested: bool) -> None:
    command = hooks.query_finished(["7"], Site(config=SlurmConfig(), offers={"version": version}))

    assert isinstance(command, Command)
    assert (",SubmitLine" in command.argv[5]) is is_requested


MEASURING = Site(config=SlurmConfig(), offers={"measures_use": True})
_COLUMNS = {**sacct._USE, **sacct._COLUMNS}


def _of_steps(rows: Sequence[Mapping[str, str]]) -> CommandResult:
    """Return complete output of sacct for a site that measures what jobs use."""
    names = ["JobID", *(it for it in _COLUMNS.values() if it != "JobID")]
    header = dict(zip(names, names, strict=True))
    lines = [SEPARATOR.join([it.get(name, "") for name in names] * 2) for it in (header, *rows)]
    return command_result("".join(f"{it}{SEPARATOR}\n" for it in [*(row["JobID"] for row in rows), *lines]))


_BATCH = {"JobID": "7.batch", "JobIDRaw": "7.batch", "NTasks": "1"}


@pytest.mark.parametrize(
    ("steps", "cpu", "expected"),
    [
        ([_BATCH], "00:00:00", {}),
        ([], "01:30.250", {"used.cpu": 90.25}),
        ([_BATCH | {"MaxRSS": "4856K"}], "1-00:00:01", {"used.cpu": 86401.0, "used.memory": 4856 << 10}),
        (
            [_BATCH | {"MaxRSS": "1M"}, _BATCH | {"JobID": "7.0", "MaxRSS": "2.5G"}],
            "00:00:00",
            {"used.memory": 5 << 29},
        ),
        (
            [_BATCH | {"MaxRSS": "1M"}, {"JobID": "7.0", "NTasks": "4", "MaxRSS": "3M"}],
            "",
            {"used.process_memory": 3 << 20},
        ),
        (
            [_BATCH, *({"JobID": f"7.{it}", "NTasks": "1", "MaxRSS": f"{it + 1}M"} for it in range(2))],
            "",
            {"used.process_memory": 2 << 20},
        ),
        ([{"JobID": "7.extern", "NTasks": "2", "MaxRSS": "9G"}, _BATCH], "odd", {}),
        ([{"JobID": "8.batch", "NTasks": "1", "MaxRSS": "9G"}], "", {}),
    ],
    ids=[
        "none",
        "cpu",
        "batch",
        "a step of one task",
        "several tasks",
        "several steps",
        "extern",
        "another job",
    ],
)
def test_the_use_of_a_job_is_that_of_its_steps(
    steps: list[dict[str, str]], cpu: str, expected: dict[str, float]
) -> None:
    job = {"JobID": "7", "JobIDRaw": "7", "NodeList": "node01", "State": "COMPLETED", "TotalCPU": cpu}
    rows = [{"End": "2026-11-21T08:21:12", **it} for it in (job, *steps)]

    details = hooks.parse_finished(_of_steps(rows), MEASURING)["7"].details

    assert {name: it for name, it in details.items() if name.startswith("used.")} == expected


def test_recorded_steps_tell_the_memory_of_their_jobs() -> None:
    """Slurm 22.05 with jobacct_gather/linux measures every 30 s: a shorter job has no MaxRSS."""
    accounts = [list(recorded_accounting(it)) for it in recordings("sacct")]
    rows = next(it for it in accounts if any(row["JobID"] == "87.batch" and row.get("MaxRSS") for row in it))

    found = hooks.parse_finished(_of_steps(rows), MEASURING)

    assert found["87"].details["used.memory"] == 4856 << 10
    assert (found["87"].details["used.cpu"], "used.memory" in found["88"].details) == (0.004, False)


def test_steps_are_listed_where_slurm_measures() -> None:
    commands = [hooks.query_finished(["7"], it) for it in (SITE, MEASURING)]

    assert ["--allocations" in it.argv for it in commands if isinstance(it, Command)] == [True, False]


_TAG = "jpsi-a-1"
_OURS = f"/usr/bin/sbatch --parsable --comment=mine {_TAG}"


@pytest.mark.parametrize(
    ("comment", "line", "tag"),
    [
        ("", "", None),
        (_TAG, "", _TAG),
        (f"mine {_TAG}", _OURS, _TAG),
        ("", _OURS, _TAG),
        ("the site's", _OURS, _TAG),
        ("", "sbatch --wrap=exit 0", ""),
        ("", "sbatch --parsable", None),
        ("", "/opt/bin/sbatch --clusters=c --parsable", None),
        ("another", "", ""),
        ("another", "sbatch --parsable", ""),
        ("", f"{_OURS} --wckey=the site's", _TAG),
        ("", "sbatch --job-name=jpsi-a-1 --comment=jpsi-a other.sh", ""),
    ],
)
def test_the_tag_is_in_the_comment_or_in_the_submit_line(comment: str, line: str, tag: str | None) -> None:
    """The daemon slurmdbd gets both late, and the comment only if the site stores it."""
    row = sacct_line_of_22(JobID="7", JobIDRaw="7", State="COMPLETED", Comment=comment, SubmitLine=line)

    assert hooks.parse_finished(sacct_result_of_22(row), SITE_OF_22)["7"].tag == tag


def test_a_requeued_job_has_its_first_submit_time() -> None:
    """As recorded, each run has its own Submit. A foreign job with the same id is no run of it."""
    runs = [
        {"State": "REQUEUED", "Submit": "2026-11-23T02:02:23", "End": "2026-11-23T02:02:27"},
        {"State": "COMPLETED", "Submit": "2026-11-23T02:02:27", "End": "2026-11-23T02:02:40"},
    ]
    foreign = {"State": "FAILED", "Submit": "2026-11-23T03:00:00", "End": "2026-11-23T03:00:01"}
    lines = [sacct_line(JobID="7", JobIDRaw="7", **run) for run in (*runs, foreign)]

    own = hooks.parse_finished(sacct_result(lines[1], lines[0]), SITE)["7"]
    other = hooks.parse_finished(sacct_result(*lines), SITE)["7"]

    assert (own.native_state, own.submitted) == ("COMPLETED", datetime(2026, 11, 23, 2, 2, 23, tzinfo=UTC))
    assert (other.native_state, other.submitted) == ("FAILED", datetime(2026, 11, 23, 3, tzinfo=UTC))


@pytest.mark.parametrize("unit", ["bytes", "lines"])
def test_partial_output_of_a_successful_sacct_is_refused(unit: str) -> None:
    """Both listings are truncated alike, as by a wrapper of the site."""
    lines = [sacct_line(JobID=name, JobIDRaw=name, State="COMPLETED") for name in ("7", "8", "9")]
    ids, header, rows = sacct_result(*lines).stdout.partition("JobID|=|JobIDRaw")
    whole = hooks.parse_finished(sacct_result(*lines), SITE)
    accepted = 0

    for output in truncate_both(ids, header + rows, unit):
        with contextlib.suppress(SubmitException):
            assert hooks.parse_finished(command_result(output), SITE) == whole
            accepted += 1

    assert accepted == 1


@pytest.mark.parametrize(
    ("configured", "found", "is_queried"),
    [
        (None, None, True),
        (None, True, True),
        (None, False, False),
        (True, False, True),
        (False, True, False),
    ],
)
def test_sacct_is_queried_if_the_site_has_accounting(
    configured: bool | None, found: bool | None, is_queried: bool
) -> None:
    where = Site(config=SlurmConfig(accounting=configured), offers={"accounting": found})

    assert (hooks.query_finished(["7"], where) is not NOT_OFFERED) is is_queried


def test_a_completed_job_returned_zero() -> None:
    seen = _observation(State="COMPLETED", ExitCode="0:0")

    assert (seen.state, seen.exit_code) == (JobState.COMPLETED, 0)


@pytest.mark.parametrize("code", ["0:0", "7:0", "9:0", "127:0"])
def test_an_exit_code_that_may_lack_128_is_unknown(code: str) -> None:
    """Sacct before 25.11 prints 137 as 9, and so 7 may be 135."""
    seen = _observation(State="FAILED", ExitCode=code)

    assert (seen.state, seen.exit_code, seen.reason) == (JobState.FAILED, None, None)
    assert seen.message is not None
    assert "sacct does not report which" in seen.message


def test_a_final_state_without_end_time_is_still_running() -> None:
    """The daemon slurmdbd may store the state of an ended job before the rest."""
    seen = _observation(State="FAILED", ExitCode="0:0", End="Unknown")

    assert (seen.state, seen.native_state, seen.exit_code) == (JobState.ACTIVE, "FAILED", None)


@pytest.mark.parametrize(
    ("word", "state"),
    [("PENDING", JobState.QUEUED), ("RUNNING", JobState.ACTIVE), ("REQUEUED", JobState.QUEUED)],
)
def test_an_unfinished_job_is_reported(word: str, state: JobState) -> None:
    seen = _observation(State=word, ExitCode="0:0", End="Unknown")

    assert (seen.state, seen.native_state) == (state, word)


def test_a_newer_sacct_reports_the_exit_code() -> None:
    assert _observation(NEW_SITE, State="FAILED", ExitCode="137:0").exit_code == 137


def test_a_signal_is_reported() -> None:
    seen = _observation(State="FAILED", ExitCode="0:9")

    assert (seen.exit_code, seen.reason) == (137, Reason.SIGNAL)


def test_a_job_that_could_not_be_started() -> None:
    seen = _observation(State="FAILED", ExitCode="0:53")

    assert (seen.exit_code, seen.reason) == (None, Reason.LAUNCH)


def test_the_user_who_cancelled_the_job_is_reported() -> None:
    seen = _observation(State="CANCELLED by 1001", ExitCode="0:15")

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
def test_a_job_that_slurm_ended_has_no_exit_code(word: str, reason: Reason) -> None:
    seen = _observation(State=word, ExitCode="0:125")

    assert (seen.state, seen.reason, seen.exit_code) == (JobState.FAILED, reason, None)
    assert seen.message


def test_the_recorded_ends() -> None:
    """The jobs of the scenario sacct, queried once all had ended."""
    full = [step for step in recordings("sacct") if step.argv[0] == "sacct" and "JobIDRaw" in str(step.argv)]
    rows = [row for row in recorded_accounting(full[-1]) if "." not in row["JobID"]]

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


def test_the_last_run_of_a_requeued_job_counts() -> None:
    duplicates = next(step for step in recordings("sacct") if step.argv[:3] == ("sacct", "-P", "-D"))
    rows = [{**row, "JobIDRaw": row["JobID"]} for row in recorded_accounting(duplicates)]

    found = hooks.parse_finished(replayed_sacct(list(rows)), SITE)

    assert {name: found[name].native_state for name in ("104", "108")} == {
        "104": "COMPLETED",
        "108": "COMPLETED",
    }


@pytest.mark.parametrize(
    ("stderr", "returncode"),
    [("Slurm accounting storage is disabled\n", 1), ("sh: 1: exec: sacct: not found\n", 127)],
    ids=["without accounting", "without sacct"],
)
def test_a_site_may_have_no_accounting(stderr: str, returncode: int) -> None:
    assert hooks.parse_finished(command_result(stderr=stderr, returncode=returncode), SITE) is NOT_OFFERED


def test_an_accounting_outage_raises() -> None:
    down = command_result(stderr="sacct: error: Problem talking to the database\n", returncode=1)

    with pytest.raises(SubmitException, match="Problem talking"):
        hooks.parse_finished(down, site())

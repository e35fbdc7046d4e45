"""Flux's output about a job in cases without a recording, and output that is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from flux_support import listed
from jpsi.plugin import CommandResult, JobState, Observation, Reason, SubmitException
from jpsi_flux import hooks
from jpsi_testing import command_result

ID = "7290690207744"
_FAILED = {"state": "INACTIVE", "status": "FAILED", "result": "FAILED", "t_run": 1.0, "t_inactive": 2.0}


def observation(result: CommandResult) -> Observation:
    (found,) = hooks.parse_status(result, None).values()
    return found


def ended(**exception: object) -> CommandResult:
    about = {**_FAILED, "waitstatus": 256}
    return listed(**about, returncode=1, exception={"occurred": True, "severity": 0, **exception})


def test_a_pending_job_has_a_reason_and_a_start_estimate() -> None:
    found = observation(
        listed(annotations={"sched": {"t_estimate": 1795252121.5, "reason_pending": "no nodes"}})
    )

    assert found.message == "no nodes"
    assert found.start_estimate == datetime.fromtimestamp(1795252121.5, UTC)
    assert found.time == datetime.fromtimestamp(1795251530.25, UTC)


def test_a_held_job_has_that_message() -> None:
    assert observation(listed(urgency=0)).message == "the job is held"


def test_a_dependent_job_names_its_dependencies() -> None:
    found = observation(listed(state="DEPEND", status="DEPEND", dependencies=["after-success=f1"]))

    assert found.message == "the job waits for after-success=f1"


def test_a_job_that_is_cleaned_up_before_it_ran_is_not_running() -> None:
    assert observation(listed(state="CLEANUP", status="CLEANUP")).state is JobState.QUEUED
    assert observation(listed(state="CLEANUP", status="CLEANUP", t_run=1.0)).state is JobState.ACTIVE


def test_the_end_of_a_job_is_its_result_not_its_exception() -> None:
    """An exception of another severity than 0 is a note."""
    found = observation(ended(type="timeout", severity=3, note="soon"))

    assert (found.state, found.reason, found.exit_code) == (JobState.FAILED, None, 1)


def test_an_unknown_exception_leaves_the_code() -> None:
    found = observation(ended(type="myerror", note="my note"))

    assert (found.reason, found.exit_code, found.message) == (None, 1, "my note (myerror)")
    assert found.details == {"flux.id": "f4JWpL1vw", "flux.exception": "myerror"}


@pytest.mark.parametrize(
    ("note", "code", "reason", "exit_code"),
    [
        ("node failure on node2 (rank 2)", 1, Reason.NODE_FAIL, None),
        ("lost contact with job shell on broker node2 (rank 2)", 1, Reason.NODE_FAIL, None),
        ("task 0 (host node0): start failed: x: Permission denied", 126, Reason.LAUNCH, None),
        ("shell_init: Protocol error", 1, Reason.LAUNCH, None),
        ("job shell exec error on node2 (rank 2)", 1, Reason.LAUNCH, None),
        ("whatever else", 127, Reason.LAUNCH, None),
        ("PMI_Abort: MPI_Abort was called", 7, None, 7),
        ("rank 3 on host node2 failed and exit-timeout has expired", 1, None, 1),
        ("rank 3 on host node2 failed and exit-on-error is set", 5, None, 5),
        ("shell exited with unkillable processes", 1, None, 1),
    ],
)
def test_the_note_of_an_exec_exception_decides_the_reason(
    note: str, code: int, reason: Reason | None, exit_code: int | None
) -> None:
    """A failure of the job itself leaves its exit code."""
    about = {**_FAILED, "returncode": code}
    exception = {"occurred": True, "severity": 0, "type": "exec", "note": note}

    found = observation(listed(**about, waitstatus=code << 8, exception=exception))

    assert (found.state, found.reason, found.exit_code) == (JobState.FAILED, reason, exit_code)


def test_a_failed_prolog_prevents_the_start() -> None:
    assert observation(ended(type="prolog", note="prolog failed")).reason is Reason.LAUNCH


@pytest.mark.parametrize(
    "odd",
    [
        {"annotations": {"sched": {"t_estimate": 1e300}}},
        {"t_submit": 1e300},
        {"state": "INACTIVE", "status": "FAILED", "result": "FAILED", "waitstatus": 1 << 70},
    ],
    ids=str,
)
def test_an_invalid_job_does_not_hide_the_others(odd: dict[str, object]) -> None:
    one, other = json.loads(listed(**odd).stdout), json.loads(listed().stdout)

    found = hooks.parse_status(command_result(json.dumps({"jobs": [{**one, "id": 17}, other]}) + "\n"), None)

    assert set(found) == {"17", ID}
    assert found[ID].state is JobState.QUEUED
    assert found["17"].state in {None, JobState.QUEUED}


def test_nodes_are_named_one_by_one() -> None:
    assert observation(listed(state="RUN", status="RUN", t_run=3.0, nodelist="node[08-10,12]")).nodes == (
        *("node08", "node09", "node10", "node12"),
    )


def test_an_unknown_state_is_passed_on() -> None:
    found = observation(listed(state="LIMBO", status="LIMBO"))

    assert (found.state, found.native_state, found.exit_code, found.reason) == (None, "LIMBO", None, None)


def test_the_shell_that_was_killed_is_named() -> None:
    result = listed(**_FAILED, waitstatus=9, returncode=-9)

    assert observation(result).message == "signal 9 ended Flux's own process that ran the job"
    assert observation(result).reason is None


def test_text_printed_by_the_site_is_skipped() -> None:
    result = listed()

    assert hooks.parse_status(command_result(f"Welcome!\n{{\n{result.stdout}bye\n"), None).keys() == {ID}


@pytest.mark.parametrize(
    "result",
    [
        command_result(),
        command_result("{}\n"),
        command_result('{"jobs": [\n'),
        command_result(
            stderr="flux-jobs: ERROR: Unable to connect to Flux: Connection refused\n", returncode=1
        ),
        command_result('{"jobs": []}\n', stderr="flux-jobs: ERROR: lost connection\n", returncode=1),
        command_result('{"jobs": []}\n', returncode=2),
        command_result('{"jobs": []}\n', stderr="rpc: Operation timed out\n"),
        command_result('{"jobs": []}\n', stderr="JobID f4JWpL1vw unknown\nrpc: No route to host\n"),
        command_result(f'{{"jobs": [{{"id": {ID}}}]}}\n', stderr="rpc: Operation timed out\n"),
        CommandResult(returncode=0, stdout='{"jobs": []}\n', timed_out=True),
    ],
    ids=str,
)
def test_invalid_output_reports_no_job(result: CommandResult) -> None:
    for queried in ([ID], [ID, "17"]):
        with pytest.raises(SubmitException):
            hooks.parse_status(result, queried)


_DENIED = {ID: Observation.denied("JobID f4JWpL1vw unknown")}


@pytest.mark.parametrize(
    ("result", "queried", "expected"),
    [
        (command_result('{"jobs": []}\n'), None, {}),
        (command_result(stderr="JobID f4JWpL1vw unknown\n"), [ID], _DENIED),
        (command_result(stderr="Welcome!\nJobID f4JWpL1vw unknown\n", returncode=1), [ID], _DENIED),
    ],
    ids=["none", "unknown before 0.80", "unknown"],
)
def test_a_message_about_an_unknown_job_denies_it(
    result: CommandResult, queried: list[str] | None, expected: dict[str, Observation]
) -> None:
    assert hooks.parse_status(result, queried) == expected


def test_an_unknown_id_does_not_excuse_missing_jobs() -> None:
    both = listed()
    both = command_result(both.stdout, stderr="JobID 17 unknown\n")

    assert {it: observation.exists for it, observation in hooks.parse_status(both, [ID, "17"]).items()} == {
        ID: True,
        "17": False,
    }
    for queried in ([ID, "17", "18"], [ID, "18"]):
        with pytest.raises(SubmitException):
            hooks.parse_status(both, queried)


@pytest.mark.parametrize(
    "garbled",
    [
        {"status": "RUN"},
        {"state": "INACTIVE", "status": "FAILED", "result": "COMPLETED"},
        {"state": "INACTIVE", "status": "FAILED"},
        {"t_ru~": 1.0},
        {"exception": {"occurred": True, "severity": 0, "type": "can~el", "note": ""}},
        {"exception": {}},
        {"exception": ["cancel"]},
        {"jobid": "f4JWpL1vx"},
        {"jobid": "f4JWpL1v~"},
        {"name": None},
        {"t_submit": None},
        {"id": "7290690207744"},
    ],
    ids=str,
)
def test_contradictory_or_incomplete_jobs_are_invalid(garbled: dict[str, object]) -> None:
    assert hooks.parse_status(listed(jobid="f4JWpL1vw"), [ID]).keys() == {ID}
    with pytest.raises(SubmitException):
        hooks.parse_status(listed(**garbled), None)


def test_a_job_has_the_tag_at_the_end_of_its_name() -> None:
    names = ("jpsi-a-1", "a name jpsi-a-1", "", "a name", "jpsi-a~1", "\N{REPLACEMENT CHARACTER}psi-a-1")

    assert [observation(listed(name=name)).tag for name in names] == [
        "jpsi-a-1",
        "jpsi-a-1",
        "",
        "",
        None,
        None,
    ]
    assert observation(listed()).submitted == datetime(2026, 11, 21, 8, 58, 50, 250000, tzinfo=UTC)


def test_truncated_tags_are_not_found() -> None:
    names = ["jpsi-a-1", "x jpsi-a-2", "jpsi-a-3 x", "jpsi-a-44", ""]
    about = json.loads(listed().stdout)
    listing = command_result(
        json.dumps({"jobs": [{**about, "id": number, "name": name} for number, name in enumerate(names)]})
    )

    assert hooks.parse_find(listing, ["jpsi-a-1", "jpsi-a-2", "jpsi-a-3", "jpsi-a-4"]) == {
        "jpsi-a-1": "0",
        "jpsi-a-2": "1",
    }


def test_dependency_that_failed_after_the_start_is_no_cancellation() -> None:
    assert observation(ended(type="dependency", note="x")).state is JobState.FAILED
    assert observation(ended(type="dependency", note="x")).reason is Reason.DEPENDENCY

"""What jpsi makes of the answers of oarstat."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from jpsi.plugin import JobState, Observation, Reason, SubmitException
from jpsi_oar import hooks
from jpsi_testing import command_result
from oar_support import event, listing, row


def _observe(*rows: dict[str, Any], native_id: str = "57") -> Observation:
    return hooks.parse_status(listing(*rows), [native_id])[native_id]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("Waiting", JobState.QUEUED),
        ("Hold", JobState.QUEUED),
        ("toLaunch", JobState.QUEUED),
        ("toAckReservation", JobState.QUEUED),
        ("Launching", JobState.QUEUED),
        ("Running", JobState.ACTIVE),
        ("Suspended", JobState.ACTIVE),
        ("Resuming", JobState.ACTIVE),
        ("Finishing", JobState.ACTIVE),
        ("toError", None),
        ("Xyzzy", None),
    ],
)
def test_states(state: str, expected: JobState | None) -> None:
    observed = _observe(row(57, state))

    assert (observed.state, observed.native_state, observed.tag) == (expected, state, "jpsi-abc-1")


@pytest.mark.parametrize(
    ("status", "state", "code"),
    [
        (0, JobState.COMPLETED, 0),
        (1792, JobState.FAILED, 7),
        (9, JobState.FAILED, 137),
        (35072, JobState.FAILED, 137),
        (None, JobState.FAILED, None),
    ],
)
def test_the_exit_code_is_a_wait_status(status: int | None, state: JobState, code: int | None) -> None:
    observed = _observe(row(57, "Terminated", exit_code=status))

    assert (observed.state, observed.exit_code, observed.ran) == (state, code, True)


@pytest.mark.parametrize(
    ("kinds", "state", "reason"),
    [
        (["FRAG_JOB_REQUEST", "SEND_KILL_JOB"], JobState.CANCELED, Reason.CANCELLED),
        (["FRAG_JOB_REQUEST", "WALLTIME"], JobState.FAILED, Reason.TIMEOUT),
        (["BESTEFFORT_KILL", "FRAG_JOB_REQUEST"], JobState.FAILED, Reason.PREEMPTED),
        (["OUTPUT_FILES", "SWITCH_INTO_ERROR_STATE"], JobState.FAILED, Reason.LAUNCH),
        (["EXIT_VALUE_OAREXEC"], JobState.FAILED, Reason.NODE_FAIL),
        (["NEW_IN_OAR_3"], JobState.FAILED, None),
        ([], JobState.FAILED, None),
    ],
)
def test_events_say_why_oar_ended_a_job(kinds: list[str], state: JobState, reason: Reason | None) -> None:
    observed = _observe(row(57, "Error", events=[event(kind) for kind in kinds]))

    assert (observed.state, observed.reason, observed.exit_code) == (state, reason, None)


@pytest.mark.parametrize("later", ["EXTERMINATE_JOB", "WALLTIME", "PING_CHECKER_NODE_SUSPECTED"])
def test_a_job_that_its_user_ended_is_cancelled_whatever_came_then(later: str) -> None:
    request = event("FRAG_JOB_REQUEST", "User me requested to frag the job 57")

    observed = _observe(row(57, "Error", events=[request, event(later)]))

    assert (observed.state, observed.reason) == (JobState.CANCELED, Reason.CANCELLED)


def test_the_end_of_a_job_that_its_user_did_not_request_is_not_called_so() -> None:
    request = event("FRAG_JOB_REQUEST", "User root requested to frag the job 57")

    observed = _observe(row(57, "Error", events=[request]))

    assert observed.message == (
        "User root requested to frag the job 57: an administrator did, or OAR did as a node of the job is "
        "dead or absent"
    )


def test_an_impossible_wait_status_makes_the_answer_malformed() -> None:
    with pytest.raises(SubmitException):
        _observe(row(57, "Terminated", exit_code=127))


def test_a_job_that_oar_resubmitted_has_the_state_of_its_last_run() -> None:
    preempted = event("BESTEFFORT_KILL", "[MetaSched] kill the besteffort job 57")
    first = row(57, "Error", events=[preempted], submissionTime=900)

    observed = _observe(row(61, "Waiting", array_id=57, resubmit_job_id=57), first)

    assert (observed.state, observed.reason, observed.restarts) == (JobState.QUEUED, Reason.REQUEUED, 1)
    assert observed.message == "[MetaSched] kill the besteffort job 57"
    assert observed.submitted == datetime.fromtimestamp(900, UTC)
    assert observed.details["oar.job"] == "61"
    assert _observe(first, row(61, array_id=57), native_id="61").state is JobState.ACTIVE


def test_elements_are_observed_one_by_one() -> None:
    rows = [
        row(34, "Terminated"),
        row(36, array_id=34, array_index=2),
        row(37, "Waiting", array_id=34, array_index=3),
    ]

    observed = hooks.parse_status(listing(*rows), ["34", "34.2", "34.3", "34.4", "36"])

    assert {name: it.state for name, it in observed.items()} == {
        "34.1": JobState.COMPLETED,
        "34.2": JobState.ACTIVE,
        "34.3": JobState.QUEUED,
        "34.4": None,
        "36": JobState.ACTIVE,
    }
    assert not observed["34.4"].exists


def test_an_array_of_one_element_is_known_by_both_of_its_ids() -> None:
    assert {it.state for it in hooks.parse_status(listing(row(34)), ["34", "34.1"]).values()} == {
        JobState.ACTIVE
    }


def test_an_unknown_job_is_denied_by_an_answer_about_others_alone() -> None:
    assert not _observe(row(99), native_id="57").exists
    with pytest.raises(SubmitException, match="no answer"):
        hooks.parse_status(listing(), ["57"])


def test_all_unfinished_jobs_of_the_user_are_counted() -> None:
    rows = [
        row(1),
        row(2, "Terminated"),
        row(3, initial_request="", owner="other"),
        row(4, "Hold", name=None),
    ]
    rows[3]["initial_request"] = "oarsub --hold true"

    assert hooks.parse_status(listing(*rows), None).keys() == {"1", "4"}


@pytest.mark.parametrize(
    "change",
    [
        {"array_id": 58.5},
        {"Job_Id": 58},
        {"state": None},
        {"exit_code": "0"},
        {"name": "another jpsi-xyz-1"},
        {"events": [{"type": "FRAG_JOB_REQUEST"}]},
        {"startTime": None},
    ],
    ids=str,
)
def test_a_job_that_is_not_whole_is_no_answer(change: dict[str, object]) -> None:
    document = {"57": row(57) | change}
    result = command_result(f"{json.dumps(document, indent=3)}\n")

    with pytest.raises(SubmitException, match="malformed"):
        hooks.parse_status(result, ["57"])


def test_a_query_selects_the_newest_job_too() -> None:
    newest = "job_id = (SELECT MAX(job_id) FROM jobs)"

    assert hooks.query(["57", "34"]).argv[-1] == f"job_id IN (57, 34) OR array_id IN (57, 34) OR {newest}"
    assert hooks.find(["jpsi-a-1", "jpsi-b-1"]).argv[-1] == (
        f"job_name LIKE '%jpsi-a-1' OR job_name LIKE '%jpsi-b-1' OR {newest}"
    )
    assert newest in hooks.query(None).argv[-1]


def test_a_job_is_found_by_its_tag() -> None:
    rows = [row(34, array_id=34), row(35, array_id=34, array_index=2), row(99, name=None)]

    assert hooks.parse_find(listing(*rows), ["jpsi-abc-1", "jpsi-none-1"]) == {"jpsi-abc-1": "34"}

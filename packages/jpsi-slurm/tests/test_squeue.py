"""squeue: what is asked, and what strange answers cost."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin import JobState, Reason, SubmitException
from jpsi.testing import answered
from jpsi_slurm import hooks
from slurm_support import SITE, listed, recordings, site, squeue_line


def test_the_question() -> None:
    command = hooks.query(["7", "8_1"], SITE)

    assert command.argv[:4] == ("squeue", "--noheader", "--all", "--states=all")
    assert command.argv[-1] == "--jobs=7,8_1"
    assert {"SQUEUE_*", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT"} <= set(command.unset)
    assert command.environment == {"TZ": "UTC0", "SLURM_BITSTR_LEN": "0"}


def test_all_of_the_users_jobs() -> None:
    assert hooks.query(None, SITE).argv[-1] == "--me"


def test_the_configured_cluster_is_asked() -> None:
    assert "--clusters=other" in hooks.query(["7"], site(cluster="other")).argv


def test_a_running_job() -> None:
    line = squeue_line(
        JobArrayID="7",
        State="RUNNING",
        SubmitTime="2026-11-21T08:17:57",
        StartTime="2026-11-21T08:17:58",
        EndTime="2026-11-21T09:17:57",
        NodeList="node[01-02]",
        Reason="None",
    )

    seen = hooks.parse_status(answered(line), None)["7"]

    assert (seen.state, seen.word, seen.nodes) == (JobState.ACTIVE, "RUNNING", ("node01", "node02"))
    assert seen.time == datetime(2026, 11, 21, 8, 17, 58, tzinfo=UTC)
    assert (seen.exit_code, seen.message, seen.start_estimate) == (None, None, None)


def test_a_pending_job_tells_why_and_when_it_is_expected_to_start() -> None:
    line = squeue_line(JobArrayID="7", StartTime="2026-11-21T10:17:00", Reason="Priority")

    seen = hooks.parse_status(answered(line), None)["7"]

    assert seen.message == "jobs of higher priority come first (Priority)"
    assert seen.start_estimate == datetime(2026, 11, 21, 10, 17, tzinfo=UTC)
    assert seen.time is None


def test_a_dependency_that_cannot_be_satisfied_is_typed() -> None:
    line = squeue_line(JobArrayID="7", Reason="DependencyNeverSatisfied")

    seen = hooks.parse_status(answered(line), None)["7"]

    assert (seen.state, seen.reason) == (JobState.QUEUED, Reason.DEPENDENCY)


def test_a_job_cancelled_for_its_dependency_says_so() -> None:
    line = squeue_line(JobArrayID="117", State="CANCELLED", Reason="DependencyNeverSatisfied")

    assert hooks.parse_status(answered(line), None)["117"].reason is Reason.DEPENDENCY


def test_a_requeued_job_counts_its_restarts() -> None:
    line = squeue_line(JobArrayID="7", RestartCnt="2", Reason="BeginTime")

    seen = hooks.parse_status(answered(line), None)["7"]

    assert (seen.state, seen.reason, seen.restarts) == (JobState.QUEUED, Reason.REQUEUED, 2)


def test_a_job_that_slurm_refused_after_all_has_no_exit_code() -> None:
    """Slurm leaves the status 1 with it, as if signal 1 had ended it."""
    line = squeue_line(JobArrayID="16", State="FAILED", exit_code="1", Reason="BadConstraints")

    seen = hooks.parse_status(answered(line), None)["16"]

    assert (seen.exit_code, seen.reason) == (None, Reason.LAUNCH)
    assert seen.message == "no node can ever satisfy what the job asks for (BadConstraints)"


@pytest.mark.parametrize(
    ("values", "ran"),
    [
        ({"State": "PENDING"}, None),
        ({"State": "RUNNING", "NodeList": "node01"}, True),
        ({"State": "FAILED", "NodeList": "node01", "exit_code": "1792"}, True),
        ({"State": "FAILED", "NodeList": "node01", "exit_code": "4021"}, False),
        ({"State": "CANCELLED"}, False),
        ({"State": "CANCELLED", "RestartCnt": "1"}, None),
        ({"State": "DEADLINE"}, False),
    ],
    ids=str,
)
def test_whether_it_ran(values: dict[str, str], ran: bool | None) -> None:
    seen = hooks.parse_status(answered(squeue_line(JobArrayID="7", **values)), None)["7"]

    assert seen.ran is ran


@pytest.mark.clause("state-unmapped")
def test_an_unknown_state_is_passed_on_and_costs_nothing() -> None:
    output = squeue_line(JobArrayID="7", State="LEVITATING") + squeue_line(JobArrayID="8", State="RUNNING")

    found = hooks.parse_status(answered(output), None)

    assert (found["7"].state, found["7"].word) == (None, "LEVITATING")
    assert found["8"].state is JobState.ACTIVE


def test_a_reason_of_several_lines_with_separators_costs_nothing() -> None:
    output = squeue_line(JobArrayID="7", Reason="burst|buffer:\nerror | 9|x\n\n") + squeue_line(
        JobArrayID="8"
    )

    found = hooks.parse_status(answered(output), None)

    assert set(found) == {"7", "8"}
    assert found["7"].message == "burst|buffer:"


@given(st.text(max_size=60).filter(lambda text: not text.count("|") >= 9))
def test_whatever_stands_between_lines_costs_no_job_its_update(noise: str) -> None:
    output = "\n".join([squeue_line(JobArrayID="7", State="RUNNING"), noise, squeue_line(JobArrayID="8")])

    found = hooks.parse_status(answered(output), None)

    assert found["7"].state is JobState.ACTIVE
    assert found["8"].state is JobState.QUEUED


@given(st.lists(st.text(alphabet="0123456789|abc_+[]-:. \n", max_size=30)))
def test_an_answer_of_any_kind_is_read_without_a_complaint(lines: list[str]) -> None:
    hooks.parse_status(answered("\n".join(lines)), None)


def test_the_array_is_not_its_last_element() -> None:
    """An array's last element to start has the array's own number."""
    line = squeue_line(JobArrayID="233_999", JobID="233", State="COMPLETED")

    assert {name: seen.state for name, seen in hooks.parse_status(answered(line), None).items()} == {
        "233_999": JobState.COMPLETED
    }


def test_an_answer_with_a_complaint_about_something_else_is_none() -> None:
    with pytest.raises(SubmitException, match="Socket timed out"):
        hooks.parse_status(
            answered(stderr="slurm_load_jobs error: Socket timed out on send/recv", returncode=1), None
        )


def test_jobs_are_found_by_their_tags_whatever_else_is_listed() -> None:
    """The recorded comments, in which anything stands, and among them two that end with a tag."""
    rows = [
        row
        for step in recordings("names-comments")
        if "Comment" in next(listed(step), {})
        for row in listed(step)
    ]
    lines = [f"{row['JobArrayID']}|{row['Comment']}|\n" for row in rows]
    tags = ["jpsi-a-1", "jpsi-b-1", "jpsi-c-1"]

    found = hooks.parse_find(
        answered("".join([*lines, "4|jpsi-a-1|\n", "5|mine, not jpsi-b-2 but jpsi-b-1|\n"])), tags
    )

    assert len(lines) > 20
    assert found == {"jpsi-a-1": "4", "jpsi-b-1": "5"}


def test_a_search_that_failed_proves_nothing() -> None:
    with pytest.raises(SubmitException, match="connect failure"):
        hooks.parse_find(
            answered(stderr="slurm_load_jobs error: … (connect failure)", returncode=1), ["jpsi-a-1"]
        )

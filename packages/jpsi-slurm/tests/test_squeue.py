"""The squeue commands, and the handling of unusual output."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin import CommandResult, JobState, Reason, SubmitException
from jpsi_slurm import hooks
from jpsi_testing import command_result
from slurm_support import (
    SITE,
    recorded_rows,
    recordings,
    site,
    squeue_line,
    squeue_result,
    tag_line,
    tag_result,
    truncate_both,
)

_FORMAT = "--Format=JobArrayID:|=|,JobID:|=|,State:|=|,"
_TEXT = (
    "first=$1 second=$2; shift 2; "
    '"$0" --noheader --sort=-i "$first" "$@" && exec "$0" --sort=i "$second" "$@"'
)
_TWICE = (_TEXT, "squeue", "--Format=JobArrayID:|=|")


def test_a_query_for_one_job_lists_it_twice() -> None:
    command = hooks.query(["8_1"], SITE)

    assert command.argv[:5] == ("/bin/sh", "-c", *_TWICE)
    assert command.argv[5].startswith(_FORMAT)
    assert command.argv[5].count("Comment") == command.argv[5].count("JobArrayID") == 2
    assert command.argv[6:] == ("--all", "--states=all", "--jobs=8_1")
    assert {"SQUEUE_*", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT"} <= set(command.unset)
    assert command.environment == {"TZ": "UTC0", "SLURM_BITSTR_LEN": "0"}


def test_a_query_for_several_jobs_lists_them_once() -> None:
    argv = hooks.query(["7", "8_1"], SITE).argv

    assert argv[:4] == ("/bin/sh", "-c", '"$0" "$@" && echo "end of listing"', "squeue")
    assert argv[4].startswith(_FORMAT)
    assert argv[5:] == ("--all", "--states=all", "--jobs=7,8_1")


def test_all_of_the_users_jobs() -> None:
    assert hooks.query(None, SITE).argv[-1] == "--me"


@pytest.mark.parametrize("native_ids", [["7"], ["7", "8"], None], ids=str)
def test_the_configured_cluster_is_queried(native_ids: list[str] | None) -> None:
    assert "--clusters=other" in hooks.query(native_ids, site(cluster="other")).argv


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

    seen = hooks.parse_status(squeue_result(line), None)["7"]

    assert (seen.state, seen.native_state, seen.nodes) == (JobState.ACTIVE, "RUNNING", ("node01", "node02"))
    assert seen.time == datetime(2026, 11, 21, 8, 17, 58, tzinfo=UTC)
    assert (seen.exit_code, seen.message, seen.start_estimate) == (None, None, None)


def test_a_pending_job_has_a_reason_and_a_start_estimate() -> None:
    line = squeue_line(JobArrayID="7", StartTime="2026-11-21T10:17:00", Reason="Priority")

    seen = hooks.parse_status(squeue_result(line), None)["7"]

    assert seen.message == "jobs of higher priority are ahead (Priority)"
    assert seen.start_estimate == datetime(2026, 11, 21, 10, 17, tzinfo=UTC)
    assert seen.time is None


def test_a_dependency_that_cannot_be_satisfied_is_typed() -> None:
    line = squeue_line(JobArrayID="7", Reason="DependencyNeverSatisfied")

    seen = hooks.parse_status(squeue_result(line), None)["7"]

    assert (seen.state, seen.reason) == (JobState.QUEUED, Reason.DEPENDENCY)


def test_a_job_cancelled_for_its_dependency_has_that_reason() -> None:
    line = squeue_line(JobArrayID="117", State="CANCELLED", Reason="DependencyNeverSatisfied")

    assert hooks.parse_status(squeue_result(line), None)["117"].reason is Reason.DEPENDENCY


def test_a_requeued_job_counts_its_restarts() -> None:
    line = squeue_line(JobArrayID="7", RestartCnt="2", Reason="BeginTime")

    seen = hooks.parse_status(squeue_result(line), None)["7"]

    assert (seen.state, seen.reason, seen.restarts) == (JobState.QUEUED, Reason.REQUEUED, 2)


def test_a_job_that_slurm_refused_after_all_has_no_exit_code() -> None:
    """Slurm leaves the status 1 with it, as if signal 1 had ended it."""
    line = squeue_line(JobArrayID="16", State="FAILED", exit_code="1", Reason="BadConstraints")

    seen = hooks.parse_status(squeue_result(line), None)["16"]

    assert (seen.exit_code, seen.reason) == (None, Reason.LAUNCH)
    assert seen.message == "no node can ever satisfy the job's constraints (BadConstraints)"


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
def test_a_job_that_never_began_is_distinguished(values: dict[str, str], ran: bool | None) -> None:
    seen = hooks.parse_status(squeue_result(squeue_line(JobArrayID="7", **values)), None)["7"]

    assert seen.ran is ran


@pytest.mark.clause("state-unmapped")
def test_an_unknown_state_is_passed_on_and_the_other_jobs_are_read() -> None:
    lines = squeue_line(JobArrayID="7", State="LEVITATING"), squeue_line(JobArrayID="8", State="RUNNING")

    found = hooks.parse_status(squeue_result(*lines), None)

    assert (found["7"].state, found["7"].native_state) == (None, "LEVITATING")
    assert found["8"].state is JobState.ACTIVE


_ROW = squeue_line(JobArrayID="8", State="FAILED")
_TEXTS = [
    "",
    "(null)",
    "two\nlines jpsi-x-1",
    "\n",
    "|=|",
    "|=|\n",
    "\n|=|\n\n",
    "8",
    _ROW,
    f"x|=|\n{_ROW}",
    "end of listing\n",
    "JOBID|=|\n9|=|\n",
]


@pytest.mark.parametrize("text", _TEXTS, ids=repr)
@pytest.mark.parametrize("column", ["Reason", "Comment"])
def test_user_text_that_looks_like_a_row_is_no_job(column: str, text: str) -> None:
    lines = squeue_line(JobArrayID="7", **{column: text}), squeue_line(JobArrayID="8", State="RUNNING")

    for result, native_ids in ((squeue_result(*lines), None), (_once(*lines), ["7", "8"])):
        found = hooks.parse_status(result, native_ids)

        assert {name: seen.state for name, seen in found.items()} == {
            "7": JobState.QUEUED,
            "8": JobState.ACTIVE,
        }


def test_a_reason_is_one_line() -> None:
    line = squeue_line(JobArrayID="7", Reason="burst|buffer:\nerror | 9|x\n\n")

    assert hooks.parse_status(squeue_result(line), None)["7"].message == "burst|buffer: error | 9|x"


@pytest.mark.parametrize(
    ("comment", "tag"),
    [("jpsi-a-1", "jpsi-a-1"), ("mine jpsi-a-1 ", "jpsi-a-1"), ("jpsi-a-1 not", ""), ("(null)", "")],
)
def test_a_job_has_the_tag_at_the_end_of_its_comment(comment: str, tag: str) -> None:
    line = squeue_line(JobArrayID="7_[1-2]", Comment=comment, SubmitTime="2026-11-21T08:17:57")

    found = hooks.parse_status(squeue_result(line), None)

    assert {name: seen.tag for name, seen in found.items()} == {"7_1": tag, "7_2": tag}
    assert found["7_1"].submitted == datetime(2026, 11, 21, 8, 17, 57, tzinfo=UTC)


def test_text_printed_by_the_site_is_skipped() -> None:
    whole = squeue_result(squeue_line(JobArrayID="7")).stdout
    first, header, rows = whole.partition("JOBARRAYID")
    banner = "Welcome!\n\nCLUSTER: ci\n"

    assert set(hooks.parse_status(command_result(banner + first + banner + header + rows), None)) == {"7"}


def test_an_unknown_job_is_denied() -> None:
    unknown = command_result(stderr="slurm_load_jobs error: Invalid job id specified\n", returncode=1)

    found = hooks.parse_status(unknown, ["7_1", "7_2"])

    assert {name: (seen.exists, seen.state) for name, seen in found.items()} == dict.fromkeys(
        ("7_1", "7_2"), (False, None)
    )
    for native_ids in (None, ["7", "8"]):
        with pytest.raises(SubmitException, match="Invalid job id specified"):
            hooks.parse_status(unknown, native_ids)


def test_output_without_a_row_about_the_one_job_is_refused() -> None:
    """Squeue reports an error about a job that it does not know."""
    with pytest.raises(SubmitException, match="no answer"):
        hooks.parse_status(squeue_result(), ["7"])
    assert hooks.parse_status(squeue_result(), None) == {}
    assert hooks.parse_status(_once(), ["7", "8"]) == {}


_LINES = (
    squeue_line(JobArrayID="7", State="COMPLETED", NodeList="node01", exit_code="0", Comment="jpsi-a-1"),
    squeue_line(JobArrayID="8_[2-4%1]", Comment="x\njpsi-b-1"),
    squeue_line(JobArrayID="8_1", JobID="9", State="RUNNING", Comment="x\njpsi-b-1"),
    squeue_line(JobArrayID="10+0", State="RUNNING", NodeList="node01"),
    squeue_line(JobArrayID="10+1", JobID="11", State="RUNNING", NodeList="node02"),
)


@pytest.mark.parametrize("missing", range(len(_LINES)))
def test_each_job_in_the_list_of_ids_must_have_a_row(missing: int) -> None:
    ids, header, rows = squeue_result(*_LINES).stdout.partition("JOBARRAYID")

    for broken in ("", _LINES[missing].replace("|=|", "|~|", 1)):
        output = ids + header + rows.replace(_LINES[missing], broken)
        with pytest.raises(SubmitException, match="no answer"):
            hooks.parse_status(command_result(output), None)


def test_a_job_may_be_newer_than_the_list_of_ids() -> None:
    ids, header, rows = squeue_result(*_LINES).stdout.partition("JOBARRAYID")
    newer = squeue_line(JobArrayID="12")

    assert "12" in hooks.parse_status(command_result(ids + header + rows + newer), None)


def test_elements_may_start_between_the_list_of_ids_and_the_rows() -> None:
    before, after = squeue_line(JobArrayID="8_[1-4]"), squeue_line(JobArrayID="8_[2-4]")
    started = squeue_line(JobArrayID="8_1", JobID="9", State="RUNNING")
    ids = squeue_result(before).stdout.partition("JOBARRAYID")[0]
    _, header, rows = squeue_result(after, started).stdout.partition("JOBARRAYID")

    found = hooks.parse_status(command_result(ids + header + rows), None)

    assert {"8_1", "8_2", "8_3", "8_4"} <= found.keys()


@pytest.mark.parametrize("unit", ["bytes", "lines"])
def test_partial_output_of_a_successful_squeue_is_refused(unit: str) -> None:
    """Both listings are truncated alike, as by a site's wrapper; accepted output has all jobs."""
    ids, header, rows = squeue_result(*_LINES).stdout.partition("JOBARRAYID")
    whole = hooks.parse_status(squeue_result(*_LINES), None)
    accepted = 0

    for output in truncate_both(ids, header + rows, unit):
        with contextlib.suppress(SubmitException):
            assert hooks.parse_status(command_result(output), None) == whole
            accepted += 1

    assert accepted == 1


def test_elements_that_never_started_are_reported_if_the_listing_is_complete() -> None:
    lines = squeue_line(JobArrayID="17", JobID="17", State="CANCELLED"), squeue_line(JobArrayID="18")

    assert "17_1" in hooks.parse_status(squeue_result(*lines), ["17_1"])
    assert "17_1" not in hooks.parse_status(_once(*lines), ["17_1", "18"])


@given(st.lists(st.text(alphabet="0123456789|=abc_+[]-:. \n", max_size=30)))
def test_malformed_output_is_refused(lines: list[str]) -> None:
    for native_ids in (None, ["7"], ["7", "8"]):
        with pytest.raises(SubmitException):
            hooks.parse_status(command_result("\n".join(lines)), native_ids)


def _once(*lines: str) -> CommandResult:
    """Return complete output of squeue, which the command runs once."""
    _, header, rows = squeue_result(*lines).stdout.partition("JOBARRAYID")
    return command_result(f"{header}{rows}end of listing\n")


def test_the_array_is_not_its_last_element() -> None:
    """An array's last element to start has the array's own number."""
    line = squeue_line(JobArrayID="233_999", JobID="233", State="COMPLETED")

    assert {name: seen.state for name, seen in hooks.parse_status(squeue_result(line), None).items()} == {
        "233_999": JobState.COMPLETED
    }


def test_output_with_an_unrelated_error_is_refused() -> None:
    with pytest.raises(SubmitException, match="Socket timed out"):
        hooks.parse_status(
            command_result(stderr="slurm_load_jobs error: Socket timed out on send/recv", returncode=1), None
        )


def test_jobs_are_found_by_their_tags_whatever_else_is_listed() -> None:
    """The recorded comments hold any text; two of them end with a tag."""
    rows = [
        row
        for step in recordings("names-comments")
        if "Comment" in next(recorded_rows(step), {})
        for row in recorded_rows(step)
    ]
    lines = [tag_line(row["JobArrayID"], row["Comment"]) for row in rows]
    tagged = tag_line("4", "jpsi-a-1"), tag_line("5", "mine, not jpsi-b-2 but jpsi-b-1")

    found = hooks.parse_find(tag_result(*lines, *tagged), ["jpsi-a-1", "jpsi-b-1", "jpsi-c-1"])

    assert len(lines) > 20
    assert found == {"jpsi-a-1": "4", "jpsi-b-1": "5"}


def test_find_lists_jobs_twice() -> None:
    argv = hooks.find(SITE).argv

    assert argv[2:5] == _TWICE
    assert argv[5:] == (
        "--Format=JobArrayID:|=|,Comment:|=|,JobArrayID:|=|,Comment:|=|",
        "--all",
        "--states=all",
        "--me",
    )


def test_a_truncated_search_is_refused() -> None:
    whole = tag_result(tag_line("4", "jpsi-a-1"), tag_line("5", "jpsi-b-1")).stdout

    for end in range(len(whole)):
        with pytest.raises(SubmitException, match=r"no answer"):
            hooks.parse_find(command_result(whole[:end]), ["jpsi-b-1"])


def test_a_failed_search_is_refused() -> None:
    with pytest.raises(SubmitException, match="connect failure"):
        hooks.parse_find(
            command_result(stderr="slurm_load_jobs error: … (connect failure)", returncode=1), ["jpsi-a-1"]
        )

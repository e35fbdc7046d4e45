"""Submission, queries and control of arrays, with recorded output of Slurm 22.05."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.plugin import JobSpec, JobState, SubmitContext
from jpsi_slurm import hooks
from jpsi_slurm.native_ids import compress_ids, expand_ids
from slurm_support import SITE, command_result, recordings, squeue_line, squeue_result, tag_line, tag_result

IDS = st.one_of(
    st.integers(1, 30).map(str),
    st.tuples(st.integers(1, 5), st.integers(0, 30)).map(lambda pair: f"{pair[0]}_{pair[1]}"),
)


def test_an_array_is_requested_by_one_directive() -> None:
    context = SubmitContext(site=SITE, job_id="1", tag="jpsi-1-1", elements=500)

    text = hooks.render_script(JobSpec("/bin/true"), context).text

    assert "#SBATCH --array=1-500" in text.splitlines()
    assert (
        "--array"
        not in hooks.render_script(
            JobSpec("/bin/true"), SubmitContext(site=SITE, job_id="1", tag="jpsi-1-1")
        ).text
    )


def test_the_limit_of_running_elements_is_rendered() -> None:
    context = SubmitContext(site=SITE, job_id="1", tag="jpsi-1-1", elements=500, at_a_time=7)

    assert "#SBATCH --array=1-500%7" in hooks.render_script(JobSpec("/bin/true"), context).text.splitlines()


def test_a_listing_of_all_jobs_reports_each_job_once() -> None:
    lines = [
        squeue_line(JobArrayID="17_[2-3%1]", JobID="17", State="PENDING"),
        squeue_line(JobArrayID="17_1", JobID="18", State="RUNNING"),
        squeue_line(JobArrayID="19", JobID="19", State="RUNNING"),
    ]

    assert list(hooks.parse_status(squeue_result(*lines), None)) == ["17_2", "17_3", "17_1", "19"]


def test_element_ids_contain_the_id_of_their_array() -> None:
    ids = hooks.element_ids("17", [1, 3])

    assert ids == ["17_1", "17_3"]
    assert [hooks.canonical_id(native_id) for native_id in ids] == ids
    assert hooks.arrays_of([*ids, "18", "19+1"]) == {"17_1": "17", "17_3": "17"}


@given(native_ids=st.lists(IDS, unique=True, min_size=1))
def test_compressed_ids_expand_to_the_same_ids(native_ids: list[str]) -> None:
    words = compress_ids(native_ids)

    assert sorted(it for word in words for it in expand_ids(word)) == sorted(native_ids)
    assert len(words) == len({it.partition("_")[0] if "_" in it else f"{it} alone" for it in native_ids})


def test_pending_elements_are_one_line() -> None:
    lines = [
        squeue_line(JobArrayID="17_[2-3,6%2]", JobID="17", State="PENDING", Reason="Resources"),
        squeue_line(JobArrayID="17_1", JobID="18", State="RUNNING", NodeList="node01"),
    ]

    found = hooks.parse_status(squeue_result(*lines), ["17_1", "17_2", "17_3", "17_6", "17_5"])

    assert {name: seen.state for name, seen in found.items()} == {
        "17_1": JobState.ACTIVE,
        "18": JobState.ACTIVE,
        "17_2": JobState.QUEUED,
        "17_3": JobState.QUEUED,
        "17_6": JobState.QUEUED,
    }
    assert found["17_2"] is found["17_6"]


def test_a_truncated_index_list_counts_for_the_array() -> None:
    line = squeue_line(JobArrayID="17_[1,3,5,7...]", JobID="17", State="PENDING")

    found = hooks.parse_status(squeue_result(line), ["17_1", "17_9"])

    assert {name: seen.state for name, seen in found.items()} == {"17": JobState.QUEUED}


def test_an_array_with_a_truncated_index_list_is_found_by_its_tag() -> None:
    assert hooks.parse_find(tag_result(tag_line("17_[1,3,5...", "jpsi-a-1")), ["jpsi-a-1"]) == {
        "jpsi-a-1": "17"
    }


def test_elements_cancelled_before_their_start_get_the_state_of_their_array() -> None:
    lines = [
        squeue_line(JobArrayID="17", JobID="17", State="CANCELLED"),
        squeue_line(JobArrayID="17_2", JobID="19", State="COMPLETED", NodeList="node01"),
    ]

    found = hooks.parse_status(squeue_result(*lines), ["17_1", "17_2"])

    assert found["17_1"].state is JobState.CANCELED
    assert found["17_1"].ran is None  # it may have ended, and been forgotten, before
    assert found["17_1"] is found["17"]
    assert found["17_2"].state is JobState.COMPLETED


def test_a_cancelled_element_is_not_reported_while_others_are_pending() -> None:
    line = squeue_line(JobArrayID="17_[2-9]", JobID="17", State="PENDING")

    assert "17_1" not in hooks.parse_status(squeue_result(line), ["17_1", "17_2"])


def test_a_recorded_array_is_read_whole() -> None:
    listing = next(step for step in recordings("array-1000") if step.argv[:2] == ("squeue", "-h"))
    text = listing.result.stdout.partition("|")[0]

    assert text == "233_[0-999]"
    assert list(expand_ids(text)) == [f"233_{index}" for index in range(1000)]


def test_an_array_is_found_by_the_tag_of_its_elements() -> None:
    lines = [tag_line("17_[2-9]", "jpsi-a-1"), tag_line("17_1", "jpsi-a-1"), tag_line("18", "jpsi-b-1")]

    assert hooks.parse_find(tag_result(*lines), ["jpsi-a-1", "jpsi-b-1"]) == {
        "jpsi-a-1": "17",
        "jpsi-b-1": "18",
    }


def test_elements_are_cancelled_by_one_argument() -> None:
    assert hooks.cancel(["17_1", "17_2", "18", "17_4"], SITE).argv[-2:] == ("18", "17_[1-2,4]")


@pytest.mark.parametrize("named_by", ["17_[1-2]", "17_1"])
def test_jobs_that_scancel_did_not_cancel_are_reported(named_by: str) -> None:
    stderr = f"scancel: error: Kill job error on job id {named_by}: Access/permission denied\n"

    refused = hooks.parse_cancel(command_result(stderr=stderr, returncode=210), ["17_1", "17_2"])

    assert refused == dict.fromkeys(expand_ids(named_by), "Access/permission denied")

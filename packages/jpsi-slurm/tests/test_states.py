"""The meaning of Slurm's states and numbers: job states, pending reasons, exit codes."""

from __future__ import annotations

import re

import pytest

from jpsi.plugin import JobState, Reason
from jpsi_slurm import hooks
from jpsi_slurm.queue.observations import End, decode_accounting_code, decode_wait_status
from jpsi_slurm.states import STATES, pending_message, pending_reason
from slurm_support import recordings, squeue_line, squeue_result


@pytest.mark.clause("state-mapping")
def test_every_state_that_squeue_knows_has_a_meaning() -> None:
    refused = next(step for step in recordings("squeue-states") if "nosuch" in step.argv)
    (listed,) = re.findall(r"Valid job states include: (\S+)", refused.result.stderr)

    assert set(listed.split(",")) <= STATES.keys()


@pytest.mark.clause("state-mapping")
@pytest.mark.parametrize(
    ("state", "words"),
    {
        JobState.ACTIVE: "RUNNING SUSPENDED COMPLETING RESIZING SIGNALING STAGE_OUT STOPPED UPDATE_DB",
        JobState.COMPLETED: "COMPLETED",
        JobState.CANCELED: "CANCELLED",
        JobState.FAILED: "BOOT_FAIL DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED TIMEOUT",
    }.items(),
    ids=str,
)
def test_a_job_that_is_requeued_or_cleaned_up_has_not_ended(state: JobState, words: str) -> None:
    """All other states are of pending jobs."""
    assert {word for word, meaning in STATES.items() if meaning.state is state} == set(words.split())


def test_every_failure_that_slurm_names_has_a_reason() -> None:
    unexplained = {word for word, meaning in STATES.items() if meaning.state.final and meaning.reason is None}

    assert unexplained == {"COMPLETED", "FAILED"}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("None", None),
        ("", None),
        ("Resources", "the nodes are in use (Resources)"),
        ("AssocGrpCPUMinutesLimit", "a limit of the account is reached (AssocGrpCPUMinutesLimit)"),
        ("QOSMaxJobsPerUserLimit", "a limit of the quality of service is reached (QOSMaxJobsPerUserLimit)"),
        ("MaxCpuPerAccount", "a limit of the quality of service is reached (MaxCpuPerAccount)"),
        (
            "ReqNodeNotAvail, UnavailableNodes:node[01-02]",
            "a node that the job needs is not available (ReqNodeNotAvail, UnavailableNodes:node[01-02])",
        ),
        ("something new", "something new"),
    ],
)
def test_the_pending_reason_is_explained(word: str, message: str | None) -> None:
    assert pending_message(word) == message


def test_a_job_held_after_a_launch_failure_has_that_reason() -> None:
    assert pending_reason("launch failed requeued held") is Reason.LAUNCH


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (0, End(0)),
        (1792, End(7)),
        (137 << 8, End(137)),
        (9, End(137, Reason.SIGNAL)),
        (139, End(139, Reason.SIGNAL)),  # signal 11, with a core
    ],
)
def test_the_status_of_wait_is_an_exit_code_or_a_signal(status: int, expected: End) -> None:
    assert decode_wait_status(str(status)) == expected


def test_an_error_number_is_no_status() -> None:
    assert decode_wait_status("4021").reason is Reason.LAUNCH
    assert decode_wait_status("4021").exit_code is None


@pytest.mark.parametrize("text", ["", "x", "7", "x:0", "0:125", "0:64", "-1:0"])
def test_codes_without_information(text: str) -> None:
    assert decode_accounting_code(text, has_full_codes=True) == End()


@pytest.mark.parametrize("text", ["", "None assigned", "(null)", "n/a"])
def test_a_job_without_nodes_has_none(text: str) -> None:
    line = squeue_line(JobArrayID="7", State="RUNNING", NodeList=text)

    seen = hooks.parse_status(squeue_result(line), None)["7"]

    assert seen.nodes == ()

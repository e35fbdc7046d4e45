"""States, pending reasons, exit codes, ids and what a site offers."""

from __future__ import annotations

import re

import attrs
import pytest

from jpsi.plugin import JobState, Reason, SubmitException
from jpsi.testing import answered
from jpsi_slurm import hooks
from jpsi_slurm.config import SlurmConfig
from jpsi_slurm.exits import End, end_of_accounting, end_of_wait_status
from jpsi_slurm.ids import IDS
from jpsi_slurm.rows import Row
from jpsi_slurm.states import STATES
from jpsi_slurm.waiting import waiting_message, waiting_reason
from slurm_support import SITE, recordings, squeue_answer, squeue_line


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
def test_a_job_that_is_put_back_or_cleaned_up_has_not_ended(state: JobState, words: str) -> None:
    """All other words are of jobs that wait."""
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
def test_why_it_is_pending(word: str, message: str | None) -> None:
    assert waiting_message(word) == message


def test_a_job_that_could_not_be_launched_and_is_held_says_so() -> None:
    assert waiting_reason("launch failed requeued held") is Reason.LAUNCH


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
def test_a_status_of_wait(status: int, expected: End) -> None:
    assert end_of_wait_status(status) == expected


def test_an_error_number_is_no_status() -> None:
    assert end_of_wait_status(4021).reason is Reason.LAUNCH
    assert end_of_wait_status(4021).exit_code is None


@pytest.mark.parametrize("text", ["", "x", "7", "x:0", "0:125", "0:64", "-1:0"])
def test_figures_that_say_nothing(text: str) -> None:
    assert end_of_accounting(text, whole=True) == End()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", True),
        ("4711_3", True),
        ("4711+1", True),
        ("4294967295", True),
        ("4294967296", False),
        ("0", False),
        ("4711.0", False),
        ("4711_[1-3]", False),
        ("4711,4712", False),
        ("-1", False),
        ("٤", False),
        ("7\n", False),
        ("", False),
    ],
)
def test_ids(text: str, expected: bool) -> None:
    assert IDS.has(text) is expected


def _names(shown: str, number: str) -> tuple[str, ...]:
    row = dict.fromkeys(("state", "exit_code", "submitted", "started", "ended", "nodes", "reason"), "")
    return Row(shown=shown, number=number, **row).names


def test_an_element_is_known_by_its_own_number_too() -> None:
    assert _names("233_998", "252") == ("233_998", "252")
    assert _names("138+1", "139") == ("138+1", "139")


def test_the_last_element_of_an_array_has_the_arrays_number() -> None:
    assert _names("233_999", "233") == ("233_999",)
    assert _names("233", "233") == ("233",)


@pytest.mark.parametrize("text", ["", "None assigned", "(null)", "n/a"])
def test_a_job_without_nodes_has_none(text: str) -> None:
    line = squeue_line(JobArrayID="7", State="RUNNING", NodeList=text)

    seen = hooks.parse_status(squeue_answer(line), None)["7"]

    assert seen.nodes == ()


def test_what_a_site_offers() -> None:
    shown = next(step for step in recordings("version") if step.argv == ("scontrol", "show", "config"))

    found = hooks.parse_probe(shown.result)

    assert hooks.probe(SITE).argv == shown.argv
    assert found == {
        "version": [22, 5],
        "accounting": True,
        "requeue_exit_codes": [],
        "max_array_size": 5001,
    }


@pytest.mark.parametrize(
    ("size", "largest"), [("5001", 5000), ("2", 1), ("1", None), ("0", None), ("", 1000)]
)
def test_indices_of_arrays_are_below_what_a_site_says(size: str, largest: int | None) -> None:
    offers = hooks.parse_probe(answered(f"MaxArraySize            = {size}\n"))

    arrays = hooks.capabilities(attrs.evolve(SITE, offers=offers)).arrays

    assert (None if arrays is None else arrays.largest) == largest


@pytest.mark.parametrize(
    ("parameters", "largest"),
    [
        ("max_array_tasks=200", 200),
        ("defer,max_array_tasks=200,batch_sched_delay=3", 200),
        ("max_array_tasks=9000", 5000),
        ("defer", 5000),
        ("(null)", 5000),
        ("my_max_array_tasks=3", 5000),
    ],
)
def test_an_array_has_no_more_elements_than_a_site_allows(parameters: str, largest: int) -> None:
    shown = f"MaxArraySize            = 5001\nSchedulerParameters     = {parameters}\n"

    arrays = hooks.capabilities(attrs.evolve(SITE, offers=hooks.parse_probe(answered(shown)))).arrays

    assert arrays is not None
    assert arrays.largest == largest


def test_codes_that_put_a_job_back() -> None:
    shown = "RequeueExit             = 5,100-102\nRequeueExitHold         = 200\n"

    assert hooks.parse_probe(answered(shown))["requeue_exit_codes"] == [5, 100, 101, 102, 200]


@pytest.mark.parametrize("storage", ["accounting_storage/none", "(null)"])
def test_a_site_without_accounting(storage: str) -> None:
    assert hooks.parse_probe(answered(f"AccountingStorageType   = {storage}\n"))["accounting"] is False


def test_a_configuration_that_is_not_told_is_not_known() -> None:
    assert hooks.parse_probe(answered("nothing\n"))["accounting"] is None
    with pytest.raises(SubmitException, match="Unable to contact"):
        hooks.parse_probe(answered(stderr="Unable to contact slurm controller\n", returncode=1))


@pytest.mark.parametrize("cluster", ["a,b", "", "a b"])
def test_one_cluster_is_configured_or_none(cluster: str) -> None:
    with pytest.raises(ValueError, match="one cluster"):
        SlurmConfig(cluster=cluster)


def test_the_first_component_of_a_heterogeneous_job_is_the_job() -> None:
    assert _names("138+0", "138") == ("138",)

"""Handing jobs over, and what it means if that failed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridengine_support import CONTEXT
from jpsi.plugin import FailureKind, JobSpec, Script
from jpsi.testing import answered
from jpsi_gridengine import hooks

_NO = "Unable to run job: "


def test_the_script_goes_in_by_standard_input_whatever_a_users_defaults_say() -> None:
    command = hooks.submit(Script([]))

    assert command.argv == ("qsub", "-terse", "-b", "n", "-sync", "n")
    assert command.stdin == Script([]).text


def test_a_surrounding_job_leaves_nothing_but_how_grid_engine_is_reached() -> None:
    unset = hooks.submit(Script([])).unset

    assert {"JOB_*", "PE_*", "SGE_TASK_*", "SGE_O_*", "BASH_FUNC_*", "PMI_*"} <= set(unset)
    for kept in ("SGE_ROOT", "SGE_CELL", "SGE_CLUSTER_NAME", "SGE_QMASTER_PORT", "PATH"):
        assert not any(kept == it or (it.endswith("*") and kept.startswith(it[:-1])) for it in unset)


def test_no_time_zone_reaches_the_job() -> None:
    assert hooks.submit(Script([])).environment == {}


@pytest.mark.parametrize(
    "printed",
    ["17\n", "Welcome 12345!\n17\n", 'Your job 17 ("a ("b").c") has been submitted\n', "17\n17\n"],
)
def test_the_id_is_found(printed: str) -> None:
    assert hooks.parse_submit(answered(printed), CONTEXT) == "17"


@pytest.mark.parametrize("printed", ["", "hello\n", "17\n18\n", "17.1-3:1\n", "0\n", "x 17\n"])
def test_what_is_no_one_id_is_an_error(printed: str) -> None:
    with pytest.raises(ValueError, match="job id"):
        hooks.parse_submit(answered(printed), CONTEXT)


@pytest.mark.parametrize("text", ["*", "17.1-3:1", "-u", "", "17 18", "myjob"])
def test_only_ids_are_attached_to(text: str) -> None:
    with pytest.raises(ValueError, match="no job id"):
        hooks.canonical_id(text)
    assert hooks.canonical_id("17.3") == "17.3"


@pytest.mark.parametrize(
    ("returncode", "stderr", "kind"),
    [
        (1, f'{_NO}denied: "1digit" is not a valid object name\nExiting.\n', FailureKind.INVALID_JOB),
        (1, f"{_NO}Dot ('.') not allowed as first character of objectname\n", FailureKind.INVALID_JOB),
        (
            1,
            (
                f'{_NO}No cluster queue or queue instance matches the phrase "@"\n'
                'Job was rejected because job requests unknown queue "@"\nExiting.\n'
            ),
            FailureKind.INVALID_JOB,
        ),
        (1, f"{_NO}JSV rejected job\nExiting.\n", FailureKind.INVALID_JOB),
        (1, f"{_NO}JSV temporarily rejected job\nExiting.\n", FailureKind.TRANSIENT),
        (
            1,
            f"{_NO}job rejected: only 10 jobs are allowed per user (current job count: 10)\nExiting.\n",
            FailureKind.TRANSIENT,
        ),
        (1, f'{_NO}denied: host "x" is not a submit host\nExiting.\n', FailureKind.PERMANENT),
        (
            1,
            (
                f"{_NO}failed receiving gdi request response for mid=1 "
                "(got syncron message receive timeout error).\nExiting.\n"
            ),
            FailureKind.AMBIGUOUS,
        ),
        (1, f"{_NO}Error reading answer list from qmaster\nExiting.\n", FailureKind.AMBIGUOUS),
        (1, "critical error: Please set the environment variable SGE_ROOT.\n", FailureKind.PERMANENT),
        (2, 'qsub: invalid option argument "--nosuch"\n', FailureKind.INVALID_JOB),
        (127, "sh: 1: qsub: not found\n", FailureKind.PERMANENT),
        (1, f"{_NO}something of the site's own\nExiting.\n", FailureKind.AMBIGUOUS),
        (1, "", FailureKind.AMBIGUOUS),
    ],
)
def test_what_a_failure_means(returncode: int, stderr: str, kind: FailureKind) -> None:
    assert hooks.classify_failure(answered(stderr=stderr, returncode=returncode)).kind is kind


@given(st.text(alphabet="abcdfghi xyz/().\n", max_size=60), st.integers(1, 254))
def test_what_nobody_has_heard_of_is_ambiguous(stderr: str, returncode: int) -> None:
    assert (
        hooks.classify_failure(answered(stderr=stderr, returncode=returncode)).kind is FailureKind.AMBIGUOUS
    )


def test_the_message_is_what_grid_engine_said() -> None:
    found = hooks.classify_failure(answered(stderr=f'{_NO}unknown resource "x"\nExiting.\n', returncode=1))

    assert found.message == 'qsub: unknown resource "x"'


def test_the_tag_is_in_the_script() -> None:
    script = hooks.render_script(JobSpec("/bin/true", name="a b"), CONTEXT)

    assert "a_b.jpsi-abc-1" in script.text

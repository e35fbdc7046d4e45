"""Ids, requests, failures, submissions and the probe."""

from __future__ import annotations

import pytest

from jpsi.engine.transport import environment_of
from jpsi.plugin import CommandResult, FailureKind, JobSpec, ShellLine, SubmitException
from jpsi.testing import answered
from jpsi_lsf import hooks
from lsf_support import CONTEXT, MODERN, site

_QUEUES = "\nQUEUE: normal\n  -- x\n\nUSERS:  all\nREQUEUE_EXIT_VALUES:  99 EXCLUDE(100)\n\nQUEUE: low\n"
_NO_JOBS = '{"COMMAND":"bjobs","JOBS":0,"RECORDS":[]}\n'
_ONE_JOB = '{"COMMAND":"bjobs","JOBS":1,"RECORDS":[{"JOBID":"7","STAT":"RUN"}]}\n'
_LSF = "IBM Spectrum LSF 10.1.0.0 build 433566, Dec 1 2016\n"
_VOLCLAVA = "volclava project 2.2, Nov 21 2026\n"


@pytest.mark.parametrize("text", ["0", "-5", "abc", "", "7 8", "7[0]", "7[", "2147483647", "7@east"])
def test_what_is_no_id(text: str) -> None:
    """Commands take 0 for all jobs, and larger numbers for what is left of them in 32 bits."""
    with pytest.raises(ValueError, match="no job id of LSF's"):
        hooks.canonical_id(text)


def test_who_was_not_cancelled() -> None:
    stderr = (
        "Job <7>: Job has already finished\nJob <8>: No matching job found\n"
        "Job <9>: User permission denied\nJob <10>: Operation is in progress\n"
    )
    result = answered("Job <11> is being terminated\n", stderr, 255)

    assert hooks.parse_cancel(result, ["7", "8", "9", "10", "11"]) == {"9": "User permission denied"}


def test_a_job_of_which_nothing_is_said_was_not_changed_whatever_is_said_of_another() -> None:
    result = answered(stderr="Job <7>: Operation is in progress\n", returncode=255)

    assert list(hooks.parse_hold(result, ["7", "8"])) == ["8"]


def test_a_request_that_did_not_arrive_was_refused_for_all() -> None:
    result = answered(stderr="Connection refused by server\n", returncode=255)

    assert hooks.parse_cancel(result, ["7"]) == {"7": "Connection refused by server"}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("normal: Queue has been closed. Job not submitted.", FailureKind.TRANSIENT),
        ("User <u>: Pending job threshold reached. Job not submitted.", FailureKind.TRANSIENT),
        ("Contacting batch daemon: Communication timeout. Job not submitted.", FailureKind.AMBIGUOUS),
        ("Master batch daemon internal error. Job not submitted.", FailureKind.AMBIGUOUS),
        ("lsb_init: Failed in an LSF library call: LIM is down; try later", FailureKind.TRANSIENT),
        (
            "Site policy: no weekend jobs\nRequest aborted by esub. Job not submitted.",
            FailureKind.INVALID_JOB,
        ),
        ("Something new. Job not submitted.", FailureKind.INVALID_JOB),
        ("Something else", FailureKind.AMBIGUOUS),
    ],
)
def test_failures(said: str, kind: FailureKind) -> None:
    assert hooks.classify_failure(answered(stderr=f"{said}\n", returncode=255)).kind is kind


def test_where_there_is_no_bsub() -> None:
    assert (
        hooks.classify_failure(answered(stderr="env: bsub: not found", returncode=127)).kind
        is FailureKind.PERMANENT
    )


def test_bsub_reads_directives_from_standard_input_alone() -> None:
    text = hooks.render_script(JobSpec("/bin/true"), CONTEXT)
    command = hooks.submit(type(text)(text.directives, ShellLine("exec /bin/sh run")))

    assert command.argv == ("bsub",)
    assert command.stdin is not None
    assert command.stdin.endswith("exec /bin/sh run\n")
    assert command.environment == {"LSB_NTRIES": "1"}


def test_what_a_surrounding_job_or_another_purpose_leaves_does_not_reach_bsub() -> None:
    inherited = dict.fromkeys(
        (
            *("BSUB_QUIET", "BSUB_CHK_RESREQ", "LSB_JOBID", "LSB_DJOB_HOSTFILE", "LSB_HOSTS", "LSB_SUB_HOST"),
            *("LS_SUBCWD", "LS_JOBPID", "PMI_RANK"),
        ),
        "x",
    )
    kept = {"LSF_ENVDIR": "/etc", "LSB_DEFAULTQUEUE": "q", "LSB_DEFAULTPROJECT": "p", "LS_COLORS": "c"}

    found = environment_of(
        hooks.submit(hooks.render_script(JobSpec("/bin/true"), CONTEXT)), {**inherited, **kept}
    )

    assert found == {**kept, "LSB_NTRIES": "1"}


@pytest.mark.parametrize(
    "stdout",
    [
        "Job <4711> is submitted to queue <normal>.",
        "Job <4711> is submitted to default queue <normal>.",
        "INFO: budget 12 <left>\nJob <4711> is submitted to queue <q>.\nBye <12>",
        "LSF: Job <4711> is submitted to queue <normal>.",
    ],
)
def test_the_id_is_found_between_what_a_site_prints(stdout: str) -> None:
    assert hooks.parse_submit(answered(stdout)) == "4711"


@pytest.mark.parametrize(
    "stdout",
    ["Job <12>: No such job", "Job <1> is submitted to queue <a>.\nJob <2> is submitted to queue <a>."],
)
def test_what_is_no_id_or_two(stdout: str) -> None:
    with pytest.raises(ValueError, match="job id"):
        hooks.parse_submit(answered(stdout))


def test_the_probe_is_one_command() -> None:
    assert hooks.probe().argv[:2] == ("/bin/sh", "-c")


@pytest.mark.parametrize(
    ("stdout", "stderr", "expected"),
    [
        (_ONE_JOB, _LSF, True),
        (_NO_JOBS, _LSF, True),
        (_VOLCLAVA + _NO_JOBS, "", False),
        ("volclava project 2.3\n" + _ONE_JOB, "", False),
        (_VOLCLAVA, "<JOBINDEX> in the format string is not a valid field name.\n", False),
        ("", "Platform LSF 8.0\nbjobs: illegal option -- o\nUsage: bjobs [-h]\n", False),
    ],
    ids=["LSF", "LSF without jobs", "volclava without jobs", "volclava of tomorrow", "volclava", "older"],
)
def test_what_is_found_out(stdout: str, stderr: str, expected: bool) -> None:
    found = hooks.parse_probe(answered(stdout + _QUEUES, stderr))

    assert found == {"json": expected, "requeue_exit_codes": [99, 100], "max_job_array_size": 1000}


@pytest.mark.parametrize(
    "result",
    [
        answered(_ONE_JOB),
        answered(_QUEUES),
        answered(_QUEUES, "Cannot connect to LSF. Please wait ...\n", 255),
        CommandResult(returncode=-9, stdout=_ONE_JOB, timed_out=True),
    ],
    ids=["no queues", "no jobs", "no contact", "hung"],
)
def test_a_probe_without_an_answer_finds_nothing_out(result: CommandResult) -> None:
    with pytest.raises(SubmitException):
        hooks.parse_probe(result)


def test_codes_that_put_a_job_back_are_those_of_queues_and_of_the_configuration() -> None:
    asked = type(MODERN)(config=site(requeue_exit_codes=[5]).config, offers={"requeue_exit_codes": [99]})

    assert hooks.capabilities(asked).requeue_exit_codes == {5, 99}


@pytest.mark.parametrize("offered", [True, False])
def test_slots_of_several_kinds_take_compound_requirements(offered: bool) -> None:
    capabilities = hooks.capabilities(site(compound_requirements=offered))

    assert capabilities.arrays is not None
    assert (capabilities.heterogeneous, capabilities.arrays.heterogeneous) == (offered, True)

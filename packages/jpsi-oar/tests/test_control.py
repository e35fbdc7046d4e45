"""What jpsi makes of the answers of oarsub, oardel, oarhold and oarresume; recordings have more."""

from __future__ import annotations

import pytest

from jpsi.plugin import FailureKind, JobState, Observation
from jpsi_oar import hooks
from jpsi_testing import command_result
from oar_support import CONTEXT

SEEN = {
    native_id: Observation(state=JobState.ACTIVE, native_state="Running", tag=tag)
    for native_id, tag in {"57": "jpsi-a-1", "34.2": "jpsi-b-1", "34.3": "jpsi-b-1", "58": None}.items()
}


def test_jobs_are_cancelled_by_number_and_tag() -> None:
    command = hooks.cancel(["57", "34.2", "34.3", "58"], SEEN)

    conditions = (
        "(job_id = 57 OR array_id = 57 AND array_index IN (1)) AND job_name LIKE '%jpsi-a-1'",
        "(array_id = 34 AND array_index IN (2, 3)) AND job_name LIKE '%jpsi-b-1'",
        "job_id = 58 OR array_id = 58 AND array_index IN (1)",
    )
    unfinished = "state NOT IN ('Terminated', 'Error')"
    assert command.argv == ("oardel", "--sql", f"{unfinished} AND ({' OR '.join(conditions)})")


@pytest.mark.parametrize(
    ("stderr", "code", "expected"),
    [
        ("", 0, {}),
        ("Cannot frag 57 ; This job was already killed.\n", 6, {}),
        ("Cannot frag 57 ; You are not the right user.\n", 1, {"57": "You are not the right user."}),
        # the number of an element
        (
            "Cannot frag 35 ; You are not the right user.\n",
            1,
            dict.fromkeys(["57", "34.2"], "You are not the right user."),
        ),
        ("DBI connect failed\n", 9, dict.fromkeys(["57", "34.2"], "DBI connect failed")),
    ],
    ids=["cancelled", "killed already", "another's", "an element", "failed"],
)
def test_refusals_of_oardel(stderr: str, code: int, expected: dict[str, str]) -> None:
    assert hooks.parse_cancel(command_result(stderr=stderr, returncode=code), ["57", "34.2"]) == expected


def test_a_hold_that_reaches_no_job_is_reported() -> None:
    held = command_result("[57] Hold request was sent to the OAR server.\n")

    assert hooks.parse_hold(held, ["57"]) == {}
    assert hooks.parse_hold(command_result(), ["57"]) == {"57": "the job has ended, or OAR does not know it"}
    refused = command_result(stderr="/!\\ Cannot hold 57 : the job is not in the right state\n", returncode=1)
    assert hooks.parse_hold(refused, ["57"]) == {"57": "the job is not in the right state"}


def test_the_id_is_found_between_what_a_site_prints() -> None:
    printed = "[ADMISSION RULE] Hello 17\nOAR_JOB_ID=34\n"

    assert hooks.parse_submit(command_result(printed), CONTEXT) == "34"
    with pytest.raises(ValueError, match="no job id"):
        hooks.parse_submit(command_result("OAR_JOB_ID=-5\nOAR_JOB_ID=\n"), CONTEXT)


@pytest.mark.parametrize(
    ("code", "stderr", "kind"),
    [
        (8, "There are not enough resources for your request\n", FailureKind.INVALID_JOB),
        (248, "ERROR : The queue nosuch does not exist\n", FailureKind.INVALID_JOB),
        (
            254,
            "[ADMISSION RULE] Error: you cannot have more than 2 waiting advance reservations.\n",
            FailureKind.TRANSIENT,
        ),
        (254, "[ADMISSION RULE] root and oar users are not allowed to submit jobs.\n", FailureKind.PERMANENT),
        (254, "[ADMISSION RULE] 'cpuset' resource is not allowed\n", FailureKind.INVALID_JOB),
        (8, "[ERROR] Oarsub failed, please verify your request syntax.\n", FailureKind.AMBIGUOUS),
        (9, "[ERROR] Cannot connect to executor localhost:6666. Job is killed.\n", FailureKind.AMBIGUOUS),
        (127, "sh: 1: oarsub: not found\n", FailureKind.PERMANENT),
        (255, "ssh: connection closed\n", FailureKind.AMBIGUOUS),
        (255, "/!\\ Cannot recognize -- walltime=abc -- resource\n", FailureKind.INVALID_JOB),
    ],
)
def test_kinds_of_failures(code: int, stderr: str, kind: FailureKind) -> None:
    printed = "[ADMISSION RULE] Set default walltime to 7200.\n"

    assert hooks.classify_failure(command_result(printed, stderr, returncode=code)).kind is kind

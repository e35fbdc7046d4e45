"""The output of `bjobs -o … -json`, in the form of published output of LSF 10.1."""

from __future__ import annotations

import json

import pytest

from jpsi.plugin import JobState, Observation, Reason, SubmitException
from jpsi_lsf import hooks
from jpsi_lsf.commands import lsf_command
from jpsi_lsf.queue.json_listing import FIELDS, parse_records
from jpsi_lsf.queue.observations import nodes
from jpsi_testing import command_result
from lsf_support import MODERN

FAILED, CANCELED = JobState.FAILED, JobState.CANCELED


def _listing(*found: dict[str, str], before: str = "") -> str:
    text = json.dumps({"COMMAND": "bjobs", "JOBS": len(found), "RECORDS": list(found)}, indent=2)
    return before + text.replace("/", "\\/")


def _record(**values: str) -> dict[str, str]:
    usual = dict.fromkeys(FIELDS.upper().split(), "")
    return {**usual, "JOBID": "7", "JOBINDEX": "0", "EXEC_HOST": "node1", **values}


def _observation(**values: str) -> Observation:
    return hooks.parse_status(command_result(_listing(_record(**values))), None, MODERN)["7"]


def test_one_command_queries_all_fields() -> None:
    assert hooks.query(["7", "8[2]"], MODERN).argv == ("bjobs", "-o", FIELDS, "-json", "7", "8[2]")
    assert hooks.query(None, MODERN).argv == ("bjobs", "-o", FIELDS, "-json", "-a")


def test_columns_that_the_user_has_configured_are_ignored() -> None:
    assert "LSB_BJOBS_*" in lsf_command("bjobs").unset


@pytest.mark.clause("state-mapping")
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"STAT": "DONE"}, (JobState.COMPLETED, 0, None)),
        ({"STAT": "EXIT", "EXIT_CODE": "7"}, (FAILED, 7, None)),
        ({"STAT": "EXIT", "EXIT_CODE": "139"}, (FAILED, 139, Reason.SIGNAL)),
        (
            {"STAT": "EXIT", "EXIT_REASON": "TERM_OWNER: job killed by owner"},
            (CANCELED, None, Reason.CANCELLED),
        ),
        (
            {"STAT": "EXIT", "EXIT_CODE": "130", "EXIT_REASON": "TERM_ADMIN: x"},
            (CANCELED, 130, Reason.CANCELLED),
        ),
        (
            {"STAT": "EXIT", "EXIT_CODE": "130", "EXIT_REASON": "TERM_MEMLIMIT: x"},
            (FAILED, 130, Reason.OUT_OF_MEMORY),
        ),
        (
            {"STAT": "EXIT", "EXIT_CODE": "140", "EXIT_REASON": "TERM_RUNLIMIT: x"},
            (FAILED, 140, Reason.TIMEOUT),
        ),
        ({"STAT": "EXIT", "EXIT_REASON": "TERM_PREEMPT: x"}, (FAILED, None, Reason.PREEMPTED)),
        ({"STAT": "EXIT", "EXIT_REASON": "TERM_ORPHAN_SYSTEM: x"}, (CANCELED, None, Reason.DEPENDENCY)),
        ({"STAT": "EXIT", "EXIT_REASON": "TERM_REQUEUE_OWNER: x"}, (JobState.QUEUED, None, Reason.REQUEUED)),
        ({"STAT": "EXIT", "EXIT_CODE": "1", "EXIT_REASON": "TERM_NEW_ONE: x"}, (FAILED, 1, None)),
        ({"STAT": "EXIT", "EXEC_HOST": ""}, (CANCELED, None, Reason.CANCELLED)),
        ({"STAT": "EXIT", "EXEC_HOST": "", "EXIT_CODE": "7"}, (FAILED, 7, None)),
        (
            {"STAT": "EXIT", "EXIT_CODE": "152", "EXIT_REASON": "TERM_CPULIMIT: x"},
            (FAILED, 152, Reason.TIMEOUT),
        ),
        ({"STAT": "UNKWN"}, (JobState.ACTIVE, None, None)),
        ({"STAT": "ZOMBI"}, (JobState.ACTIVE, None, None)),
        ({"STAT": "SSUSP"}, (JobState.ACTIVE, None, None)),
        ({"STAT": "XYZZY"}, (None, None, None)),
    ],
    ids=lambda case: " ".join(case.values()) if isinstance(case, dict) else "",
)
def test_states_and_ends(values: dict[str, str], expected: object) -> None:
    seen = _observation(**values)

    assert (seen.state, seen.exit_code, seen.reason) == expected
    assert seen.native_state == values["STAT"]
    assert seen.details["lsf.state"] == values["STAT"]


def test_lsfs_own_words_are_in_the_details() -> None:
    seen = _observation(STAT="EXIT", EXIT_REASON="TERM_CSM_ALLOC: job killed by LSF due to CSM")

    assert seen.message == "LSF ended the job (TERM_CSM_ALLOC: job killed by LSF due to CSM)"
    assert seen.details["lsf.reason"] == "TERM_CSM_ALLOC: job killed by LSF due to CSM"


@pytest.mark.parametrize(
    ("word", "why", "message", "reason"),
    [
        ("PEND", "New job is waiting for scheduling;", "New job is waiting for scheduling", None),
        ("PEND", "-", None, None),
        ("PSUSP", "", "the job is held", None),
        ("PEND", "Dependency condition invalid or never satisfied;", None, Reason.DEPENDENCY),
    ],
)
def test_the_pending_reason_is_reported(
    word: str, why: str, message: str | None, reason: Reason | None
) -> None:
    seen = _observation(STAT=word, PEND_REASON=why, EXEC_HOST="-")

    assert (seen.state, seen.reason, seen.nodes, seen.ran) == (JobState.QUEUED, reason, (), None)
    assert message is None or seen.message == message


def test_text_before_the_listing_is_skipped() -> None:
    before = "Cannot connect to LSF. Please wait ...\n{ not yet }\n"

    found = hooks.parse_status(command_result(_listing(_record(STAT="RUN"), before=before)), None, MODERN)

    assert found["7"].state is JobState.ACTIVE


def test_an_unknown_job_is_denied_whatever_the_exit_code() -> None:
    unknown = {"JOBID": "9", "ERROR": "Job <9> is not found"}
    both = command_result(_listing(_record(STAT="RUN"), unknown))

    denied = Observation.denied("Job <9> is not found")
    observations = hooks.parse_status(both, ["7", "9"], MODERN)
    assert (observations.keys(), observations["9"]) == ({"7", "9"}, denied)
    alone = command_result(_listing(unknown), returncode=255)
    assert hooks.parse_status(alone, ["9"], MODERN) == {"9": denied}
    old_style = command_result(stderr="Job <9> is not found\n", returncode=255)
    assert hooks.parse_status(old_style, ["9"], MODERN) == {"9": denied}
    with pytest.raises(SubmitException):
        hooks.parse_status(old_style, ["7", "9"], MODERN)


def test_elements_of_an_array_are_distinguished() -> None:
    text = _listing(_record(STAT="RUN", JOBINDEX="1"), _record(STAT="PEND", JOBINDEX="2", EXEC_HOST="-"))

    assert hooks.parse_status(command_result(text), None, MODERN).keys() == {"7[1]", "7[2]"}


def test_an_index_that_is_in_the_id_already_is_not_added() -> None:
    text = _listing(_record(STAT="RUN", JOBID="7[3]", JOBINDEX="3"))

    assert hooks.parse_status(command_result(text), None, MODERN).keys() == {"7[3]"}


@pytest.mark.parametrize("value", ['a "quote"', "a\\", 'a", "b'])
def test_every_job_has_its_state_if_a_value_is_no_json(value: str) -> None:
    text = _listing(
        _record(STAT="RUN", PEND_REASON="MARK", JOB_DESCRIPTION="MARK jpsi-a-1"),
        _record(JOBID="8", STAT="EXIT", EXIT_CODE="3", EXEC_HOST="n1", JOB_DESCRIPTION="jpsi-b-1"),
        {"JOBID": "9", "ERROR": "Job <9> is not found"},
    ).replace("MARK", value)
    with pytest.raises(ValueError, match="column"):
        json.loads(text)

    found = hooks.parse_status(command_result(text), None, MODERN)

    assert {name: (seen.state, seen.exit_code) for name, seen in found.items()} == {
        "7": (JobState.ACTIVE, None),
        "8": (FAILED, 3),
    }
    tags = ["jpsi-a-1", "jpsi-b-1"]
    assert hooks.parse_find(command_result(text), tags, MODERN) == {"jpsi-a-1": "7", "jpsi-b-1": "8"}
    for half in (len(text) // 2, len(text) - 5):
        with pytest.raises(SubmitException):
            hooks.parse_status(command_result(text[:half]), ["7", "8"], MODERN)


@pytest.mark.parametrize(
    "stdout", ["", "garbage", "[]", "{", '{"RECORDS": 7}', _listing(_record(STAT="RUN"))[:-20]]
)
def test_invalid_output_reports_no_job(stdout: str) -> None:
    with pytest.raises(SubmitException):
        hooks.parse_status(command_result(stdout), ["7"], MODERN)


def test_the_command_has_the_tag_of_a_job_whose_description_was_changed() -> None:
    script = "#!/bin/sh;#BSUB -J 'a name';#BSUB -Jd jpsi-a-1;exec run"

    assert _observation(STAT="RUN", COMMAND=script).tag == "jpsi-a-1"
    assert _observation(STAT="RUN", COMMAND=script, JOB_DESCRIPTION="of a user").tag == "jpsi-a-1"
    assert _observation(STAT="RUN", COMMAND=script, JOB_DESCRIPTION="jpsi-a-2").tag is None
    assert _observation(STAT="RUN", COMMAND="sleep 9", JOB_DESCRIPTION="of a user").tag == ""


def test_a_foreign_job_that_runs_a_program_named_jpsi_has_no_tag() -> None:
    for command in (
        "/opt/jpsi-tools/run",
        "#!/opt/jpsi-venv/bin/python;print(7)",
        "#!/bin/sh;cd /tmp/jpsi-1;x",
    ):
        assert _observation(STAT="RUN", COMMAND=command).tag == ""


def _without(field: str) -> dict[str, str]:
    return {name: value for name, value in _record(STAT="RUN").items() if name != field}


@pytest.mark.parametrize(
    "text",
    [
        _listing(_record(STAT="RUN")).replace('"RECORDS": [', '"RECORDS": [null,'),
        _listing(_record(STAT="RUN")).replace('"JOBS": 1', '"JOBS": 2'),
        _listing(_record(STAT="RUN"), {"JOBID": "8"}),
        _listing(_record(STAT="RUN", JOBID="~")),
        _listing(_record(STAT="EXIT", EXIT_CODE="1~")),
        _listing(_record(STAT="EXIT", EXIT_REASON="TERM_OWN~R: job killed by owner")),
        _listing(_record(STAT="EXIT", EXEC_HOST="~")),
        *(_listing(_without(field)) for field in FIELDS.upper().split()),
    ],
    ids=["null", "count", "empty", "id", "code", "reason", "host", *FIELDS.split()],
)
def test_a_record_without_the_requested_fields_is_invalid(text: str) -> None:
    with pytest.raises(SubmitException):
        hooks.parse_status(command_result(text), None, MODERN)


def test_control_characters_in_a_name_are_valid() -> None:
    assert parse_records(_listing(_record(STAT="RUN", PEND_REASON="a\tb")).replace("\\t", "\t")) is not None


def test_a_job_has_the_tag_at_the_end_of_its_description() -> None:
    tags = {
        text: _observation(STAT="RUN", JOB_DESCRIPTION=text).tag
        for text in ("jpsi-a-1", "a%20name jpsi-a-1", "", "a user's", "jpsi-a~1", "\N{REPLACEMENT CHARACTER}")
    }

    assert list(tags.values()) == ["jpsi-a-1", "jpsi-a-1", "", "", None, None]


def test_jobs_are_found_by_their_tags() -> None:
    text = _listing(
        _record(JOB_DESCRIPTION="jpsi-a-1"),
        _record(JOBID="8", JOB_DESCRIPTION="of a user jpsi-b-2"),
        _record(JOBID="9", JOB_DESCRIPTION="jpsi-a-12"),
        _record(JOBID="11"),
    )

    assert hooks.parse_find(command_result(text), ["jpsi-a-1", "jpsi-b-2", "jpsi-c-1"], MODERN) == {
        "jpsi-a-1": "7",
        "jpsi-b-2": "8",
    }


def test_nodes_are_distinct_and_in_order() -> None:
    assert nodes("4*n2:2*n1:n3:n2") == ("n2", "n1", "n3")

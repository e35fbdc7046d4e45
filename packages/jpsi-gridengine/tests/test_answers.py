"""What qstat, qacct, qdel and qhold say, where recordings say too little."""

from __future__ import annotations

import pytest

from jpsi.plugin import CommandResult, JobState, Observation, Reason, SubmitException
from jpsi.testing import answered
from jpsi_gridengine import hooks
from jpsi_gridengine.states import meaning

_QUEUED, _ACTIVE = JobState.QUEUED, JobState.ACTIVE


def _listing(*rows: str) -> CommandResult:
    return answered(f"Hello\n<?xml version='1.0'?>\n<job_info>{''.join(rows)}</job_info>\n")


def _row(number: int, state: str = "r", name: str = "a", more: str = "") -> str:
    fields = f"<JB_job_number>{number}</JB_job_number><JB_name>{name}</JB_name><state>{state}</state>{more}"
    return f'<job_list state="x">{fields}</job_list>'


def _account(**fields: str) -> str:
    known = {
        "qname": "main.q",
        "hostname": "node01",
        "jobnumber": "17",
        "taskid": "undefined",
        "end_time": "Sat Nov 21 09:00:23 2026",
        "failed": "0",
        "exit_status": "0",
        "ru_wallclock": "4s",
        "maxvmem": "1K",
        "category": "-l h_rt=600",
    }
    lines = "".join(f"{name:<12} {value}   \n" for name, value in {**known, **fields}.items())
    return f"{'=' * 62}\n{lines}"


def _end(*accounts: str) -> Observation | None:
    return hooks.parse_finished(answered("".join(accounts))).get("17")


# sge_status(5) of 8.1.9, Job state
@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("qw hqw hRwq Rq t Rt dt dRt Eqw Ehqw EhRqw", _QUEUED),
        ("r hr Rr s ts S tS T tT Rs Rts RS RtS RT RtT dr dRr ds dS dT dRs dRS dRT hs", _ACTIVE),
    ],
)
def test_every_state_of_the_manual_is_known(words: str, state: JobState) -> None:
    found = {word: meaning(word) for word in words.split()}

    assert {word: it and it.state for word, it in found.items()} == dict.fromkeys(words.split(), state)


def test_a_job_in_an_error_state_says_so() -> None:
    found = hooks.parse_status(_listing(_row(17, "Eqw")))["17"]

    assert (found.state, found.reason) == (_QUEUED, Reason.LAUNCH)
    assert "qmod -cj" in str(found.message)


def test_a_word_that_nobody_knows_costs_no_other_job_its_state() -> None:
    found = hooks.parse_status(_listing(_row(17, "Xr"), _row(18, "r")))

    assert (found["17"].state, found["17"].word) == (None, "Xr")
    assert found["18"].state is _ACTIVE


def test_a_name_that_is_no_xml_costs_no_other_job_its_state() -> None:
    """As 8.1.9 writes `<`; another release may forget it."""
    rows = [_row(17, name="a%lt;b&amp;c"), _row(18, name="a < b & c"), _row(19)]

    assert set(hooks.parse_status(_listing(*rows))) == {"17", "18", "19"}


def test_ended_jobs_are_not_in_the_queue() -> None:
    assert hooks.parse_status(_listing(_row(17, "z"))) == {}


def test_tasks_of_an_array_have_ids_of_their_own() -> None:
    rows = [_row(17, more="<tasks>2</tasks>"), _row(17, "qw", more="<tasks>3-9:1</tasks>")]

    assert list(hooks.parse_status(_listing(*rows))) == ["17.2", "17.3-9:1"]


def test_half_an_answer_is_none() -> None:
    whole = _listing(_row(17)).stdout

    with pytest.raises(SubmitException, match="no answer"):
        hooks.parse_status(answered(whole[: len(whole) // 2]))


def test_a_tag_is_found_at_the_end_of_a_name_alone() -> None:
    rows = [_row(17, name="a.b.jpsi-1-1"), _row(18, name="jpsi-2-1"), _row(19, name="jpsi-3-1.x")]

    assert hooks.parse_find(_listing(*rows), ["jpsi-1-1", "jpsi-2-1", "jpsi-3-1"]) == {
        "jpsi-1-1": "17",
        "jpsi-2-1": "18",
    }


def test_one_question_is_for_one_job() -> None:
    assert hooks.query_finished(["17"]).argv == ("qacct", "-j", "17")
    assert hooks.query_finished(["17.2"]).argv == ("qacct", "-j", "17", "-t", "2")


def test_no_file_of_accounts_tells_nothing() -> None:
    said = "/var/lib/gridengine/default/common/accounting: No such file or directory\n"

    assert hooks.parse_finished(answered(stderr=said, returncode=1)) == {}


def test_an_account_that_cannot_be_read_is_no_answer() -> None:
    with pytest.raises(SubmitException, match="Stale"):
        hooks.parse_finished(answered(stderr="error: Stale file handle\n", returncode=1))


@pytest.mark.parametrize("kept", range(0, 400, 7))
def test_an_account_that_was_cut_tells_the_truth_or_nothing(kept: int) -> None:
    text = _account(exit_status="137", failed="37  : qmaster enforced h_rt limit")

    end = _end(text[:kept])

    assert end is None or end.exit_code == 137


def test_the_last_run_counts() -> None:
    again = _account(failed="25  : rescheduling", exit_status="99")

    end = _end(again, _account(exit_status="5"))

    assert end is not None
    assert end.exit_code == 5
    assert _end(_account(), again) is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"failed": "100 : assumedly after job", "exit_status": "137 (Killed)"}, Reason.SIGNAL),
        (
            {"failed": "100 : assumedly after job", "exit_status": "137", "ru_wallclock": "600.1"},
            Reason.TIMEOUT,
        ),
        # it outlived its limit, but something else than that limit ended it
        (
            {"failed": "100 : assumedly after job", "exit_status": "139", "ru_wallclock": "600"},
            Reason.SIGNAL,
        ),
        (
            {"failed": "37  : qmaster enforced h_rt, h_cpu, or h_vmem limit", "exit_status": "137"},
            Reason.TIMEOUT,
        ),
        (
            {
                "failed": "37  : qmaster enforced h_rt, h_cpu, or h_vmem limit",
                "exit_status": "137",
                "category": "-l h_rt=600,h_vmem=1G",
            },
            Reason.OUT_OF_MEMORY,
        ),
        ({"failed": "21  : in recognizing job"}, Reason.NODE_FAIL),
        ({"failed": "19  : before writing exit_status"}, Reason.NODE_FAIL),
        ({"failed": "28  : changing into working directory"}, Reason.LAUNCH),
        ({"failed": "8   : in prolog"}, Reason.LAUNCH),
        ({"failed": "15  : in epilog"}, None),
    ],
    ids=lambda it: None if isinstance(it, dict) else str(it),
)
def test_why_a_job_failed(fields: dict[str, str], reason: Reason | None) -> None:
    end = _end(_account(**fields))

    assert end is not None
    assert (end.state, end.reason) == (JobState.FAILED, reason)


def test_a_job_that_did_not_start_has_no_code() -> None:
    end = _end(_account(failed="26  : opening input/output file", exit_status="0", end_time="-/-"))

    assert end is not None
    assert (end.exit_code, end.ran, end.time) == (None, False, None)


def test_the_commands() -> None:
    assert hooks.cancel(["7", "8.1"]).argv == ("qdel", "7", "8.1")
    assert hooks.hold(["7"]).argv == ("qhold", "7")
    assert hooks.release(["7"]).argv == ("qrls", "7")


def test_only_the_job_of_somebody_else_was_not_cancelled() -> None:
    said = (
        "me has registered the job 7 for deletion\njob 71 is already in deletion\n"
        'me - you do not have the necessary privileges to delete the job "8"\n'
        'denied: job "9" does not exist\n'
    )

    assert list(hooks.parse_cancel(answered(said, returncode=1), ["7", "71", "8", "9"])) == ["8"]


def test_a_request_that_reached_nobody_failed_for_every_job() -> None:
    said = 'unable to send message to qmaster using port 6444 on host "x": got send error\n'

    assert set(hooks.parse_cancel(answered(said, returncode=1), ["7", "6444"])) == {"7", "6444"}
    assert set(hooks.parse_hold(CommandResult(returncode=0, timed_out=True), ["7"])) == {"7"}


def test_an_unknown_job_cannot_be_held() -> None:
    said = 'modified hold of job 7\ndenied: job "8" does not exist\n'

    assert list(hooks.parse_hold(answered(said, returncode=3), ["7", "8"])) == ["8"]

"""The output of qacct in cases without a recording."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest

from gridengine_support import RULE, SITE, run_query, twice
from jpsi.plugin import NOT_OFFERED, CommandResult, JobState, NotOffered, Observation, Reason, SubmitException
from jpsi_gridengine import hooks
from jpsi_testing import command_result


def _account(**fields: str) -> str:
    known = {
        "qname": "main.q",
        "hostname": "node01",
        "jobname": "jpsi-1-1",
        "jobnumber": "17",
        "taskid": "undefined",
        "qsub_time": "Sat Nov 21 09:00:17 2026",
        "end_time": "Sat Nov 21 09:00:23 2026",
        "failed": "0",
        "exit_status": "0",
        "ru_wallclock": "4s",
        "maxvmem": "1K",
        "category": "-l h_rt=600",
    }
    lines = "".join(f"{name:<12} {value}   \n" for name, value in {**known, **fields}.items())
    return f"{RULE}\n{lines}"


def _end(*accounts: str) -> Observation | None:
    found = hooks.parse_finished(twice(*accounts), ["17"])
    return None if isinstance(found, NotOffered) else found.get("17")


@pytest.mark.parametrize(
    ("cpu", "maxvmem", "expected"),
    [
        ("12.345s", "3.5MB", {"used.cpu": 12.345, "used.memory": 3_670_016}),
        ("12.345", "2G", {"used.cpu": 12.345, "used.memory": 2 << 30}),
        ("0.000s", "0.000B", {}),
        ("-/-", "N/A", {}),
    ],
)
def test_an_account_says_what_was_used_unless_it_is_zero(
    cpu: str, maxvmem: str, expected: dict[str, float]
) -> None:
    end = _end(_account(cpu=cpu, maxvmem=maxvmem))

    assert end is not None
    assert {name: it for name, it in end.details.items() if name.startswith("used.")} == expected


def test_without_a_known_accounting_file_qacct_is_called_per_job() -> None:
    assert hooks.capabilities(SITE).ids_per_accounting == 1
    assert hooks.capabilities(attrs.evolve(SITE, offers={"root": "/sge"})).ids_per_accounting == 1000


# As written by 8.1.9: a parallel job that ran `qrsh -inherit` twice and exited with 7, then tasks of an array
_RUSAGE = "0:0:1:0.0:0.0:1.0:0:0:0:0:632:1:0:32.0:64:0:0:0:5:3:NONE:defaultdepartment"
_TASK_OF_17 = f"{_RUSAGE}:smp:2:0:0.0:0.0:0.0:-pe smp 2:0.0:1.node01:0.0:0:0"
_OWN_OF_17 = f"{_RUSAGE}:smp:2:0:0.0:0.0:0.0:-pe smp 2:0.0:NONE:0.0:0:0"
_FILE = f"""\
# Version: 8.1.9
main.q:node01:me:me:true:17:sge:0:1795292937:1795292937:1795292938:{_TASK_OF_17}
main.q:node01:me:me:true:170:sge:0:1795292937:1795292937:1795292938:{_OWN_OF_17}
main.q:node01:me:me:true:17:sge:0:1795292937:1795292937:1795292942:{_OWN_OF_17}
main.q:node01:me:me:true:18:sge:0:1795292937:1795292937:1795292938:{_RUSAGE}:NONE:1:3:0:0:0:NONE:0:NONE:0:0:0
main.q:node01:me:me:true:18:sge:0:1795292937:1795292937:1795292938:{_RUSAGE}:NONE:1:30:0:0:0:NONE:0:NONE:0:0:0
"""


# A qacct that prints the needed fields of accounting(5) from its input
_READ = r"""
[ "$*" = "-f /dev/stdin -j" ] || exit 9
awk -F: '{
    print "===="
    print "taskid", ($36 ? $36 : "undefined")
    split("jobname 5 jobnumber 6 granted_pe 34 qsub_time 9 end_time 11 failed 12 exit_status 13", of, " ")
    for (i = 1; i < 14; i += 2) print of[i], $of[i + 1]
    print "ru_wallclock", $14
    print "maxvmem", $43
}'
"""


def _accounts_file(folder: Path) -> str:
    accounts = folder / "default" / "common" / "accounting"
    accounts.parent.mkdir(parents=True)
    accounts.write_text(_FILE)
    return str(folder)


def test_accounts_of_tasks_that_a_parallel_job_starts_are_left_out(tmp_path: Path) -> None:
    root = _accounts_file(tmp_path)

    result = run_query(tmp_path, ["17", "18.3"], _READ, root)
    found = hooks.parse_finished(result, ["17", "18.3"])

    assert not isinstance(found, NotOffered)
    assert {native_id: it.time and it.time.timestamp() for native_id, it in found.items()} == {
        "17": 1795292942,
        "18.3": 1795292938,
    }
    tasks = hooks.parse_finished(run_query(tmp_path, ["18"], _READ, root), ["18.3", "18.30", "18.31"])
    assert not isinstance(tasks, NotOffered)
    assert set(tasks) == {"18.3", "18.30"}, "those of a whole array"


def test_jobs_missing_in_the_accounting_file_are_reported_as_unknown(tmp_path: Path) -> None:
    root = _accounts_file(tmp_path)

    for native_ids in (["7", "18.4"], ["7", "18.4", "17"]):
        result = run_query(tmp_path, native_ids, _READ, root)
        found = hooks.parse_finished(result, native_ids)
        assert not isinstance(found, NotOffered)
        assert set(found) == set(native_ids) & {"17"}

    with pytest.raises(SubmitException, match="nothing about 8"):
        hooks.parse_finished(result, ["7", "18.4", "17", "8"])


def test_without_an_accounting_file_qacct_is_called_for_each_job(tmp_path: Path) -> None:
    qacct = f'echo "$@" >>"{tmp_path}/calls"; echo "error: job id $2 not found" >&2; exit 1'

    result = run_query(tmp_path, ["17", "18.3"], qacct, root=str(tmp_path))

    assert (tmp_path / "calls").read_text() == "-j 17\n-j 18 -t 3\n" * 2
    assert hooks.parse_finished(result, ["17", "18"]) == {}


@pytest.mark.parametrize("root", ["", "known"])
@pytest.mark.parametrize("last", [1, 2])
def test_output_that_qacct_truncates_is_refused(tmp_path: Path, root: str, last: int) -> None:
    """It may omit accounts or a part of one, and if it reads its own file, in one of two calls."""
    known = _accounts_file(tmp_path) if root else ""
    texts = [_account(taskid=task).encode() for task in ("3", "30")]
    whole = b"".join(texts)
    calls = f'echo >>"{tmp_path}/calls"; [ "$(wc -l <"{tmp_path}/calls")" = {last} ]'
    qacct = f'{calls} && exec head -c {{}} "{tmp_path}/answer"; exec cat "{tmp_path}/answer"'
    if root:
        run_query(tmp_path, ["18"], f'{_READ.strip()} | tee "{tmp_path}/answer"', known)
        whole = (tmp_path / "answer").read_bytes()
        qacct = f'cat >/dev/null; exec head -c {{}} "{tmp_path}/answer"'
    (tmp_path / "answer").write_bytes(whole)

    for kept in range(0, whole.rindex(b"jobname"), 37):
        (tmp_path / "calls").unlink(missing_ok=True)
        result = run_query(tmp_path, ["18"], qacct.format(kept), known)
        with pytest.raises(SubmitException):
            hooks.parse_finished(result, ["18.3", "18.30"])


def test_output_without_an_account_of_the_file_is_refused(tmp_path: Path) -> None:
    """Though both calls print the same, and the end."""
    root = _accounts_file(tmp_path)

    result = run_query(
        tmp_path, ["18"], f"{{ read -r _; cat; }} | {_READ.partition('exit 9')[2].strip()}", root
    )

    assert result.stdout.count("taskid 30\n") == 4
    with pytest.raises(SubmitException, match="is incomplete"):
        hooks.parse_finished(result, ["18.3", "18.30"])


def test_an_account_of_a_parallel_task_is_ignored() -> None:
    """It exists while the job runs, and looks like the account of the job."""
    task, own = _account(granted_pe="smp"), _account(granted_pe="smp", exit_status="7")

    assert _end(task) is None
    assert _end(task, own) is None
    assert _end(_account(granted_pe="smp", pe_taskid="1.node01")) is None
    end = _end(
        _account(granted_pe="smp", pe_taskid="1.node01"),
        _account(granted_pe="smp", pe_taskid="NONE", exit_status="7"),
    )
    assert end is not None
    assert end.exit_code == 7


def test_an_account_of_ocs_9_is_understood() -> None:
    """Its times have another form, and it does not repeat the job's requests."""
    text = _account(
        end_time="2024-09-27 07:42:08.801865", pe_taskid="NONE", exit_status="3", ru_wallclock="1.5"
    )
    end = _end("".join(line for line in text.splitlines(keepends=True) if not line.startswith("category")))

    assert end is not None
    assert (end.exit_code, end.time) == (3, datetime(2024, 9, 27, 7, 42, 8, 801865, tzinfo=UTC))


def test_an_unknown_job_does_not_hide_the_accounts_of_others() -> None:
    stderr = "error: job id 16 not found\n\nerror: Job-array tasks 18.3-3:1 not found\n"

    found = hooks.parse_finished(twice(_account(), stderr=stderr), ["16", "17", "18.3"])

    assert not isinstance(found, NotOffered)
    assert set(found) == {"17"}


@pytest.mark.parametrize(
    "result",
    [
        command_result(
            stderr="error: unable to open /sge/common/accounting\nno jobs running since startup\n",
            returncode=1,
        ),
        command_result(stderr="sh: qacct: not found\n", returncode=127),
    ],
    ids=["unreadable", "no command"],
)
def test_accounts_that_the_user_cannot_read_are_not_offered(result: CommandResult) -> None:
    assert hooks.parse_finished(result, ["17"]) is NOT_OFFERED


def test_a_missing_accounting_file_reports_nothing() -> None:
    stderr = "/var/lib/gridengine/default/common/accounting: No such file or directory\n"

    assert hooks.parse_finished(twice(stderr=stderr), ["17"]) == {}


def test_an_unreadable_account_is_refused() -> None:
    with pytest.raises(SubmitException, match="Stale"):
        hooks.parse_finished(command_result(stderr="error: Stale file handle\n", returncode=1), ["17"])
    with pytest.raises(SubmitException, match="nothing about 17"):
        hooks.parse_finished(twice(stderr="error: Stale file handle\n"), ["17"])


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
        # it ran past its limit, but another cause ended it
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
        ({"failed": "22  : execd lost running job"}, None),
        ({"failed": "23  : PTF cannot get pids"}, None),
        ({"failed": "77  : unknown cause"}, None),
    ],
    ids=lambda it: None if isinstance(it, dict) else str(it),
)
def test_the_reason_of_a_failure(fields: dict[str, str], reason: Reason | None) -> None:
    end = _end(_account(**fields))

    assert end is not None
    assert (end.state, end.reason) == (JobState.FAILED, reason)


@pytest.mark.parametrize(("failed", "ran"), [("22", None), ("77", None), ("19", None), ("8", False)])
def test_ran_is_set_if_known(failed: str, ran: bool | None) -> None:
    end = _end(_account(failed=failed))

    assert end is not None
    assert (end.state, end.ran, end.exit_code) == (JobState.FAILED, ran, None)


def test_a_job_that_did_not_start_has_no_code() -> None:
    end = _end(_account(failed="26  : opening input/output file", exit_status="0", end_time="-/-"))

    assert end is not None
    assert (end.exit_code, end.ran, end.time) == (None, False, None)

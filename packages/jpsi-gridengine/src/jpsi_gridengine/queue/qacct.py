"""Queries qacct for jobs that have left the queue, and parses its output.

Only the accounting has exit codes. A job appears in it seconds after its end; a job that was deleted while
pending never does. A task that a parallel job started by `qrsh -inherit` may get an account of its own before
the job does: qacct of 8.1.9 prints the two alike, but its file of accounts distinguishes them.

qacct does not mark the end of its output. The command therefore prints everything twice, each time with a
final line that has the number of accounts: if the two copies differ, or a number is wrong, the output is an
error. If the file of accounts can be read, the number comes from the file, and qacct itself prints the final
line, as the name of a last account. Otherwise the checks miss one error: qacct, called twice, leaves out the
same accounts and reports success; then later accounts of the job, or of tasks of its array, are missing.

An id that qacct does not know yields no Observation, as qacct does not know pending or running jobs. An id
that qacct neither prints nor calls unknown is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from jpsi.plugin import (
    NOT_OFFERED,
    Command,
    CommandResult,
    JobState,
    NotOffered,
    Observation,
    Reason,
    Site,
    SubmitException,
    hookimpl,
)
from jpsi.plugin.kit import extract_tag, parse_time

from ..commands import gridengine_command
from ..native_ids import job_number

# accounting(5) of 8.1.9: 5 job_name, 6 job_number, 34 granted_pe, 36 task_number, 42 pe_taskid. awk keeps the
# accounts of jobs, and makes them look like those of jobs without tasks. No job is called `1 accounts`, as
# names have no blanks and do not start with digits. OCS 9 has no such file.
_SCRIPT = """\
accounts=$1/${SGE_CELL:-default}/common/accounting
is_known=$1
shift
# without the text that a site prints first, and the sum below all accounts of a file
print_accounts() { printf '%s\\n' "$1" | sed -n -e '/^Total System Usage$/q' -e '/^===*$/,$p'; }
end() { printf '==\\njobname      %s accounts\\n' "$1"; }
if [ -n "$is_known" ] && [ -r "$accounts" ]; then
    found=$(awk -F: -v OFS=: -v queried="$*" '
        BEGIN { for (i = split(queried, ids, " "); i; i--) wanted[ids[i]] }
        NF > 42 && ($6 in wanted || ($6 "." $36) in wanted) && ($34 == "NONE" || $42 == "NONE") {
            $34 = "NONE"
            print
            last = $0
            count++
            seen[$6]
            seen[$6 "." $36]
        }
        END {
            for (id in wanted) if (!(id in seen)) print "error: job id " id " not found" | "cat >&2"
            if (!count) exit
            $0 = last
            $5 = count " accounts"
            print
        }' "$accounts") || exit
    for call in 1 2; do
        if [ -z "$found" ]; then
            end 0
            continue
        fi
        output=$(printf '%s\\n' "$found" | qacct -f /dev/stdin -j) || exit
        print_accounts "$output"
    done
    exit
fi
for call in 1 2; do
    count=0
    for id do
        case $id in
        *.*) output=$(qacct -j "${id%.*}" -t "${id#*.}") ;;
        *) output=$(qacct -j "$id") ;;
        esac
        code=$?
        [ "$code" -lt 126 ] || exit "$code"
        # qacct prints an error about each unknown job, and nothing else then
        [ "$code" = 0 ] || continue
        print_accounts "$output"
        count=$((count + $(printf '%s\\n' "$output" | grep -c '^===*$')))
    done
    end "$count"
done
"""

_NOT_FOUND = re.compile(
    r"^error: (?:job (?:id|name)|Job-array tasks) ([\d.]+)(?:-\d+:1)? not found$", re.MULTILINE
)
# The file of accounts does not exist before the first job has ended.
_NO_FILE = re.compile(r"accounting: No such file or directory$|^no jobs running since startup$", re.MULTILINE)
_UNREADABLE = re.compile(r"^error: unable to open ", re.MULTILINE)
_NO_COMMAND = frozenset({126, 127})
_NONE = "NONE"
_SEPARATOR = re.compile(r"^==+$\n", re.MULTILINE)
_LINE = re.compile(r"^(\w+)(?: +(.*?))? *\n", re.MULTILINE)
_END_LINE = re.compile(r"(\d+) accounts")
_NAME, _NUMBER, _TASK, _TIME = "jobname", "jobnumber", "taskid", "qsub_time"
_REQUIRED = frozenset(
    {_NAME, _NUMBER, _TASK, _TIME, "end_time", "failed", "exit_status", "ru_wallclock", "maxvmem"}
)
# The last field of an account in 8.1.9, which writes seconds as `4s`; others write `4`, and have no such
# field.
_LAST_FIELD = "category"
_SECONDS = re.compile(r"[\d.]+s")

_Account = Mapping[str, str]


@hookimpl
def query_finished(native_ids: Sequence[str], site: Site) -> Command:
    """Return the command that queries these jobs, by one qacct each if the file of accounts is unknown."""
    return gridengine_command("/bin/sh", "-c", _SCRIPT, "qacct", site.offers.get("root", ""), *native_ids)


@hookimpl
def parse_finished(
    result: CommandResult, native_ids: Sequence[str]
) -> Mapping[str, Observation] | NotOffered:
    """Return an Observation of each job in qacct's output; of a requeued job, that of its last run.

    Raises:
        SubmitException: the output is incomplete, or qacct neither printed a job nor called it unknown.
    """
    if result.returncode in _NO_COMMAND or _UNREADABLE.search(result.stderr):
        return NOT_OFFERED
    accounts = _parse_accounts(result)
    unknown = set() if _NO_FILE.search(result.stderr) is None else set(native_ids)
    unknown.update(_NOT_FOUND.findall(result.stderr))
    unknown.update(account[_NUMBER] for account in accounts)
    if missing := [
        native_id
        for native_id in native_ids
        if native_id not in unknown and job_number(native_id) not in unknown
    ]:
        msg = f"qacct printed nothing about {', '.join(missing)}: {result.stderr[-200:]!r}"
        raise SubmitException(msg, transient=True)
    last_accounts = {_native_id(account): account for account in accounts if _is_job_account(account)}
    observations = {
        native_id: observe_account(account, _submit_time(account, accounts))
        for native_id, account in last_accounts.items()
    }
    return {
        native_id: observation for native_id, observation in observations.items() if observation is not None
    }


def _parse_accounts(result: CommandResult) -> list[_Account]:
    """Return all accounts in the output, which must have printed them twice.

    Raises:
        SubmitException: the two copies differ, or the output is incomplete.
    """
    _, *texts = _SEPARATOR.split(result.checked().stdout)
    copies: list[list[str]] = [[]]
    for text in texts:
        end = _END_LINE.fullmatch(dict(_LINE.findall(text)).get(_NAME, ""))
        if end is None:
            copies[-1].append(text)
        elif len(copies[-1]) == int(end[1]):
            copies.append([])
    first, *others = copies
    if others != [first, []]:
        msg = f"the output of qacct is incomplete, or its two copies differ: {result.stdout[-200:]!r}"
        raise SubmitException(msg, transient=True)
    return [_parse_account(text) for text in first]


def _parse_account(text: str) -> _Account:
    lines = [_LINE.fullmatch(line) for line in text.splitlines(keepends=True) if line.strip()]
    account = {line[1]: line[2] or "" for line in lines if line is not None}
    has_last = _LAST_FIELD in account or _SECONDS.fullmatch(account.get("ru_wallclock", "")) is None
    is_complete = len(account) == len(lines) and account.keys() >= _REQUIRED and has_last
    if not is_complete or not account[_NUMBER].isdecimal():
        raise SubmitException(f"qacct printed a malformed account: {text!r}", transient=True)
    return account


def _submit_time(account: _Account, accounts: Sequence[_Account]) -> datetime | None:
    """Return a job's time of submission, the earliest of its accounts, as a requeue changes the time."""
    job = account[_NUMBER], account[_NAME]
    times = [parse_time(other[_TIME]) for other in accounts if (other[_NUMBER], other[_NAME]) == job]
    return min((time for time in times if time is not None), default=None)


def _is_job_account(account: _Account) -> bool:
    """Return False if an account is, or may be, that of a task that a parallel job started."""
    # Only OCS 9 says whether the account is a task's; in others, any account of a parallel job may be.
    return account.get("pe_taskid", account.get("granted_pe", _NONE)) == _NONE


def _native_id(account: _Account) -> str:
    number, task = account[_NUMBER], account[_TASK]
    return f"{number}.{task}" if task.isdecimal() else number


# sge_status(5) of 8.1.9, "Failed" states. Other states do not show whether the job ran, such as 22: its node
# has lost the job.
_NO_FAILURE = 0
_NOT_STARTED = frozenset({*range(1, 12), *range(26, 30), *range(31, 37), 38})
_RAN = frozenset({12, 13, 14, 15, 16, 17, 30})
_NODE_FAILED = frozenset({18, 19, 20, 21})
_REQUEUED = frozenset({24, 25})
_LIMIT = 37
_SIGNALLED = 100
#: 128 + n is the exit code of a job that signal n ended.
_SIGNAL_BASE = 128
# The signals with which the time limits that a job was submitted with end it
_KILL, _USR1 = 9, 10
_LIMITS = {_SIGNAL_BASE + _KILL: "h_rt", _SIGNAL_BASE + _USR1: "s_rt"}
# accounting(5), as qacct prints it: 0.006s, 3.441MB; other versions leave the last letter out.
_CPU = re.compile(r"(\d+(?:\.\d+)?)s?")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)B?")
_UNITS = {unit: 1 << 10 * power for power, unit in enumerate(("", "K", "M", "G", "T"))}
_OVER_LIMIT = "the job used up its duration and was ended"


def observe_account(account: Mapping[str, str], submitted: datetime | None) -> Observation | None:
    """Return the Observation for an account; None if Grid Engine requeued the job after that run.

    Args:
        account: the account's fields, by their names in qacct.
        submitted: the time of the job's submission.
    """
    failed, text = _parse_number(account["failed"]), account["failed"]
    if failed is None or failed in _REQUEUED:
        return None
    exit_code = _parse_number(account["exit_status"])
    state, reason, message = _explain_end(failed, text, exit_code, account)
    host = account.get("hostname", "")
    ran = failed in {_NO_FAILURE, _LIMIT, _SIGNALLED, *_RAN}
    return Observation(
        state=state,
        native_state=text if failed else "0",
        tag=extract_tag(account["jobname"]),
        submitted=submitted,
        reason=reason,
        message=message,
        exit_code=exit_code if ran else None,
        ran=ran or (False if failed in _NOT_STARTED else None),
        time=parse_time(account.get("end_time", "")),
        nodes=(host,) if host and ran else (),
        details={
            "gridengine.failed": text,
            "gridengine.queue": account.get("qname", ""),
            **(_usage(account) if ran else {}),
        },
    )


def _usage(account: Mapping[str, str]) -> dict[str, float]:
    """Return the seconds of CPU time and the bytes of memory; a zero stands for what was not measured."""
    cpu, memory = _CPU.fullmatch(account.get("cpu", "")), _MEMORY.fullmatch(account.get("maxvmem", ""))
    used = {
        "used.cpu": 0.0 if cpu is None else float(cpu[1]),
        "used.memory": 0 if memory is None else int(float(memory[1]) * _UNITS[memory[2]]),
    }
    return {name: amount for name, amount in used.items() if amount}


def _explain_end(
    failed: int, text: str, exit_code: int | None, account: Mapping[str, str]
) -> tuple[JobState, Reason | None, str | None]:
    message = f"Grid Engine calls the job failed: {text}"
    if failed == _NO_FAILURE:
        return JobState.FAILED if exit_code else JobState.COMPLETED, None, None
    if failed in {_LIMIT, _SIGNALLED} and _is_over_limit(exit_code, account):
        return JobState.FAILED, Reason.TIMEOUT, _OVER_LIMIT
    if failed == _LIMIT:
        # The job had no time limit of its own: it exceeded the queue's limit, or one on memory.
        reason = Reason.OUT_OF_MEMORY if _requested_limit(account, "h_vmem") else Reason.TIMEOUT
        return JobState.FAILED, reason, message
    if failed == _SIGNALLED:
        return JobState.FAILED, Reason.SIGNAL, f"{message}; Grid Engine does not report whether qdel ended it"
    if failed in _NODE_FAILED:
        return JobState.FAILED, Reason.NODE_FAIL, message
    return JobState.FAILED, Reason.LAUNCH if failed in _NOT_STARTED else None, message


def _is_over_limit(exit_code: int | None, account: Mapping[str, str]) -> bool:
    limit = _requested_limit(account, _LIMITS.get(exit_code or 0, ""))
    used = _parse_number(account.get("ru_wallclock", ""))
    return limit is not None and used is not None and used >= limit


def _requested_limit(account: Mapping[str, str], resource: str) -> int | None:
    """Return the amount of a resource that the job requested by `-l`, from its category."""
    match = re.search(rf"[ ,]{re.escape(resource)}=(\d+)", account.get("category", "")) if resource else None
    return None if match is None else int(match[1])


def _parse_number(text: str) -> int | None:
    """Return the number at the start of fields such as `100 : assumedly after job`, `137 (Killed)`, `4s`."""
    match = re.match(r"\d+", text)
    return None if match is None else int(match[0])

"""Derives the end of a job from Grid Engine's account of it, without guessing.

`queue.qacct` uses it for each account.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from jpsi.plugin import JobState, Observation, Reason
from jpsi.plugin.kit import extract_tag, parse_time

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

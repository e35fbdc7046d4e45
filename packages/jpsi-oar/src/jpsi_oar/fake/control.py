"""`oardel`, `oarhold` and `oarresume` of the fake of OAR.

Tests and `jpsi fake` run jobs on the fake, without a real OAR.
"""

from __future__ import annotations

from collections.abc import Callable

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeScheduler, Invocation, OptionTable, join_lines

from .listing import Row, select

_OPTIONS = OptionTable(valued="sql", unknown=(1, "Unknown option: {}\n"))
_RIGHT = "You are not the right user."


def _chosen(scheduler: FakeScheduler, invocation: Invocation) -> tuple[list[Row], list[str]]:
    """Return the rows that the arguments name, and the numbers that no row has."""
    arguments = _OPTIONS.parse(invocation.arguments, permutes=True)
    numbers = [it for it in arguments.words if it.isdecimal()]
    rows = select(scheduler, arguments.last("sql") or f"job_id IN ({', '.join(numbers)})")
    known = {str(row.number) for row in rows}
    return rows, [it for it in numbers if it not in known]


def oardel(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """End jobs; ended ones are registered, too."""
    rows, unknown = _chosen(scheduler, invocation)
    code, printed, errors, registered = 0, "", "", []
    for number in unknown:
        code, printed = 1, f"{printed}Deleting the job = {number} ...ERROR.\n"
        errors += f"Cannot frag {number} ; {_RIGHT}\n"
    for row in rows:
        was_killed = row.job.ending is not None
        printed += f"Deleting the job = {row.number} ..."
        if not row.job.is_own or was_killed:
            code = 6 if was_killed else 1
            printed += "ERROR.\n"
            errors += (
                f"Cannot frag {row.number} ; {'This job was already killed.' if was_killed else _RIGHT}\n"
            )
            continue
        printed += "REGISTERED.\n"
        registered.append(str(row.number))
        if row.is_last:
            scheduler.cancel(row.job.native_id)
    if registered:
        printed += f"The job(s) [ {' '.join(registered)} ] will be deleted in the near future.\n"
    return CommandResult(returncode=code, stdout=printed, stderr=errors)


def oarhold(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Keep waiting jobs from starting."""
    why = "the job is not in the right state (try '-r' option)."
    return _change(scheduler, invocation, "hold", scheduler.hold, why)


def oarresume(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Let held jobs start."""
    why = "the job is not in the Hold or Suspended state."
    return _change(scheduler, invocation, "resume", scheduler.release, why)


def _change(
    scheduler: FakeScheduler, invocation: Invocation, verb: str, change: Callable[[str], bool], why: str
) -> CommandResult:
    rows, unknown = _chosen(scheduler, invocation)
    errors = [f"/!\\ Cannot {verb} {number} : this job does not exist." for number in unknown]
    printed = []
    for row in rows:
        if row.job.is_own and row.is_last and change(row.job.native_id):
            printed.append(f"[{row.number}] {verb.capitalize()} request was sent to the OAR server.")
        else:
            reason = why if row.job.is_own else "you are not the right user."
            errors.append(f"/!\\ Cannot {verb} {row.number} : {reason}")
    return CommandResult(returncode=1 if errors else 0, stdout=join_lines(printed), stderr=join_lines(errors))

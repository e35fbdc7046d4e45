"""`qdel`, `qhold` and `qrls` of the fakes of PBS and Torque.

Tests and `jpsi fake` run jobs on the fake, without a real PBS or Torque.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, Invocation, parse_letters, refuse_if

from .arrays import expand_ids, group_by_array
from .native_ids import full_id, is_local
from .submit import Rules

_BAD_ID, _UNKNOWN, _NOT_YOURS = 1, 153, 159
#: A change: called with the scheduler and a native id.
_Change = Callable[[FakeScheduler, str], object]


def _make_command(name: str, letters: str, change: _Change) -> Callable[..., CommandResult]:
    def command(rules: Rules, scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
        arguments = parse_letters(invocation.argv, letters)
        refuse_if({f"usage:\n\t{name} job_identifier...": not arguments.words}, 2)
        code, messages = 0, ""
        for text in (word.replace("[]", f"[{arguments.last('t')}]", 1) for word in arguments.words):
            error_code, message = _change_jobs(rules, scheduler, name, text, change)
            code = error_code or code
            messages += f"{name}: {message}\n" if message else ""
        return CommandResult(returncode=code, stderr=messages)

    return command


def _change_jobs(
    rules: Rules, scheduler: FakeScheduler, name: str, text: str, change: _Change
) -> tuple[int, str]:
    """Apply the change to the jobs that a text names; return the exit code and the message."""
    native_id = full_id(text, rules.server)
    if native_id is None or (rules.refuses_other_servers and not is_local(native_id, rules.server)):
        return _BAD_ID, f"illegally formed job identifier: {text}"
    listed = scheduler.listed() if not rules.forgets_finished else _remembered_jobs(scheduler)
    jobs = _find_jobs(native_id, listed)
    if not jobs:
        return _UNKNOWN, rules.unknown[name].format(native_id)
    if not all(job.is_own for job in jobs):
        return _NOT_YOURS, f"Unauthorized Request  {native_id}"
    is_element = native_id == jobs[0].native_id and jobs[0].array != ""
    refusal = _find_refusal(rules, name, jobs, listed, is_element=is_element)
    if refusal is None:
        for job in jobs:
            change(scheduler, job.native_id)
    code, message = refusal or (0, "")
    return code, message.format(native_id)


def _find_refusal(
    rules: Rules, name: str, jobs: list[FakeJob], listed: list[FakeJob], *, is_element: bool
) -> tuple[int, str] | None:
    """Return the exit code and the message if these jobs, or this element, cannot be changed."""
    if is_element and name != "qdel" and rules.held_element is not None:
        return rules.held_element
    if not all(job.state.final for job in jobs):
        return None
    others = group_by_array(listed).get(jobs[0].array, ())
    is_last = all(job.state.final for job in others)
    return rules.finished if is_last or not is_element else rules.ended_element or rules.finished


def _find_jobs(native_id: str, jobs: list[FakeJob]) -> list[FakeJob]:
    """Return the jobs that an id names; an array's id names its elements."""
    names = set(expand_ids(native_id))
    return [job for job in jobs if job.native_id in names or job.array == native_id]


def _remembered_jobs(scheduler: FakeScheduler) -> list[FakeJob]:
    """Return unfinished jobs, and finished ones in the history or with unfinished elements in their array."""
    live = [job for job in scheduler.listed() if not job.state.final]
    arrays = group_by_array(live)
    ended_elements = [job for job in scheduler.listed() if job.state.final and job.array in arrays]
    listed_ids = {job.native_id for job in ended_elements}
    ended = [job for job in scheduler.accounted() if job.state.final and job.native_id not in listed_ids]
    return [*live, *ended_elements, *ended]


#: The commands by name.
COMMANDS: Mapping[str, Callable[..., CommandResult]] = {
    "qdel": _make_command("qdel", "xW:t:", lambda scheduler, native_id: scheduler.cancel(native_id)),
    "qhold": _make_command("qhold", "h:t:", lambda scheduler, native_id: scheduler.hold(native_id)),
    "qrls": _make_command("qrls", "h:t:", lambda scheduler, native_id: scheduler.release(native_id)),
}

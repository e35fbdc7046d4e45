"""`qdel`, `qhold` and `qrls` of the fakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, Invocation

from .arguments import WrongOptionError, parse
from .arrays import array_of, expand_ids, group_by_array, index_of
from .native_ids import full_id, is_local

_BAD_ID, _NOT_YOURS = 1, 159


@attrs.frozen(slots=True, kw_only=True)
class ControlMessages:
    """The differences between PBS and Torque when commands change jobs."""

    #: The message about an id of another server; None if such an id counts as unknown.
    other_server: str | None
    #: The message of each command about unknown jobs, "" for none; below, about finished ones. `{}` is the
    #: id.
    unknown: Mapping[str, str]
    finished: str
    finished_code: int
    #: The exit code and message about an array element that has ended before others; below, about a held
    #: element. None if elements are treated like other jobs.
    ended_element: tuple[int, str] | None
    held_element: tuple[int, str] | None
    #: True if the server forgets finished jobs without accounting.
    forgets_finished: bool


_UNKNOWN = 153
#: A change: called with the scheduler and a native id.
_Change = Callable[[FakeScheduler, str], object]


def _make_command(name: str, letters: str, change: _Change) -> Callable[..., CommandResult]:
    def command(words: ControlMessages, scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
        try:
            arguments = parse(invocation.arguments, letters)
        except WrongOptionError as e:
            return CommandResult(returncode=2, stderr=f"{name}: invalid option -- '{e}'\n")
        if not arguments.words:
            return CommandResult(returncode=2, stderr=f"usage:\n\t{name} job_identifier...\n")
        code, messages = 0, ""
        for text in (word.replace("[]", f"[{arguments.last('t')}]", 1) for word in arguments.words):
            error_code, message = _change_jobs(words, scheduler, name, text, change)
            code = error_code or code
            messages += f"{name}: {message}\n" if message else ""
        return CommandResult(returncode=code, stderr=messages)

    return command


def _change_jobs(
    words: ControlMessages, scheduler: FakeScheduler, name: str, text: str, change: _Change
) -> tuple[int, str]:
    """Apply the change to the jobs that a text names; return the exit code and the message."""
    native_id = full_id(text)
    if native_id is None or (words.other_server is not None and not is_local(native_id)):
        return _BAD_ID, f"illegally formed job identifier: {text}"
    listed = scheduler.listed() if not words.forgets_finished else _remembered_jobs(scheduler)
    jobs = _find_jobs(native_id, listed)
    if not jobs:
        return _UNKNOWN, words.unknown[name].format(native_id)
    if not all(job.is_own for job in jobs):
        return _NOT_YOURS, f"Unauthorized Request  {native_id}"
    is_element = native_id == jobs[0].native_id and index_of(jobs[0]) is not None
    refusal = words.held_element if is_element and name != "qdel" else None
    if refusal is None and all(job.state.final for job in jobs):
        others = group_by_array(listed).get(array_of(jobs[0]) or "", ())
        is_last = all(job.state.final for job in others)
        is_known = words.ended_element is None or not is_element or is_last
        refusal = (words.finished_code, words.finished) if is_known else words.ended_element
    if refusal is None:
        for job in jobs:
            change(scheduler, job.native_id)
    code, message = refusal or (0, "")
    return code, message.format(native_id)


def _find_jobs(native_id: str, jobs: list[FakeJob]) -> list[FakeJob]:
    """Return the jobs that an id names; an array's id names its elements."""
    names = set(expand_ids(native_id))
    return [job for job in jobs if job.native_id in names or array_of(job) == native_id]


def _remembered_jobs(scheduler: FakeScheduler) -> list[FakeJob]:
    """Return unfinished jobs, and finished ones in the history or with unfinished elements in their array."""
    live = [job for job in scheduler.listed() if not job.state.final]
    arrays = {array_of(job) for job in live} - {None}
    unfinished_arrays = [job for job in scheduler.listed() if job.state.final and array_of(job) in arrays]
    listed_ids = {job.native_id for job in unfinished_arrays}
    ended = [job for job in scheduler.accounted() if job.state.final and job.native_id not in listed_ids]
    return [*live, *unfinished_arrays, *ended]


#: The commands by name.
COMMANDS: Mapping[str, Callable[..., CommandResult]] = {
    "qdel": _make_command("qdel", "xW:t:", FakeScheduler.cancel),
    "qhold": _make_command("qhold", "h:t:", FakeScheduler.hold),
    "qrls": _make_command("qrls", "h:t:", FakeScheduler.release),
}

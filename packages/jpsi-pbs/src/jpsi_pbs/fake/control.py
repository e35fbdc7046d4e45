"""`qdel`, `qhold` and `qrls` of the fakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, Invocation

from .arguments import WrongOptionError, parse
from .arrays import array_of, by_array, index_of, named
from .native_ids import full, is_here

_BAD_ID, _NOT_YOURS = 1, 159


@attrs.frozen(slots=True, kw_only=True)
class Words:
    """The differences between PBS and Torque when commands change jobs."""

    #: The message about an id of another server; None if such an id counts as unknown.
    elsewhere: str | None
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
    forgets: bool


_UNKNOWN = 153
#: A change: called with the scheduler and a native id.
_Change = Callable[[FakeScheduler, str], object]


def _changing(name: str, letters: str, change: _Change) -> Callable[..., CommandResult]:
    def command(words: Words, scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
        try:
            arguments = parse(invocation.arguments, letters)
        except WrongOptionError as e:
            return CommandResult(returncode=2, stderr=f"{name}: invalid option -- '{e}'\n")
        if not arguments.words:
            return CommandResult(returncode=2, stderr=f"usage:\n\t{name} job_identifier...\n")
        code, said = 0, ""
        for text in (word.replace("[]", f"[{arguments.last('t')}]", 1) for word in arguments.words):
            wrong, why = _changed(words, scheduler, name, text, change)
            code = wrong or code
            said += f"{name}: {why}\n" if why else ""
        return CommandResult(returncode=code, stderr=said)

    return command


def _changed(
    words: Words, scheduler: FakeScheduler, name: str, text: str, change: _Change
) -> tuple[int, str]:
    """Apply the change to the jobs that a text names; return the exit code and the message."""
    native_id = full(text)
    if native_id is None or (words.elsewhere is not None and not is_here(native_id)):
        return _BAD_ID, f"illegally formed job identifier: {text}"
    listed = scheduler.listed() if not words.forgets else _remembered(scheduler)
    jobs = _meant(native_id, listed)
    if not jobs:
        return _UNKNOWN, words.unknown[name].format(native_id)
    if not all(job.is_own for job in jobs):
        return _NOT_YOURS, f"Unauthorized Request  {native_id}"
    is_element = native_id == jobs[0].native_id and index_of(jobs[0]) is not None
    refusal = words.held_element if is_element and name != "qdel" else None
    if refusal is None and all(job.state.final for job in jobs):
        others = by_array(listed).get(array_of(jobs[0]) or "", ())
        is_last = all(job.state.final for job in others)
        is_known = words.ended_element is None or not is_element or is_last
        refusal = (words.finished_code, words.finished) if is_known else words.ended_element
    if refusal is None:
        for job in jobs:
            change(scheduler, job.native_id)
    code, why = refusal or (0, "")
    return code, why.format(native_id)


def _meant(native_id: str, jobs: list[FakeJob]) -> list[FakeJob]:
    """Return the jobs that an id names; an array's id names its elements."""
    names = set(named(native_id))
    return [job for job in jobs if job.native_id in names or array_of(job) == native_id]


def _remembered(scheduler: FakeScheduler) -> list[FakeJob]:
    """Return unfinished jobs, and finished ones in the history or with unfinished elements in their array."""
    live = [job for job in scheduler.listed() if not job.state.final]
    arrays = {array_of(job) for job in live} - {None}
    begun = [job for job in scheduler.listed() if job.state.final and array_of(job) in arrays]
    known = {job.native_id for job in begun}
    ended = [job for job in scheduler.accounted() if job.state.final and job.native_id not in known]
    return [*live, *begun, *ended]


#: The commands by name.
COMMANDS: Mapping[str, Callable[..., CommandResult]] = {
    "qdel": _changing("qdel", "xW:t:", FakeScheduler.cancel),
    "qhold": _changing("qhold", "h:t:", FakeScheduler.hold),
    "qrls": _changing("qrls", "h:t:", FakeScheduler.release),
}

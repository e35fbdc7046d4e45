"""`qdel`, `qhold` and `qrls` over a fake batch system."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from jpsi.fakes import FakeJob, FakeScheduler, Invocation
from jpsi.plugin import CommandResult

from .arguments import WrongOptionError, parse
from .ids import full, is_here

_BAD_ID, _NOT_YOURS = 1, 159


@attrs.frozen(slots=True, kw_only=True)
class Words:
    """In what the two differ when jobs are changed."""

    #: What is said of an id that is not of this server; None if that is one that nobody knows.
    elsewhere: str | None
    #: What each command says of unknown jobs, if anything, and of finished ones; `{}` is the id.
    unknown: Mapping[str, str]
    finished: str
    finished_code: int
    #: Whether finished jobs are forgotten where there is no accounting.
    forgets: bool


_UNKNOWN = 153
#: What is changed: whether it can be, and the change.
_Change = Callable[[FakeScheduler, str], object]


def _changing(name: str, letters: str, change: _Change) -> Callable[..., CommandResult]:
    def command(words: Words, scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
        try:
            asked = parse(invocation.arguments, letters).words
        except WrongOptionError as e:
            return CommandResult(returncode=2, stderr=f"{name}: invalid option -- '{e}'\n")
        if not asked:
            return CommandResult(returncode=2, stderr=f"usage:\n\t{name} job_identifier...\n")
        code, said = 0, ""
        for text in asked:
            wrong, why = _changed(words, scheduler, name, text, change)
            code = wrong or code
            said += f"{name}: {why}\n" if why else ""
        return CommandResult(returncode=code, stderr=said)

    return command


def _changed(
    words: Words, scheduler: FakeScheduler, name: str, text: str, change: _Change
) -> tuple[int, str]:
    """Do it to one job, and say what was wrong with it."""
    native_id = full(text)
    if native_id is None or (words.elsewhere is not None and not is_here(native_id)):
        return _BAD_ID, f"illegally formed job identifier: {text}"
    jobs = scheduler.listed() if not words.forgets else _remembered(scheduler)
    job = next((job for job in jobs if job.native_id == native_id), None)
    if job is None:
        return _UNKNOWN, words.unknown[name].format(native_id)
    if not job.is_own:
        return _NOT_YOURS, f"Unauthorized Request  {native_id}"
    if job.state.final:
        return words.finished_code, words.finished.format(native_id)
    change(scheduler, native_id)
    return 0, ""


def _remembered(scheduler: FakeScheduler) -> list[FakeJob]:
    """Unfinished jobs, and finished ones as long as there is history."""
    live = [job for job in scheduler.listed() if not job.state.final]
    return [*live, *(job for job in scheduler.accounted() if job.state.final)]


#: The commands by name.
COMMANDS: Mapping[str, Callable[..., CommandResult]] = {
    "qdel": _changing("qdel", "xW:", FakeScheduler.cancel),
    "qhold": _changing("qhold", "h:", FakeScheduler.hold),
    "qrls": _changing("qrls", "h:", FakeScheduler.release),
}

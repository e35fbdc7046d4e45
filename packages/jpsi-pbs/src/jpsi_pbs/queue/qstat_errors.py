"""Parses qstat's error messages, about single jobs that it does not list or about a general failure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jpsi.plugin import CommandResult

from ..native_ids import by_asked

# qstat's messages about a job that it does not list: unknown, on another server or finished; below, one of
# another user. The texts are from OpenPBS 23.06.06 and Torque 6.1.3.
_DENIED = re.compile(
    r"qstat: (?:Unknown Job Id (?:Error )?|(?P<malformed>illegally formed job identifier: )|)"
    r"(?P<job>\d\S*)(?: Job has finished.*)?\n?"
)
_HIDDEN = re.compile(r"qstat: Unauthorized Request  (?:MSG=.* )?(?P<job>\d\S*)\n?")


def error_lines(result: CommandResult) -> list[str]:
    """Return qstat's error messages, with their line ends."""
    return [line for line in result.stderr.splitlines(keepends=True) if line.startswith("qstat:")]


def is_answer(result: CommandResult, native_ids: Sequence[str], *, has_jobs: bool) -> bool:
    """Return True if qstat answered, if only for some of these jobs or to say that it knows none."""
    complaints = error_lines(result)
    if result.timed_out or result.returncode < 0 or (result.returncode != 0 and not complaints):
        return False
    if complaints and not complaints[-1].endswith("\n"):
        # the last message was cut, and with it the id of a job
        return False
    is_about_some = has_jobs or len(undecided_jobs(result, native_ids)) < len(native_ids)
    is_about_jobs = all(_DENIED.fullmatch(it) or _HIDDEN.fullmatch(it) for it in complaints)
    return is_about_jobs or (bool(native_ids) and is_about_some)


def denied_jobs(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Return qstat's message for each of these jobs that it says does not exist."""
    about = [(match["job"], line) for line in error_lines(result) if (match := _DENIED.fullmatch(line))]
    return by_asked({job: line.removeprefix("qstat: ").strip() for job, line in about}, native_ids)


def undecided_jobs(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Return the reason for each of these jobs about which qstat's answer is uncertain unless listed.

    If a server cannot be reached, or an id is malformed for it, qstat may not have looked for the other jobs.
    On a machine that the server does not trust, qstat refuses even the user's own jobs.
    """
    lines = error_lines(result)
    hidden = [(match["job"], line) for line in lines if (match := _HIDDEN.fullmatch(line))]
    found = by_asked({job: line.strip() for job, line in hidden}, native_ids)
    denials = [(_DENIED.fullmatch(line), line.strip()) for line in lines if not _HIDDEN.fullmatch(line)]
    others = [line for denial, line in denials if denial is None or denial["malformed"]]
    if others:
        named = denied_jobs(result, native_ids)
        found = {it: others[0] for it in native_ids if it not in named} | found
    return found

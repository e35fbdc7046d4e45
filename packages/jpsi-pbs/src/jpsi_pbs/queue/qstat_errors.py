"""Parses qstat's error messages, about single jobs that it does not list or about a general failure.

The hooks distinguish by it a job that does not exist from a server that did not answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from jpsi.plugin import CommandResult

from ..native_ids import map_to_queried

# The texts are from OpenPBS 23.06.06 and Torque 6.1.3.
# qstat's messages about a job that it does not list: unknown, on another server or finished
_UNKNOWN_JOB = re.compile(
    r"qstat: (?:Unknown Job Id (?:Error )?|(?P<malformed>illegally formed job identifier: )|)"
    r"(?P<job>\d\S*)(?: Job has finished.*)?\n?"
)
# qstat's message about a job of another user
_UNAUTHORIZED = re.compile(r"qstat: Unauthorized Request  (?:MSG=.* )?(?P<job>\d\S*)\n?")


def error_lines(result: CommandResult) -> list[str]:
    """Return qstat's error messages, with their line ends."""
    return [line for line in result.stderr.splitlines(keepends=True) if line.startswith("qstat:")]


def is_valid_answer(result: CommandResult, native_ids: Sequence[str], *, has_jobs: bool) -> bool:
    """Return True if qstat answered, if only for some of these jobs or to say that it knows none."""
    errors = error_lines(result)
    if result.timed_out or result.returncode < 0 or (result.returncode != 0 and not errors):
        return False
    if errors and not errors[-1].endswith("\n"):
        # the last message was cut, and with it the id of a job
        return False
    is_partial = has_jobs or len(parse_undecided_jobs(result, native_ids)) < len(native_ids)
    is_about_jobs = all(_UNKNOWN_JOB.fullmatch(it) or _UNAUTHORIZED.fullmatch(it) for it in errors)
    return is_about_jobs or (bool(native_ids) and is_partial)


def parse_unknown_jobs(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Return qstat's message for each of these jobs that it says does not exist."""
    return _messages(_UNKNOWN_JOB, result, native_ids)


def parse_undecided_jobs(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Return the reason for each of these jobs about which qstat's answer is uncertain unless listed.

    If a server cannot be reached, or an id is malformed for it, qstat may not have looked for the other jobs.
    On a machine that the server does not trust, qstat refuses even the user's own jobs.
    """
    unauthorized = {
        native_id: f"qstat: {message}"
        for native_id, message in _messages(_UNAUTHORIZED, result, native_ids).items()
    }
    others = [line for line in error_lines(result) if not _UNAUTHORIZED.fullmatch(line)]
    general = [line.strip() for line in others if _is_general(_UNKNOWN_JOB.fullmatch(line))]
    if not general:
        return unauthorized
    unknown = parse_unknown_jobs(result, native_ids)
    return {native_id: general[0] for native_id in native_ids if native_id not in unknown} | unauthorized


def _is_general(denial: re.Match[str] | None) -> bool:
    return denial is None or denial["malformed"] is not None


def _messages(pattern: re.Pattern[str], result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Return qstat's messages of this form, without its name, by the jobs that they are about."""
    matches = [match for line in error_lines(result) if (match := pattern.fullmatch(line))]
    found = {match["job"]: match[0].removeprefix("qstat: ").strip() for match in matches}
    return map_to_queried(found, native_ids)

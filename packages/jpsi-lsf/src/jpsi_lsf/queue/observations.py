"""Turns LSF's report on one job, from JSON or from paragraphs, into an Observation.

`json_listing` and `long_listing` use it.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from jpsi.plugin import JobState, Meaning, Observation, Reason
from jpsi.plugin.kit import extract_intact_tag, is_nearly

from ..states import STATES, TERMINATIONS

_TERMINATION = re.compile(r"(TERM_[A-Z_]+)")
# From LSF's list of pending reasons, which is the same in all versions ("PENDING REASONS" of bjobs -l)
_NEVER_SATISFIED = "Dependency condition invalid or never satisfied"
_SIGNAL_BASE = 128
# The directive with the tag, in a job's script that LSF prints as a single line
_DIRECTIVE = re.compile(r"#BSUB -Jd [^;\n]*?(jpsi-[A-Za-z0-9-]+)'?(?:;|\n)")
# A directive that may be corrupt. Only comment lines count, as a foreign job may run a program named jpsi-...
_POSSIBLE_DIRECTIVE = re.compile(r"(?:^|[;\n])#(?!!)[^;\n]*jpsi-")


class End(NamedTuple):
    """The end of a job as LSF reports it."""

    #: The exit code; None if LSF does not report it.
    exit_code: int | None = None
    #: LSF's reason, such as `TERM_OWNER: job killed by owner`.
    termination: str = ""
    #: The user who killed the job.
    killed_by: str | None = None
    #: True if the job had reached its run limit.
    is_over_limit: bool = False


_UNKNOWN_END = End()


def make_observation(
    native_state: str,
    *,
    pending: str = "",
    end: End = _UNKNOWN_END,
    ran_on: tuple[str, ...] = (),
    restarts: int | None = None,
) -> Observation:
    """Return the Observation for LSF's report on a job.

    Args:
        native_state: LSF's own name of the state.
        pending: the reasons why the job is pending.
        end: the end of the job, if it has ended.
        ran_on: the job's nodes, as far as LSF reports them.
        restarts: the number of requeues, if LSF reports it.
    """
    details: dict[str, Any] = {"lsf.state": native_state}
    meaning = STATES.get(native_state)
    if meaning is None:
        return Observation(state=None, native_state=native_state, details=details)
    is_queued, has_ended = meaning.state is JobState.QUEUED, meaning.state.final
    # not all versions report the nodes
    has_run = bool(ran_on) or end.exit_code is not None
    values = {
        "pending": pending if is_queued else "",
        "reason": end.termination if has_ended else "",
        "killed_by": end.killed_by,
    }
    if has_ended:
        meaning = _explain_end(meaning, end, has_run=has_run)
    elif is_queued and pending:
        meaning = _explain_pending(meaning, pending)
    return Observation(
        state=meaning.state,
        native_state=native_state,
        reason=meaning.reason,
        message=meaning.message,
        exit_code=end.exit_code if meaning.state.final else None,
        ran=has_run if has_ended else None,
        restarts=restarts,
        nodes=() if meaning.state is JobState.QUEUED else ran_on,
        details=details | {f"lsf.{name}": value for name, value in values.items() if value},
    )


def nodes(text: str) -> tuple[str, ...]:
    """Return the distinct nodes in a list of slots.

    >>> nodes("4*node1:2*node2"), nodes("node1:node1"), nodes("   -   ")
    (('node1', 'node2'), ('node1',), ())
    """
    names = (slot.strip().rpartition("*")[2] for slot in text.split(":"))
    return tuple(dict.fromkeys(name for name in names if name not in {"", "-"}))


def job_tag(description: str, command: str) -> str | None:
    """Return the tag of a job; None if there are two different tags, or a possibly corrupt one.

    LSF reports the whole script as the job's command. Its directive repeats the tag, even if a user has
    changed the job's description.

    >>> job_tag("", "#!/bin/sh;#BSUB -Jd jpsi-5-1;exec x")
    'jpsi-5-1'
    >>> job_tag("jpsi-5-1", "exec x"), job_tag("", "exec x")
    ('jpsi-5-1', '')
    >>> job_tag("", "#!/bin/sh;#BS~B -Jd jpsi-5-1;exec x"), job_tag("", "#!/bin/sh;exec jpsi-tool")
    (None, '')
    """
    tag, directive = extract_intact_tag(description), _DIRECTIVE.search(command)
    if directive is None:
        return None if not tag and _POSSIBLE_DIRECTIVE.search(command) else tag
    return directive[1] if not tag or tag == directive[1] else None


def is_termination(code: str) -> bool:
    """Return True if a text can be one of LSF's termination codes, known or not, and is not a corrupt one.

    >>> [is_termination(code) for code in ("TERM_OWNER", "TERM_NEW_ONE", "TERM_OWMER", "T~RM_OWNER")]
    [True, True, False, False]
    """
    is_known = code in TERMINATIONS
    return is_known or (_TERMINATION.fullmatch(code) is not None and not is_nearly(code, TERMINATIONS))


def _explain_pending(meaning: Meaning, reasons: str) -> Meaning:
    reason = Reason.DEPENDENCY if _NEVER_SATISFIED in reasons else meaning.reason
    return Meaning(meaning.state, reason, f"{meaning.message}: {reasons}" if meaning.message else reasons)


def _explain_end(meaning: Meaning, end: End, *, has_run: bool) -> Meaning:  # noqa: PLR0911  a table of causes
    """Return the meaning of an end; if LSF or a user ended the job, that counts even for the state DONE."""
    match = _TERMINATION.search(end.termination)
    termination = TERMINATIONS.get(match[1]) if match else None
    if termination is not None:
        return Meaning(termination.state, termination.reason, f"LSF ended the job ({end.termination})")
    if end.killed_by is not None:
        return Meaning(JobState.CANCELED, Reason.CANCELLED, f"the job was cancelled by {end.killed_by}")
    if end.is_over_limit:
        return Meaning(JobState.FAILED, Reason.TIMEOUT, "the job used up its duration and was ended")
    if meaning.state is JobState.COMPLETED:
        return meaning
    if not has_run:
        return Meaning(JobState.CANCELED, Reason.CANCELLED, "the job was ended before it had begun")
    message = f"LSF ended the job ({end.termination})" if end.termination else None
    if end.exit_code is not None and end.exit_code > _SIGNAL_BASE:
        return Meaning(JobState.FAILED, Reason.SIGNAL, message)
    return Meaning(JobState.FAILED, None, message)

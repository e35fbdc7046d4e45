"""What qstat complains of: a line for each job that it does not list, or what keeps it from any answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jpsi.plugin import CommandResult

from .ids import by_asked

# What qstat says of a job that it does not list: unknown, somebody else's, another server's, finished. Texts
# are those of OpenPBS 23.06.06 and Torque 6.1.3.
_NOT_LISTED = re.compile(
    r"qstat: (?:Unknown Job Id (?:Error )?|Unauthorized Request  |(illegally formed job identifier: )|)"
    r"(\d\S*)(?: Job has finished.*)?\Z"
)


def said(result: CommandResult) -> list[str]:
    """What qstat complained of."""
    return [line.rstrip() for line in result.stderr.splitlines() if line.startswith("qstat:")]


def is_answer(result: CommandResult, native_ids: Sequence[str], *, has_jobs: bool) -> bool:
    """Whether qstat has answered, if only for some of these jobs or to say that it knows none of them."""
    if result.timed_out or result.returncode < 0 or (result.returncode != 0 and not said(result)):
        return False
    is_about_some = has_jobs or len(left_open(result, native_ids)) < len(native_ids)
    return all(map(_NOT_LISTED.match, said(result))) or (bool(native_ids) and is_about_some)


def left_open(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Of which of these jobs nothing is known unless they are listed, and why.

    If a server cannot be reached, or an id is none of the server's, the others may not have been looked for.
    """
    about = [(_NOT_LISTED.match(line), line) for line in said(result)]
    named = by_asked({job[2]: line for job, line in about if job is not None}, native_ids)
    others = [line for job, line in about if job is None or job[1]]
    return {it: others[0] for it in native_ids if it not in named} if others else {}

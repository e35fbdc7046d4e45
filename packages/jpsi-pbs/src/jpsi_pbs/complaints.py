"""What the commands complain of: one line for each job that something was wrong with."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jpsi.plugin import CommandResult, SubmitException

from .ids import by_asked, is_id

# qstat: Unknown Job Id 17.server; qdel: nonexistent job id: 17.server
_ABOUT_A_JOB = re.compile(r"(?:qdel|qhold|qrls): (.+?) (\d\S*)\Z")
# What qstat says of jobs that it does not list: unknown, finished, somebody else's, another server's; and of
# all of them where no finished jobs are kept. Texts are those of OpenPBS 23.06.06 and Torque 6.1.3.
_NOT_LISTED = re.compile(
    r"qstat: (?:Unknown Job Id|\d\S* Job has finished|Unauthorized Request  \d"
    r"|illegally formed job identifier|PBS is not configured to maintain job history)"
)
# What qdel says of a job that needs no deleting
_OVER = ("Unknown Job Id", "nonexistent job id", "Job has finished", "Request invalid for state of job")


def answered(result: CommandResult) -> CommandResult:
    """The result of a qstat that has answered, if only to say that it knows none of the jobs.

    Raises:
        SubmitException: it has not.
    """
    said = [line for line in result.stderr.splitlines() if line.startswith("qstat:")]
    if result.timed_out or result.returncode < 0 or not all(map(_NOT_LISTED.match, said)):
        raise SubmitException(result.complaint, transient=True)
    return result if said else result.checked()


def refused(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Why for which of these jobs a command did not do what it was asked to."""
    lines = [_ABOUT_A_JOB.match(line.strip()) for line in result.stderr.splitlines()]
    about = by_asked({line[2]: line[1].rstrip(": ") for line in lines if line is not None}, native_ids)
    failed = result.returncode != 0 or result.timed_out
    if failed and not about:
        return dict.fromkeys(native_ids, result.complaint)
    return about | {it: f"{it!r} is no job id" for it in native_ids if not is_id(it)}


def not_cancelled(result: CommandResult, native_ids: Sequence[str]) -> dict[str, str]:
    """Why which of these jobs were not deleted; one that is over, or was never there, is not among them."""
    return {
        native_id: why for native_id, why in refused(result, native_ids).items() if not why.startswith(_OVER)
    }

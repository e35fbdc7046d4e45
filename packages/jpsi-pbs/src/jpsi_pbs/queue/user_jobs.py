"""All jobs that qstat lists, between two lines of jpsi's own, which show that none is missing.

Of these, the user's are picked out here: no form of the listing tells enough of these alone.
"""

from __future__ import annotations

import re

import attrs

from jpsi.plugin import Command, CommandResult

from .listing import Listed

# Who asks is the user on the machine where the commands run.
_ASK = """\
user=$(id -un) || exit
printf 'jobs for %s\\n' "$user"
"$@"
code=$?
printf 'no more jobs for %s\\n' "$user"
exit "$code"
"""
_ANSWER = re.compile(r"^jobs for ([^\n]+)\n(.*)^no more jobs for \1$", re.MULTILINE | re.DOTALL)
_OWNER = re.compile(r"([A-Za-z0-9._$+\\-]+)@")


def frame_listing(listing: Command) -> Command:
    """The command that says who asks, before and after what a listing says."""
    return attrs.evolve(listing, argv=("/bin/sh", "-c", _ASK, "qstat", *listing.argv))


def unframe_listing(result: CommandResult) -> tuple[str, CommandResult]:
    """Who has asked, and the listing.

    Raises:
        SubmitException: it does not begin, or does not end.
    """
    match = _ANSWER.search(result.stdout)
    if match is None:
        raise result.no_answer
    return match[1], attrs.evolve(result, stdout=match[2])


def own_jobs(user: str, jobs: list[Listed]) -> list[Listed]:
    """The jobs of this user, but for arrays, whose elements are listed as well."""
    return [job for job in jobs if "[]" not in job.native_id and not _is_anothers(job, user)]


def _is_anothers(job: Listed, user: str) -> bool:
    owner = _OWNER.match(job.text("Job_Owner"))
    return owner is not None and owner[1] != user

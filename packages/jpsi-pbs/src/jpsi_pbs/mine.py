"""Of all jobs that qstat lists, those that are the user's: no form of it tells enough of these alone."""

from __future__ import annotations

import re

import attrs

from jpsi.plugin import Command, CommandResult

from .listed import Listed

# The first line is who asks, on the machine where the commands run.
_ASK = 'id -un && exec "$@"'
_USER = re.compile(r"([^\s{<]+)\n")


def asked(listing: Command) -> Command:
    """The command that says who asks, and then what a listing says."""
    return attrs.evolve(listing, argv=("/bin/sh", "-c", _ASK, "qstat", *listing.argv))


def answered(result: CommandResult) -> tuple[str | None, CommandResult]:
    """Who has asked, if that is said, and the listing."""
    match = _USER.match(result.stdout)
    if match is None:
        return None, result
    return match[1], attrs.evolve(result, stdout=result.stdout[match.end() :])


def jobs_of(user: str | None, jobs: list[Listed]) -> list[Listed]:
    """The jobs of this user, but for arrays, whose elements are listed as well; all if it is unknown who."""
    if user is None:
        return jobs
    return [
        job for job in jobs if job.text("Job_Owner").partition("@")[0] == user and "[]" not in job.native_id
    ]

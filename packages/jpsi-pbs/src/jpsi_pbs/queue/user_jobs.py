"""Frames qstat's listing of all jobs with two lines, which prove it complete, and selects the user's jobs.

jpsi selects the user's jobs itself, as no qstat option lists them alone with all needed attributes.
"""

from __future__ import annotations

import re

import attrs

from jpsi.plugin import Command, CommandResult

from .listing import ListedJob

# The user is the one on the machine where the commands run, which may be a remote host.
_SCRIPT = """\
user=$(id -un) || exit
printf 'jobs for %s\\n' "$user"
"$@"
code=$?
printf 'no more jobs for %s\\n' "$user"
exit "$code"
"""
_WRAPPED_LISTING = re.compile(r"^jobs for ([^\n]+)\n(.*)^no more jobs for \1$", re.MULTILINE | re.DOTALL)
_OWNER_NAME = re.compile(r"([A-Za-z0-9._$+\\-]+)@")


def wrap_listing(listing: Command) -> Command:
    """Return the command that prints the user's name before and after the listing."""
    return attrs.evolve(listing, argv=("/bin/sh", "-c", _SCRIPT, "qstat", *listing.argv))


def unwrap_listing(result: CommandResult) -> tuple[str, CommandResult]:
    """Return the user's name and the listing between the two lines.

    Raises:
        SubmitException: the first or the last line is missing.
    """
    match = _WRAPPED_LISTING.search(result.stdout)
    if match is None:
        raise result.no_answer
    return match[1], attrs.evolve(result, stdout=match[2])


def own_jobs(user: str, jobs: list[ListedJob]) -> list[ListedJob]:
    """Return this user's jobs without whole arrays, as their elements are listed as well."""
    return [job for job in jobs if "[]" not in job.native_id and not _belongs_to_other(job, user)]


def _belongs_to_other(job: ListedJob, user: str) -> bool:
    owner = _OWNER_NAME.match(job.text("Job_Owner"))
    return owner is not None and owner[1] != user

"""The jobs in a listing of qstat in any format, and the check that a listing of all jobs is complete.

The command prints a line before and after the listing: one that lacks either line is incomplete. jpsi selects
the user's jobs itself, as no qstat option lists them alone with all needed attributes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

import attrs

from jpsi.plugin import Command, CommandResult
from jpsi.plugin.kit import parse_time

from ..job_names import parse_tag

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


@attrs.frozen(slots=True)
class ListedJob:
    """A listed job and its attributes, by their names in OpenPBS."""

    native_id: str
    attributes: Mapping[str, str]
    #: The names and values of the job's variables, in the listing's own notation.
    variables: str = ""
    #: False if the variables are missing, or not all of them could be parsed.
    has_variables: bool = False

    def text(self, name: str) -> str:
        """Return an attribute's text; "" if the job has no such attribute."""
        return self.attributes.get(name, "")

    def number(self, name: str) -> int | None:
        """Return a numeric attribute; None if it is missing or no number."""
        try:
            return int(self.text(name))
        except ValueError:
            return None

    def moment(self, *names: str) -> datetime | None:
        """Return the first of these attributes that is a time, in UTC or in seconds since 1970; else None."""
        return next((found for name in names if (found := parse_time(self.text(name))) is not None), None)

    @property
    def tag(self) -> str | None:
        """The job's tag; "" if it has none, None if that is uncertain."""
        return parse_tag(self.variables, is_complete=self.has_variables)

    @property
    def submitted(self) -> datetime | None:
        """The time of submission (`ctime`); `qtime` changes whenever the job enters a queue."""
        return self.moment("ctime")

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that the job runs on, such as those of `node1/0*2+node2/1`."""
        slots = self.text("exec_host").split("+")
        return tuple(dict.fromkeys(name for slot in slots if (name := slot.partition("/")[0])))


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
    owners = ((_OWNER_NAME.match(job.text("Job_Owner")), job) for job in jobs)
    return [job for owner, job in owners if "[]" not in job.native_id and (owner is None or owner[1] == user)]

"""Asking sacct for jobs that Slurm's controller has forgotten, and reading its answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from jpsi.plugin import NOT_OFFERED, Command, CommandResult, NotOffered, Observation, Site, hookimpl

from .commands import slurm
from .exits import End, end_of_accounting
from .observing import observed
from .rows import SEPARATOR, Row, rows
from .states import STATES

# sacct(1): --format
_COLUMNS = {
    "shown": "JobID",
    "number": "JobIDRaw",
    "state": "State",
    "exit_code": "ExitCode",
    "submitted": "Submit",
    "started": "Start",
    "ended": "End",
    "nodes": "NodeList",
    "reason": "Reason",
}
# Without it some versions look at today only; slurmdbd began later.
_EVER = "--starttime=2001-01-01"
# A site without slurmdbd
_NO_ACCOUNTING = "accounting storage is disabled"
# Where a time is not known
_NO_TIME = "Unknown"
_CANCELLED_BY = re.compile(r"CANCELLED by (\S+)\Z")
# Taking 128 from codes above 127 ended with this version (its CHANGELOG).
_WHOLE_CODES = (25, 11)


@hookimpl
def query_finished(native_ids: Sequence[str], site: Site) -> Command | NotOffered:
    """The command that asks the accounting; NOT_OFFERED where there is none.

    Without accounting nothing is left to ask: `squeue` has told what slurmctld remembers, exit codes too,
    and `scontrol show job` reads the same memory, one job at a time.
    """
    has_accounting = site.config.accounting
    if has_accounting is None:
        has_accounting = site.offers.get("accounting")
    if has_accounting is False:
        return NOT_OFFERED
    return slurm(
        site,
        "sacct",
        "--noheader",
        "--allocations",
        "--parsable2",
        f"--delimiter={SEPARATOR}",
        _EVER,
        f"--format={','.join(_COLUMNS.values())}",
        f"--jobs={','.join(native_ids)}",
    )


@hookimpl
def parse_finished(result: CommandResult, site: Site) -> Mapping[str, Observation]:
    """What sacct said about each job; of a job that was put back, its last run."""
    if _NO_ACCOUNTING in result.stderr:
        return {}
    whole = tuple(site.offers.get("version", ())) >= _WHOLE_CODES
    return {
        name: _observation(row, whole=whole)
        for row in rows(result.checked().stdout, _COLUMNS)
        for name in row.names
        if not _is_half_told(row)
    }


def _is_half_told(row: Row) -> bool:
    """Whether slurmdbd has been told only that a job began, which Slurm may do after its end.

    The state is that of the end then, but the exit code is 0:0, as slurmdbd has seen none yet.
    """
    meaning = STATES.get(row.state)
    return meaning is not None and meaning.state.final and row.ended == _NO_TIME


def _observation(row: Row, *, whole: bool) -> Observation:
    """What a line of sacct says about a job; `whole` as for `end_of_accounting`."""
    if by := _CANCELLED_BY.match(row.state):
        return observed(attrs.evolve(row, state="CANCELLED"), cancelled_by=by[1])
    is_success = row.state == "COMPLETED"
    return observed(row, End(0) if is_success else end_of_accounting(row.exit_code, whole=whole))

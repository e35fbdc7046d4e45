"""Asking sacct for jobs that Slurm's controller has forgotten, and reading its answers.

Slurmdbd keeps the line that submitted a job (Slurm 21.08 and later), in which the tag is, and the comment
where `AccountingStoreFlags` says so; both reach it seconds after the job's state. Where neither is there yet,
the time of the submission tells a job from a later one of the same native id.

sacct has no word for the end of what it prints. It is asked twice, for the ids alone and for the rows: where
it printed no more than a part, however long, the two differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from jpsi.plugin import (
    NOT_OFFERED,
    Command,
    CommandResult,
    NotOffered,
    Observation,
    Site,
    hookimpl,
)
from jpsi.plugin.kit import carried_tag

from ..commands import slurm
from ..states import STATES
from .exit_status import End, end_of_accounting
from .listing import SEPARATOR, Row, doubled, listed_twice, read_listing
from .observations import observed

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
    "comment": "Comment",
}
_COLUMNS_WITH_LINE = {**_COLUMNS, "submit_line": "SubmitLine"}
# The first version that has it (src/sacct/sacct.c)
_SUBMIT_LINES = (21, 8)
# Without it some versions look at today only; slurmdbd began later.
_EVER = "--starttime=2001-01-01"
# A site without slurmdbd
_NO_ACCOUNTING = "accounting storage is disabled"
# The shell found no sacct
_NOT_FOUND = 127
# Where a time is not known
_NO_TIME = "Unknown"
_CANCELLED_BY = re.compile(r"CANCELLED by (\S+)\Z")
# The states of an earlier run of a job that was put back
_PUT_BACK = frozenset({"NODE_FAIL", "PREEMPTED", "REQUEUED"})
# Where a wrapper of a site's has added other options behind it
_TAG = re.compile(r"(?<![^ ])jpsi-[A-Za-z0-9-]+-[0-9]+(?![^ ])")
# How jpsi called sbatch before the tag stood there
_WITHOUT_TAG = re.compile(r"(\S*/)?sbatch( --clusters=\S+)? --parsable\Z")
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
    command = slurm(
        site,
        "sacct",
        "--allocations",
        "--duplicates",
        "--parsable",
        f"--delimiter={SEPARATOR}",
        _EVER,
        f"--jobs={','.join(native_ids)}",
    )
    columns = _columns(site)
    return listed_twice(command, _format([columns["shown"]]), _format(doubled(columns.values())))


@hookimpl
def parse_finished(result: CommandResult, site: Site) -> Mapping[str, Observation] | NotOffered:
    """What sacct said about each job; of a job that was put back, its last run.

    Raises:
        SubmitException: the answer is not whole.
    """
    if _NO_ACCOUNTING in result.stderr or result.returncode == _NOT_FOUND:
        return NOT_OFFERED
    has_whole_codes = tuple(site.offers.get("version", ())) >= _WHOLE_CODES
    last: dict[str, Row] = {}
    rows = read_listing(result, _columns(site), is_twice=True)
    for row in sorted(rows, key=lambda row: row.submitted):
        for name in row.names:
            last[name] = _following(last.get(name), row)
    return {name: _observation(row, has_whole_codes=has_whole_codes) for name, row in last.items()}


def _columns(site: Site) -> Mapping[str, str]:
    has_line = tuple(site.offers.get("version", ())) >= _SUBMIT_LINES
    return _COLUMNS_WITH_LINE if has_line else _COLUMNS


def _format(fields: Sequence[str]) -> str:
    return f"--format={','.join(fields)}"


def _following(earlier: Row | None, row: Row) -> Row:
    """A run of a job, submitted when the run before it was: Slurm writes anew when it puts a job back."""
    is_same = earlier is not None and earlier.state in _PUT_BACK
    return attrs.evolve(row, submitted=earlier.submitted) if earlier is not None and is_same else row


def _is_half_told(row: Row) -> bool:
    """Whether slurmdbd has been told only that a job began, which Slurm may do after its end.

    The state is that of the end then, but the exit code is 0:0, as slurmdbd has seen none yet: for jpsi the
    job still runs.
    """
    meaning = STATES.get(row.state)
    return meaning is not None and meaning.state.final and row.ended == _NO_TIME


def _observation(row: Row, *, has_whole_codes: bool) -> Observation:
    """What a line of sacct says about a job; `has_whole_codes` is the `whole` of `end_of_accounting`."""
    if _is_half_told(row):
        seen = attrs.evolve(observed(attrs.evolve(row, state="RUNNING")), word=row.state)
    elif by := _CANCELLED_BY.match(row.state):
        seen = observed(attrs.evolve(row, state="CANCELLED"), cancelled_by=by[1])
    elif row.state == "COMPLETED":
        seen = observed(row, End(0))
    else:
        seen = observed(row, end_of_accounting(row.exit_code, whole=has_whole_codes))
    return attrs.evolve(seen, tag=_tag(row))


def _tag(row: Row) -> str | None:
    """The tag that the job carries; None if slurmdbd has not been told, or does not keep it."""
    in_line = _TAG.findall(row.submit_line.partition("--comment=")[2])
    found = carried_tag(row.comment) or carried_tag(row.submit_line) or "".join(in_line[-1:])
    is_told = row.comment or (row.submit_line and _WITHOUT_TAG.match(row.submit_line) is None)
    return "" if is_told and not found else found or None

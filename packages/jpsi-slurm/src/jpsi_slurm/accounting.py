"""Asking sacct for jobs that Slurm's controller has forgotten, and reading its answers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from jpsi.plugin import NOT_OFFERED, Command, CommandResult, NotOffered, Observation, Site

from .commands import slurm
from .exits import End, end_of_accounting
from .hostlist import nodes
from .ids import askable, is_id, names_of
from .observing import Moments, observed
from .probe import Offers
from .states import STATES
from .times import time

# sacct(1): --format. The reason comes last: it may be any text.
_FIELDS = ("JobID", "JobIDRaw", "State", "ExitCode", "Submit", "Start", "End", "NodeList", "Reason")
_SEPARATOR = "|"
# Without it some versions look at today only; slurmdbd began later.
_EVER = "--starttime=2001-01-01"
# A site without slurmdbd
_NO_ACCOUNTING = "accounting storage is disabled"
# Where a time is not known
_NO_TIME = "Unknown"
_CANCELLED_BY = re.compile(r"CANCELLED by (\S+)\Z")
# Taking 128 from codes above 127 ended with this version (its CHANGELOG).
_WHOLE_CODES = (25, 11)


@attrs.frozen(slots=True)
class Row:
    """One job as sacct prints it, in the order of `_FIELDS`."""

    shown: str
    number: str
    state: str
    exit_code: str
    submitted: str
    started: str
    ended: str
    nodes: str
    reason: str


def query_finished(native_ids: Sequence[str], site: Site) -> Command | NotOffered:
    """The command that asks the accounting; NOT_OFFERED where there is none.

    Without accounting nothing is left to ask: `squeue` has told what slurmctld remembers, exit codes too,
    and `scontrol show job` reads the same memory, one job at a time.
    """
    has_accounting = site.config.accounting
    if has_accounting is None:
        has_accounting = Offers.of(site).accounting
    if has_accounting is False:
        return NOT_OFFERED
    return slurm(
        site,
        "sacct",
        "--noheader",
        "--allocations",
        "--parsable2",
        f"--delimiter={_SEPARATOR}",
        _EVER,
        f"--format={','.join(_FIELDS)}",
        f"--jobs={','.join(askable(native_ids) or native_ids)}",
    )


def finished(result: CommandResult, native_ids: Sequence[str], site: Site) -> dict[str, Observation]:
    """What sacct said about each job; of a job that was put back, its last run."""
    if _NO_ACCOUNTING in result.stderr:
        return {}
    asked = frozenset(native_ids)
    whole = Offers.of(site).version >= _WHOLE_CODES
    return {
        name: observation(row, whole=whole)
        for row in rows(result.checked().stdout)
        for name in names_of(row.shown, row.number)
        if name in asked and not _is_half_told(row)
    }


def _is_half_told(row: Row) -> bool:
    """Whether slurmdbd has been told only that a job began, which Slurm may do after its end.

    The state is that of the end then, but the exit code is 0:0, as slurmdbd has seen none yet.
    """
    meaning = STATES.get(row.state)
    return meaning is not None and meaning.state.final and row.ended == _NO_TIME


def rows(output: str) -> list[Row]:
    """The lines that are a job's; those of steps are not."""
    split = (line.split(_SEPARATOR, len(_FIELDS) - 1) for line in output.splitlines())
    return [Row(*fields) for fields in split if len(fields) == len(_FIELDS) and is_id(fields[0])]


def observation(row: Row, *, whole: bool) -> Observation:
    """What a line of sacct says about a job; `whole` as for `end_of_accounting`."""
    by = _CANCELLED_BY.match(row.state)
    word = "CANCELLED" if by else row.state
    ran_on = nodes(row.nodes)
    end = End(0) if word == "COMPLETED" else end_of_accounting(row.exit_code, whole=whole)
    return observed(
        word,
        why="" if row.reason == "None" else row.reason,
        end=end if ran_on else End(),
        moments=Moments(time(row.submitted), time(row.started), time(row.ended)),
        ran_on=ran_on,
        cancelled_by=by[1] if by else None,
    )

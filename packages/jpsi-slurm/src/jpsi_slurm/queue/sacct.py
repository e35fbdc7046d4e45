"""Queries sacct for jobs that slurmctld has forgotten, and parses its output.

slurmdbd keeps the command line that submitted a job (Slurm 21.08 and later), which contains the tag, and the
comment if `AccountingStoreFlags` says so; both reach it seconds after the job's state. Until then the time of
submission distinguishes a job from a later one with the same native id.

sacct does not mark the end of its output. The command therefore calls it twice, for the ids alone and for the
rows: if sacct printed only a part, of whatever length, the two lists differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from jpsi.plugin import NOT_OFFERED, Command, CommandResult, NotOffered, Observation, Site, hookimpl
from jpsi.plugin.kit import extract_tag

from ..commands import slurm_command
from ..states import STATES
from .listing import SEPARATOR, Row, list_twice_command, parse_listing
from .observations import End, decode_accounting_code, observe_row

# sacct(1): --format
_FORM = "--format={}"
_COLUMNS = {
    "displayed_id": "JobID",
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
# For a site that measures what jobs use
_USE = {"cpu": "TotalCPU", "memory": "MaxRSS", "tasks": "NTasks"}
# The first version with SubmitLine (src/sacct/sacct.c)
_SUBMIT_LINE_VERSION = (21, 8)
# Without a start time some versions report today's jobs only; slurmdbd is younger than this date.
_START_TIME = "--starttime=2001-01-01"
# sacct's message at a site without slurmdbd
_NO_ACCOUNTING = "accounting storage is disabled"
# The shell's exit code if there is no sacct
_NOT_FOUND = 127
# sacct's word for a time that it does not know
_UNKNOWN_TIME = "Unknown"
_CANCELLED_BY = re.compile(r"CANCELLED by (\S+)\Z")
# The final states of an earlier run of a job that Slurm requeued
_REQUEUED_STATES = frozenset({"NODE_FAIL", "PREEMPTED", "REQUEUED"})
# A tag in the middle of the line, as a site's wrapper may append options to it
_TAG = re.compile(r"(?<![^ ])jpsi-[A-Za-z0-9-]+-[0-9]+(?![^ ])")
_CPU = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+(?:\.\d+)?)")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")
_MEMORY_UNITS = ["", *"KMGTP"]
# The command line of sbatch from versions of jpsi that did not put the tag into it
_WITHOUT_TAG = re.compile(r"(\S*/)?sbatch( --clusters=\S+)? --parsable\Z")
# Before this version sacct subtracts 128 from exit codes above 127 (Slurm's CHANGELOG).
_FULL_CODES = (25, 11)


@hookimpl
def query_finished(native_ids: Sequence[str], site: Site) -> Command | NotOffered:
    """Return the sacct command for these jobs; NOT_OFFERED if the site has no accounting.

    Without accounting there is no other source: `squeue` has already reported everything that slurmctld
    remembers, with exit codes, and `scontrol show job` reads the same memory, one job at a time.
    """
    configured = site.config.accounting
    if (site.offers.get("accounting") if configured is None else configured) is False:
        return NOT_OFFERED
    # steps alone have MaxRSS
    rows = () if site.offers.get("measures_use") else ("--allocations",)
    options = (*rows, "--duplicates", "--parsable", f"--delimiter={SEPARATOR}", _START_TIME)
    command = slurm_command(site, "sacct", *options, f"--jobs={','.join(native_ids)}")
    return list_twice_command(command, _FORM, _columns(site))


@hookimpl
def parse_finished(result: CommandResult, site: Site) -> Mapping[str, Observation] | NotOffered:
    """Return an Observation of each job in sacct's output; of a requeued job, that of its last run.

    Raises:
        SubmitException: the output is incomplete.
    """
    if _NO_ACCOUNTING in result.stderr or result.returncode == _NOT_FOUND:
        return NOT_OFFERED
    has_full_codes = tuple(site.offers.get("version", ())) >= _FULL_CODES
    last: dict[str, Row] = {}
    rows = parse_listing(result, _columns(site), is_listed_twice=True)
    for row in sorted(rows, key=lambda row: row.submitted):
        for name in row.all_ids:
            last[name] = _with_first_submit_time(last.get(name), row)
    return {name: _observe_account(row, has_full_codes=has_full_codes) for name, row in last.items()}


def _columns(site: Site) -> Mapping[str, str]:
    has_line = tuple(site.offers.get("version", ())) >= _SUBMIT_LINE_VERSION
    columns = _COLUMNS_WITH_LINE if has_line else _COLUMNS
    # ids are in the first column, and the last one may be any text
    return {"displayed_id": "JobID", **_USE, **columns} if site.offers.get("measures_use") else columns


def _with_first_submit_time(earlier: Row | None, row: Row) -> Row:
    """Return the row, with the earlier run's submit time if that was requeued, which resets the time."""
    if earlier is None or earlier.state not in _REQUEUED_STATES:
        return row
    return attrs.evolve(row, submitted=earlier.submitted)


def _is_incomplete(row: Row) -> bool:
    """Return True if slurmdbd knows only the start of a job, which slurmctld may report after the job's end.

    The row then has the final state, but the exit code 0:0, as slurmdbd has received none yet. jpsi treats
    the job as still running.
    """
    meaning = STATES.get(row.state)
    return meaning is not None and meaning.state.final and row.ended == _UNKNOWN_TIME


def _observe_account(row: Row, *, has_full_codes: bool) -> Observation:
    """Return the Observation for a row of sacct; `has_full_codes` is that of `decode_accounting_code`."""
    if _is_incomplete(row):
        observation = attrs.evolve(observe_row(attrs.evolve(row, state="RUNNING")), native_state=row.state)
    elif canceller := _CANCELLED_BY.match(row.state):
        observation = observe_row(attrs.evolve(row, state="CANCELLED"), cancelled_by=canceller[1])
    elif row.state == "COMPLETED":
        observation = observe_row(row, End(0))
    else:
        observation = observe_row(row, decode_accounting_code(row.exit_code, has_full_codes=has_full_codes))
    used = _usage(row) if observation.ran and observation.final else {}
    return attrs.evolve(observation, tag=_read_tag(row), details={**observation.details, **used})


def _usage(row: Row) -> dict[str, float]:
    """Return the seconds of CPU time and the bytes of memory; a zero stands for what was not measured.

    sacct(1), MaxRSS: of a step, the peak of its largest task. The CPU time of a job is that of all its steps.
    """
    steps = [it for it in row.steps if not it.displayed_id.endswith(".extern")]
    # steps run beside each other, or not, so that the sum of their peaks says nothing
    own_steps = [it for it in steps if not it.displayed_id.endswith(".batch")]
    is_whole = len(own_steps) <= 1 and all(it.tasks == "1" for it in steps)
    used = {
        "used.cpu": _parse_cpu(row.cpu),
        "used.memory" if is_whole else "used.process_memory": max(
            (_parse_memory(it.memory) for it in steps), default=0
        ),
    }
    return {name: amount for name, amount in used.items() if amount}


def _parse_cpu(text: str) -> float:
    """Return the seconds of a CPU time; 0 for other text. sacct(1): `[DD-[HH:]]MM:SS.mmm`.

    >>> _parse_cpu("1-02:00:03"), _parse_cpu("01:30.250"), _parse_cpu("")
    (93603.0, 90.25, 0.0)
    """
    match = _CPU.fullmatch(text)
    if match is None:
        return 0.0
    days, hours, minutes, seconds = (float(it or 0) for it in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _parse_memory(text: str) -> int:
    """Return the bytes of a size such as `4856K`; 0 for other text."""
    match = _MEMORY.fullmatch(text)
    return 0 if match is None else int(float(match[1]) * 1024 ** _MEMORY_UNITS.index(match[2]))


def _read_tag(row: Row) -> str | None:
    """Return the job's tag, "" if it has none; None if slurmdbd has not received it or does not keep it."""
    tags_in_line = _TAG.findall(row.submit_line.partition("--comment=")[2])
    tag = extract_tag(row.comment) or extract_tag(row.submit_line) or "".join(tags_in_line[-1:])
    is_recorded = row.comment or (row.submit_line and _WITHOUT_TAG.match(row.submit_line) is None)
    return "" if is_recorded and not tag else tag or None

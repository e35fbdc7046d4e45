"""Declares the capabilities of LSF and probes those of a site's LSF.

The engine runs the probe once per executor; later hooks find its result in `site.offers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jpsi.plugin import Arrays, Capabilities, Command, CommandResult, Site, hookimpl

from .commands import lsf_command
from .directives import ARRAY_RANGE, DEPENDENCIES, WALLTIME_UNIT
from .queue import FIELDS

# The first two show which options bjobs knows, the third the limit of array sizes, the last the queues.
_SCRIPT = f"bjobs -V; bjobs -o '{FIELDS}' -json; bparams -l; exec bqueues -l"
# bjobs's messages about an unknown option or field
_NO_JSON = re.compile(
    r"^Usage: bjobs|in the format string is not a valid field|bjobs: (?:illegal|invalid)", re.MULTILINE
)
# volclava 2.2 knows -json but not all fields, and says so only if there is a job to print. It also calls
# killed jobs DONE, so that a later version with all fields does not count as LSF 10 either.
_LSF_10 = re.compile(r"\bLSF\b.* [1-9][0-9]\.[0-9]")
_RECORDS = re.compile(r'"RECORDS"\s*:\s*\[')
_QUEUE = re.compile(r"^QUEUE: ", re.MULTILINE)
_REQUEUE = re.compile(r"^REQUEUE_EXIT_VALUES: *(.*)$", re.MULTILINE)
_ALL_CODES = range(1, 256)
_ARRAY_SIZE = re.compile(r"^ *MAX_JOB_ARRAY_SIZE *= *([1-9][0-9]{0,9})\b", re.MULTILINE)
# lsb.params of LSF 10.1: the default of MAX_JOB_ARRAY_SIZE
_DEFAULT_ARRAY_SIZE = 1000
# With a larger index, volclava 2.2 submits a job whose name ends with the brackets instead of an array.
_LARGEST_INDEX = 65534
# `bjobs -l` prints about 2 kB per job.
_IDS_PER_QUERY = 500


@hookimpl
def capabilities(site: Site) -> Capabilities:
    """Return the capabilities of LSF, with the exit codes for which this site requeues jobs."""
    codes = frozenset(site.offers.get("requeue_exit_codes", ()))
    return Capabilities(
        default_launcher="mpirun",
        id_variable="LSB_JOBID",
        ids_per_query=_IDS_PER_QUERY,
        requeue_exit_codes=codes.union(site.config.requeue_exit_codes),
        dependencies=frozenset(DEPENDENCIES) if site.config.orphan_termination else frozenset(),
        arrays=Arrays(
            largest=min(site.offers.get("max_job_array_size", _DEFAULT_ARRAY_SIZE), _LARGEST_INDEX),
            id_variable="LSB_JOBID",
            index_variable="LSB_JOBINDEX",
            range_variables=ARRAY_RANGE,
            reads_index=True,
            limits=True,
            heterogeneous=True,
            names_elements=True,
        ),
        heterogeneous=site.config.compound_requirements,
        walltime_unit=WALLTIME_UNIT,
    )


@hookimpl
def probe() -> Command:
    """Return the command that tries bjobs and prints LSF's parameters and queues."""
    return lsf_command("/bin/sh", "-c", _SCRIPT)


@hookimpl
def parse_probe(result: CommandResult) -> Mapping[str, Any]:
    """Return the properties of the site's LSF that jpsi uses.

    `json` is True if bjobs prints JSON with all needed fields; `requeue_exit_codes` are those of the queues;
    `max_job_array_size` is the largest number of array elements.
    """
    json = _has_json(result)
    if json is None or not _QUEUE.search(result.stdout):
        raise result.checked().no_answer
    codes = {code for text in _REQUEUE.findall(result.stdout) for code in _parse_exit_codes(text)}
    size = _ARRAY_SIZE.search(result.stdout)
    return {
        "json": json,
        "requeue_exit_codes": sorted(codes),
        "max_job_array_size": int(size[1]) if size else _DEFAULT_ARRAY_SIZE,
    }


def _has_json(result: CommandResult) -> bool | None:
    """Return True if bjobs prints all needed fields as JSON; None if it failed."""
    if _NO_JSON.search(result.stderr):
        return False
    if not _RECORDS.search(result.stdout):
        return None
    return bool(_LSF_10.search(result.stdout + result.stderr))


def _parse_exit_codes(text: str) -> Iterator[int]:
    """Yield the exit codes in a queue's REQUEUE_EXIT_VALUES (lsb.queues of LSF 10.1).

    >>> list(_parse_exit_codes("3 99 EXCLUDE(125)")), len(list(_parse_exit_codes("all ~1 ~2")))
    ([3, 99, 125], 253)
    """
    excluded = {int(number) for number in re.findall(r"~ *(\d+)", text)}
    if re.search(r"\ball\b", text):
        yield from (code for code in _ALL_CODES if code not in excluded)
        return
    yield from (code for code in map(int, re.findall(r"\d+", text)) if code not in excluded)

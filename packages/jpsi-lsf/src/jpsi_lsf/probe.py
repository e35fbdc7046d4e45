"""What LSF offers, and a site's own LSF, as it shows when it is asked for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jpsi.plugin import Arrays, Capabilities, Command, CommandResult, Site, hookimpl

from .commands import lsf
from .queue import FIELDS
from .submission import DEPENDENCIES

# The first two tell what bjobs understands, the third how large arrays may be, the last what queues do.
_SCRIPT = f"bjobs -V; bjobs -o '{FIELDS}' -json; bparams -l; exec bqueues -l"
# bjobs that does not know an option, or a field
_OLD = re.compile(
    r"^Usage: bjobs|in the format string is not a valid field|bjobs: (?:illegal|invalid)", re.MULTILINE
)
# Volclava 2.2 knows -json and not all the fields, and says so only if there is a job to tell of. It also
# calls jobs DONE that were killed, whatever fields a later one may know.
_LSF_10 = re.compile(r"\bLSF\b.* [1-9][0-9]\.[0-9]")
_RECORDS = re.compile(r'"RECORDS"\s*:\s*\[')
_QUEUE = re.compile(r"^QUEUE: ", re.MULTILINE)
_REQUEUE = re.compile(r"^REQUEUE_EXIT_VALUES: *(.*)$", re.MULTILINE)
_EVERY = range(1, 256)
_ARRAY_SIZE = re.compile(r"^ *MAX_JOB_ARRAY_SIZE *= *([1-9][0-9]{0,9})\b", re.MULTILINE)
# lsb.params of LSF 10.1: the default of MAX_JOB_ARRAY_SIZE
_DEFAULT_ARRAY_SIZE = 1000
# From the next on, volclava 2.2 takes an array for a job whose name ends so.
_LARGEST_INDEX = 65534
# What `bjobs -l` says of a job takes about 2 kB.
_IDS_PER_QUERY = 500


@hookimpl
def capabilities(site: Site) -> Capabilities:
    """What LSF offers, and with which exit codes this site puts jobs back."""
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
            limits=True,
            heterogeneous=True,
        ),
        heterogeneous=site.config.compound_requirements,
    )


@hookimpl
def probe() -> Command:
    """The command that tries bjobs, and shows parameters and queues."""
    return lsf("/bin/sh", "-c", _SCRIPT)


@hookimpl
def parse_probe(result: CommandResult) -> Mapping[str, Any]:
    """Whether bjobs prints `json` with all that is to be known, and `requeue_exit_codes` of the queues.

    Also `max_job_array_size`, how many elements an array may have.
    """
    json = _json(result)
    if json is None or not _QUEUE.search(result.stdout):
        raise result.checked().no_answer
    codes = {code for text in _REQUEUE.findall(result.stdout) for code in _codes(text)}
    size = _ARRAY_SIZE.search(result.stdout)
    return {
        "json": json,
        "requeue_exit_codes": sorted(codes),
        "max_job_array_size": int(size[1]) if size else _DEFAULT_ARRAY_SIZE,
    }


def _json(result: CommandResult) -> bool | None:
    """Whether bjobs tells all fields as JSON; None if it has not answered."""
    if _OLD.search(result.stderr):
        return False
    if not _RECORDS.search(result.stdout):
        return None
    return bool(_LSF_10.search(result.stdout + result.stderr))


def _codes(text: str) -> Iterator[int]:
    """The codes in what a queue says (lsb.queues of LSF 10.1, REQUEUE_EXIT_VALUES).

    >>> list(_codes("3 99 EXCLUDE(125)")), len(list(_codes("all ~1 ~2")))
    ([3, 99, 125], 253)
    """
    without = {int(number) for number in re.findall(r"~ *(\d+)", text)}
    if re.search(r"\ball\b", text):
        yield from (code for code in _EVERY if code not in without)
        return
    yield from (code for code in map(int, re.findall(r"\d+", text)) if code not in without)

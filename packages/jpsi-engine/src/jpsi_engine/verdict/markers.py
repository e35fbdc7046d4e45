"""Reads the markers that a runner leaves: empty files, whose names are the facts.

    <job id>.<attempt>.active                    the job runs (jobs of batch systems only)
    <job id>.<attempt>.signalled                 the runner got a signal that is meant to end the job
    <job id>.<attempt>.exit.<phase>.<code>       the run ended in this phase with this code

After the phase may be what the run has used: `run-1234` means 12.34 s of CPU time, and `run-1234-5678` also
5678 KiB of memory, the peak of the largest process. `run-oom` means that the kernel killed a
process of the job for its memory.

If a batch system requeues the attempt, the markers of its n-th restart are named `<job
id>.<attempt>.<n>.active` and so on. The time of a fact is the file's modification time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable
from datetime import UTC, datetime

import attrs

from jpsi_engine.verdict.exit_phases import ALSO, MEMORY_KILL

# The kernel reports CPU time to programs in hundredths of a second (USER_HZ).
_TICKS, _KIBIBYTE = 100, 1024


@attrs.frozen(slots=True)
class Marker:
    """A fact about one run of a job."""

    job_id: str
    attempt: int
    #: The number of times that the batch system had requeued the job before this run.
    restart: int
    #: `active`, `signalled` or `exit`.
    kind: str
    #: The phase, for `exit`; else empty.
    detail: str
    #: The exit code, for `exit`; else None.
    code: int | None
    #: The modification time, in nanoseconds since 1970.
    time_ns: int
    #: The file's name.
    name: str
    #: The seconds of CPU time and the bytes of memory that the run has used, for `exit`; None if not known.
    cpu: float | None = None
    memory: int | None = None
    #: True if the kernel has killed a process of the job for its memory.
    has_memory_kill: bool = False

    @property
    def time(self) -> datetime:
        """The modification time of the file, in UTC."""
        return datetime.fromtimestamp(self.time_ns / 1e9, UTC)


def parse(name: str, time_ns: int) -> Marker | None:
    """Return the marker with this file name; None if the name is not that of a marker.

    >>> parse("a1.1.exit.run.7", 0).code
    7
    >>> parse("a1.1.exit.run-1234.7", 0).cpu
    12.34
    """
    job_id, *fact = name.split(".")
    attempt = fact.pop(0) if fact else ""
    restart = fact.pop(0) if fact and _is_number(fact[0]) else "0"
    if not _is_number(attempt):
        return None
    match fact:
        case ["active" | "signalled" as kind]:
            return Marker(job_id, int(attempt), int(restart), kind, "", None, time_ns, name)
        case ["exit", phase, code] if _is_number(code):
            parts = phase.split(ALSO)
            detail = ALSO.join(it for it in parts if it != MEMORY_KILL and not _is_number(it))
            numbers = [int(it) for it in parts if _is_number(it)]
            return Marker(
                *(job_id, int(attempt), int(restart), "exit", detail, int(code), time_ns, name),
                cpu=numbers[0] / _TICKS if numbers else None,
                memory=numbers[1] * _KIBIBYTE if len(numbers) > 1 else None,
                has_memory_kill=MEMORY_KILL in parts,
            )
    return None


def name_with_memory(marker: Marker, memory: int) -> str:
    """Return the name of an exit marker that says how many bytes of memory its run has used, too.

    >>> name_with_memory(parse("a1.1.exit.run-1234.7", 0), 5678 * 1024)
    'a1.1.exit.run-1234-5678.7'
    """
    before, _, code = marker.name.rpartition(".")
    return f"{before}{ALSO}{memory // _KIBIBYTE}.{code}"


def restart_count(markers: Iterable[Marker]) -> int:
    """Return how many times the batch system had requeued the job before its last run."""
    return max((marker.restart for marker in markers), default=0)


def of_last_run(markers: Collection[Marker]) -> list[Marker]:
    """Return the markers of the last run; those of earlier runs count no more."""
    last = restart_count(markers)
    return [marker for marker in markers if marker.restart == last]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def scan(directory: str, job_ids: Collection[str] | None = None) -> list[Marker]:
    """Return the markers in a directory; only those of `job_ids` if given."""
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if job_ids is not None and entry.name.partition(".")[0] not in job_ids:
                continue
            # another process has moved a missing marker into the job's folder
            with contextlib.suppress(FileNotFoundError):
                marker = parse(entry.name, entry.stat(follow_symlinks=False).st_mtime_ns)
                found += [] if marker is None else [marker]
    return found

"""Remembers, for all processes of a machine, how long the batch system has left jobs out of its answers.

    <root>/shared_poll/<boot>/missing/<job>.<attempt>.json    one job, as the last process to poll has seen it

A command that polls once and ends sees one snapshot, and a missing job has a longer grace than that. So each
process continues the count where the last one stopped. Times are those of `time.monotonic`, as in the folder
around this one.

A process writes a file only while a job is missing, and removes it as soon as a snapshot mentions the job. A
file is no evidence by itself: each process that reads one has a snapshot of its own that leaves the job out,
too. If a file is lost or cannot be written, the grace starts again.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterable
from typing import Any

import attrs

from jpsi_engine.host import NO_BOOT, boot_id, forget, make_directory, read_json, write
from jpsi_engine.scheduler.job_view import Absence, JobView

_JSON = ".json"
_OLD_SECONDS = 7 * 24 * 3600.0
# Between the snapshots of two processes, at most this share of the patience counts, as the batch system may
# have shown the job in the meantime. So it takes three snapshots to lose a job.
_SHARE = 0.5


class Absences:
    """The jobs of one executor that the batch system has left out of its answers.

    Args:
        root: the folder of the executor and target, which is private to the user.
        timeout_seconds: the seconds for which the batch system must leave a job out before it counts as lost.
    """

    def __init__(self, root: str, timeout_seconds: float) -> None:
        # without the boot's name no process can tell whether a time belongs to this boot
        self._folder = None if boot_id() == NO_BOOT else f"{root}/shared_poll/{boot_id()}/missing"
        self._longest = _SHARE * timeout_seconds

    def names(self) -> frozenset[str]:
        """Return the names of the jobs that any process has missed; see `attempt_name`."""
        try:
            found = [] if self._folder is None else os.listdir(self._folder)  # noqa: PTH208  as in the spool
        except OSError:
            return frozenset()
        return frozenset(name.removesuffix(_JSON) for name in found if name.endswith(_JSON))

    def load(self, job: JobView, system: str, begun: float) -> Absence | None:
        """Return what earlier processes have stored about a job that a snapshot leaves out.

        Args:
            job: the job.
            system: the digest of the batch system that was polled.
            begun: when the poll of that snapshot was begun.
        """
        path = self._path(job)
        plain: Any = None
        with contextlib.suppress(OSError, RecursionError):
            plain = None if path is None else read_json(path)
        try:
            if plain is None or plain["of"] != _identity(job, system):
                return None
            # a snapshot that several processes share adds no time
            gap = max(0.0, min(begun - float(plain["time"]), self._longest))
            known = Absence(
                answers=int(plain["answers"]),
                absent=_seconds(plain["absent"]),
                unaccounted=_seconds(plain["unaccounted"]),
                over=_seconds(plain["over"]),
            )
        except (LookupError, TypeError, ValueError):
            return None
        return known.extended(gap)

    def store(self, job: JobView, system: str, absence: Absence, now: float) -> None:
        """Store how long a job has been missing; never raises.

        Args:
            job: the job.
            system: the digest of the batch system that was polled.
            absence: the absence that all processes have seen.
            now: the current time, by the clock of the snapshots.
        """
        path = self._path(job)
        if path is None or self._folder is None:
            return
        content = {"of": _identity(job, system), "time": now, **attrs.asdict(absence)}
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                make_directory(self._folder)
            write(path, json.dumps(content).encode("ascii"))

    def remove(self, jobs: Iterable[JobView]) -> None:
        """Remove the files of jobs that are present or have ended; never raises."""
        for path in map(self._path, jobs):
            if path is not None:
                forget(path)

    def prune(self, names: Collection[str], now: float) -> None:
        """Remove files that processes left long ago, so that the folder stays small; never raises.

        Args:
            names: the names of the jobs.
            now: the current time, by the clock of the snapshots.
        """
        for name in names:
            path = f"{self._folder}/{name}{_JSON}"
            with contextlib.suppress(OSError, LookupError, TypeError, RecursionError):
                plain = read_json(path)
                if plain is None or now - plain["time"] > _OLD_SECONDS:
                    forget(path)

    def _path(self, job: JobView) -> str | None:
        return f"{self._folder}/{attempt_name(job)}{_JSON}" if self._folder and job.has_runner else None


def attempt_name(job: JobView) -> str:
    """Return the name of one attempt of a job in this folder."""
    return f"{job.spool_id}.{job.attempt}"


def _identity(job: JobView, system: str) -> list[Any]:
    # a new marker is a sign of life, and another native id is another query
    return [system, job.native_id, len(job.markers)]


def _seconds(plain: object) -> float | None:
    if plain is None:
        return None
    if isinstance(plain, bool) or not isinstance(plain, int | float) or not 0 <= plain < float("inf"):
        raise ValueError(plain)
    return float(plain)

"""Remembers, for all processes of a machine, how long the batch system has left jobs out of its answers.

    <root>/asking/<boot>/missing/<job>.<attempt>.json    one job, as the last process to ask has seen it

A command that asks once and ends sees one answer, and the grace that a missing job has is longer than that.
So each process goes on counting where the last one stopped. Times are those of `time.monotonic`, as in the
folder around.

A process writes a file only while a job is missing, and removes it as soon as an answer mentions the job. A
file is no evidence by itself: each process that reads one has an answer of its own that leaves the job out,
too. If a file is lost or cannot be written, the grace begins anew.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterable
from typing import Any

import attrs

from jpsi.plugin.kit import make_directory
from jpsi_engine.host import NO_BOOT, boot_id, forget, read_json, write
from jpsi_engine.scheduler.job_view import Absence, Tracked

_JSON = ".json"
_OLD_SECONDS = 7 * 24 * 3600.0
# Of the time between the answers of two processes so much of the patience counts at most, as the batch system
# may have had the job in between. So it takes three answers to lose a job.
_SHARE = 0.5


class MissingJobs:
    """The jobs of one executor that the batch system has left out of its answers.

    Args:
        root: the folder of the executor and target, which is private to the user.
        patience: the seconds until a batch system that does not mention a job is believed.
    """

    def __init__(self, root: str, patience: float) -> None:
        # without a name of the boot nobody knows whether a time is of this one
        self._folder = None if boot_id() == NO_BOOT else f"{root}/asking/{boot_id()}/missing"
        self._longest = _SHARE * patience

    def names(self) -> frozenset[str]:
        """Return the names of the jobs that any process has missed; see `name_of`."""
        try:
            found = [] if self._folder is None else os.listdir(self._folder)  # noqa: PTH208  as in the spool
        except OSError:
            return frozenset()
        return frozenset(name.removesuffix(_JSON) for name in found if name.endswith(_JSON))

    def recall(self, job: Tracked, system: str, begun: float) -> Absence | None:
        """Return what earlier processes have seen of a job that an answer leaves out.

        Args:
            job: the job.
            system: which batch system was asked.
            begun: when the question was begun that this answer is to.
        """
        path = self._path(job)
        plain: Any = None
        with contextlib.suppress(OSError, RecursionError):
            plain = None if path is None else read_json(path)
        try:
            if plain is None or plain["of"] != _identity(job, system):
                return None
            # an answer that several processes take adds nothing to itself
            gap = max(0.0, min(begun - float(plain["time"]), self._longest))
            known = Absence(
                answers=int(plain["answers"]),
                absent=_seconds(plain["absent"]),
                unaccounted=_seconds(plain["unaccounted"]),
                over=_seconds(plain["over"]),
            )
        except (LookupError, TypeError, ValueError):
            return None
        return known.later(gap)

    def keep(self, job: Tracked, system: str, absence: Absence, now: float) -> None:
        """Write down what is known of a job that an answer has left out; never raises.

        Args:
            job: the job.
            system: which batch system was asked.
            absence: what all processes have seen.
            now: how late it is, by the clock of the answers.
        """
        path = self._path(job)
        if path is None or self._folder is None:
            return
        content = {"of": _identity(job, system), "time": now, **attrs.asdict(absence)}
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                make_directory(self._folder)
            write(path, json.dumps(content).encode("ascii"))

    def forget(self, jobs: Iterable[Tracked]) -> None:
        """Remove what is known of jobs that are there, or have ended; never raises."""
        for path in map(self._path, jobs):
            if path is not None:
                forget(path)

    def forget_old(self, names: Collection[str], now: float) -> None:
        """Remove what processes have left long ago, so that the folder stays small; never raises.

        Args:
            names: of which jobs.
            now: how late it is, by the clock of the answers.
        """
        for name in names:
            path = f"{self._folder}/{name}{_JSON}"
            with contextlib.suppress(OSError, LookupError, TypeError, RecursionError):
                plain = read_json(path)
                if plain is None or now - plain["time"] > _OLD_SECONDS:
                    forget(path)

    def _path(self, job: Tracked) -> str | None:
        return f"{self._folder}/{name_of(job)}{_JSON}" if self._folder and job.has_runner else None


def name_of(job: Tracked) -> str:
    """Return what one attempt of a job is called here."""
    return f"{job.spool_id}.{job.attempt}"


def _identity(job: Tracked, system: str) -> list[Any]:
    # what the job has left since then is a sign of life, and another native id another question
    return [system, job.native_id, len(job.markers)]


def _seconds(plain: object) -> float | None:
    if plain is None:
        return None
    if isinstance(plain, bool) or not isinstance(plain, int | float) or not 0 <= plain < float("inf"):
        raise ValueError(plain)
    return float(plain)

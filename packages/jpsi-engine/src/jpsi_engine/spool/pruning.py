"""Removes from the spool what is left of jobs that ended long ago, or of too many."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Collection, Mapping

from jpsi_engine.host import forget
from jpsi_engine.spool.spool import Spool
from jpsi_engine.verdict import Marker, scan

log = logging.getLogger(__name__)

_UNCLAIMED_SECONDS = 600.0
# What looks like nothing may be a job whose files do not show here yet, or are just being written: clocks of
# this machine and of file servers are set, and differ, by hours.
_NOTHING_SECONDS = 43_200.0


def prune(  # noqa: PLR0913  what goes, and who is told
    spool: Spool,
    now: float,
    keep_seconds: float,
    keep_count: int,
    settles: Callable[[list[Marker]], bool],
    *,
    removed: Callable[[Collection[str]], Collection[str]] = lambda _: (),
) -> None:
    """Remove the folders of final jobs that are older than `keep_seconds` or beyond `keep_count`.

    An array goes with the folders of its elements, once all of them are final and old. Markers that nobody
    asked for go to their jobs' folders, so that `events` stays small.

    Args:
        spool: where they are.
        now: how late it is.
        keep_seconds: how old they may be.
        keep_count: how many may be kept.
        settles: see `Spool.is_final`.
        removed: called with which jobs and arrays are gone; those that it returns, or all if it fails, are
            remembered.

    Raises:
        OSError: the spool cannot be read.
    """
    for marker in scan(spool.events):
        age = now - marker.time_ns / 1e9
        if age > _UNCLAIMED_SECONDS and not spool.consume(marker) and age > _NOTHING_SECONDS:
            # the job's folder was removed
            forget(f"{spool.events}/{marker.name}")
    with os.scandir(spool.jobs) as entries:
        ages = sorted((_age(entry, now), entry.name) for entry in entries)
    oldest = min(keep_seconds, ages[keep_count][0]) if len(ages) > keep_count else keep_seconds
    pruning = _Pruning(spool, settles, {job_id: age for age, job_id in ages})
    gone = pruning.arrays(now, max(oldest, _UNCLAIMED_SECONDS))
    for index, (age, job_id) in enumerate(ages):
        if job_id in gone or age > keep_seconds or index >= keep_count:
            pruning.folder(job_id, is_nothing=job_id in gone)
    names = spool.trash()
    spool.empty_trash(set(names).difference(removed(names)))


class _Pruning:
    """One look at what is there.

    Args:
        spool: where it is.
        settles: see `Spool.is_final`.
        ages: of the folders of jobs, in seconds.
    """

    def __init__(
        self, spool: Spool, settles: Callable[[list[Marker]], bool], ages: Mapping[str, float]
    ) -> None:
        self._spool = spool
        self._settles = settles
        self._ages = ages
        self._elements: frozenset[str] | None = None
        self._has_read = False

    def arrays(self, now: float, least: float) -> set[str]:
        """Remove the arrays that are as old as that and whose elements are final.

        Returns the jobs whose folders have nothing to tell without them. An array is as old as the youngest
        folder that goes with it.
        """
        arrays = self._spool.arrays
        with os.scandir(arrays.arrays) as entries:
            old = [entry.name for entry in entries if _age(entry, now) >= least]
        open_, gone = frozenset(arrays.names()), set[str]()
        for array in old:
            try:
                gone |= self._array(array, least, is_open=array in open_)
            except OSError:
                # one that is odd keeps no other
                log.debug("array %s cannot be removed", array, exc_info=True)
        return gone

    def _array(self, array: str, least: float, *, is_open: bool) -> set[str]:
        """Remove one array if it can go; returns the jobs that have been in it last."""
        spool = self._spool
        found = spool.arrays.read(array)
        job_ids = [] if found is None else [element["id"] for element in found.elements]
        if any(self._ages.get(job_id, least) < least for job_id in job_ids):
            return set()
        if is_open and not all(spool.is_final(job_id, self._settles) for job_id in job_ids):
            return set()
        places = {job_id: spool.last_place(job_id) for job_id in job_ids if job_id in self._ages}
        spool.arrays.remove(array)
        # a job that was tried again has gone on elsewhere
        return {job_id for job_id, place in places.items() if place is not None and place.array == array}

    def folder(self, job_id: str, *, is_nothing: bool) -> None:
        """Remove the folder of a job that is final, or that has nothing to tell."""
        spool = self._spool
        if self._is_needed(job_id):
            return
        if not is_nothing:
            is_young = self._ages[job_id] <= _NOTHING_SECONDS
            is_nothing = not is_young and spool.last_intent(job_id) is None and spool.damage(job_id) is None
        if is_nothing or spool.is_final(job_id, self._settles):
            spool.remove(job_id)

    def _is_needed(self, job_id: str) -> bool:
        """Whether an array that is there has the job, which without its folder would look like a new one."""
        places = self._spool.places(job_id)
        known = [place for place in places.values() if place is not None]
        if any(os.path.exists(self._spool.arrays.folder(place.array)) for place in known):  # noqa: PTH110
            return True
        # nothing tells where an attempt was that never began, or that could not write it
        told = {attempt for attempt, place in places.items() if place is not None}
        attempts = range(1, 1 + self._spool.last_attempt(job_id))
        if all(it in told or self._spool.has_intent(job_id, it) for it in attempts):
            return False
        elements = self._in_arrays()
        return elements is None or job_id in elements

    def _in_arrays(self) -> frozenset[str] | None:
        """The jobs that are elements of arrays which are there; None if that is not to be known.

        It is rarely asked for, as all arrays are read.
        """
        if not self._has_read:
            self._has_read = True
            with contextlib.suppress(OSError):
                arrays = self._spool.arrays
                intents = filter(None, map(arrays.read, arrays.names()))
                self._elements = frozenset(it["id"] for intent in intents for it in intent.elements)
        return self._elements


def _age(entry: os.DirEntry[str], now: float) -> float:
    try:
        return now - entry.stat(follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return 0.0

"""Removes old jobs from the spool: final jobs that ended long ago, or that exceed the number to keep."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping

import attrs

from jpsi.plugin import ExecutorConfig, JpsiError
from jpsi_engine.host import forget, open_private
from jpsi_engine.spool.spool import Spool
from jpsi_engine.verdict import Marker, scan

log = logging.getLogger(__name__)

# An executor that is opened sooner after the last pass over a spool makes none: a pass looks at every job.
_PASS_SECONDS = 3600.0
_UNCLAIMED_SECONDS = 600.0
# A folder that looks empty may be a job whose files are not visible on this machine yet, or are being
# written. The limit is hours, as clocks of machines and file servers are reset, and differ.
_EMPTY_SECONDS = 43_200.0


def start_pruning(
    spool: Spool,
    config: ExecutorConfig,
    is_conclusive: Callable[[list[Marker]], bool],
    removed: Callable[[Collection[str]], Collection[str]] = lambda _: (),
) -> None:
    """Prune a spool in a thread of its own, if it is due; see `prune`.

    Raises:
        RuntimeError: no thread can be started.
    """

    def run() -> None:
        keep_seconds = config.keep_time.total_seconds()
        try:
            prune(spool, time.time(), keep_seconds, config.keep_count, is_conclusive, removed=removed)
        except OSError:
            log.warning("old jobs in %s could not be removed", spool.root, exc_info=True)
        except JpsiError as e:
            log.info("old jobs could not be removed from the remote host; a later run tries again: %s", e)

    if is_pruning_due(spool.root, time.time()):
        threading.Thread(target=run, name="jpsi-prune", daemon=True).start()


def is_pruning_due(root: str, now: float) -> bool:
    """Return True if no process has pruned a spool in the last hour, and record that this one does so now.

    A process that is killed in its pass leaves the rest to one that comes later.
    """
    path = f"{root}/pruned"
    try:
        # the clocks of several machines may differ
        if 0 <= now - os.stat(path).st_mtime < _PASS_SECONDS:  # noqa: PTH116
            return False
    except OSError:
        pass  # the first pass, or a disk with errors, which the pass reports
    with contextlib.suppress(OSError):
        fd = open_private(path, os.O_WRONLY | os.O_CREAT)
        try:
            os.utime(fd, (now, now))
        finally:
            os.close(fd)
    return True


def prune(  # noqa: PLR0913  limits, and a callback
    spool: Spool,
    now: float,
    keep_seconds: float,
    keep_count: int,
    is_conclusive: Callable[[list[Marker]], bool],
    *,
    removed: Callable[[Collection[str]], Collection[str]] = lambda _: (),
) -> None:
    """Remove the folders of final jobs that are older than `keep_seconds` or beyond `keep_count`.

    An array is removed with the folders of its elements, once all of them are final and old. Markers that no
    process has consumed are moved to their jobs' folders, so that `events` stays small.

    Args:
        spool: the spool.
        now: the current time, in seconds since 1970.
        keep_seconds: the age up to which jobs are kept.
        keep_count: the number of jobs to keep at most.
        is_conclusive: see `Spool.is_final`.
        removed: called with the names of the removed jobs and arrays; those that it returns, or all if it
            raises, stay in the trash for the next call.

    Raises:
        OSError: the spool cannot be read.
    """
    for marker in scan(spool.events):
        age = now - marker.time_ns / 1e9
        if age > _UNCLAIMED_SECONDS and not spool.consume(marker) and age > _EMPTY_SECONDS:
            # the job's folder was removed
            forget(f"{spool.events}/{marker.name}")
    with os.scandir(spool.jobs) as entries:
        ages = sorted((_age(entry, now), entry.name) for entry in entries)
    oldest = min(keep_seconds, ages[keep_count][0]) if len(ages) > keep_count else keep_seconds
    pruning = _Pruning(spool, is_conclusive, {job_id: age for age, job_id in ages})
    orphaned = pruning.arrays(now, max(oldest, _UNCLAIMED_SECONDS))
    for index, (age, job_id) in enumerate(ages):
        if job_id in orphaned or age > keep_seconds or index >= keep_count:
            pruning.folder(job_id, is_empty=job_id in orphaned)
    _remove_deferrals(spool, now, max(keep_seconds, _EMPTY_SECONDS))
    names = spool.trash()
    spool.empty_trash(set(names).difference(removed(names)))


def _remove_deferrals(spool: Spool, now: float, min_age: float) -> None:
    """Remove the files of deferred submissions whose jobs are gone."""
    old: list[str] = []
    with contextlib.suppress(FileNotFoundError), os.scandir(spool.deferrals) as entries:
        old = [entry.name for entry in entries if _age(entry, now) > min_age]
    # a job that has ended names its deferral too
    named = set(map(spool.read_deferral_name, spool.job_ids() if old else ()))
    for name in old:
        if name.partition(".")[0] not in named:
            forget(f"{spool.deferrals}/{name}")


@attrs.frozen(slots=True)
class _Pruning:
    """A pass over the spool.

    Args:
        spool: the spool.
        is_conclusive: see `Spool.is_final`.
        ages: the ages of the folders of jobs, in seconds.
    """

    _spool: Spool
    _is_conclusive: Callable[[list[Marker]], bool]
    _ages: Mapping[str, float]

    def arrays(self, now: float, min_age: float) -> set[str]:
        """Remove the arrays that are at least that old and whose elements are final.

        Returns the jobs whose folders mean nothing without these arrays. An array is as old as the youngest
        folder of its elements.
        """
        arrays = self._spool.arrays
        with os.scandir(arrays.arrays) as entries:
            old_names = [entry.name for entry in entries if _age(entry, now) >= min_age]
        open_, orphaned = frozenset(arrays.names()), set[str]()
        for array in old_names:
            try:
                orphaned |= self._array(array, min_age, is_open=array in open_)
            except OSError:
                # an array with an error does not keep the others
                log.debug("array %s cannot be removed", array, exc_info=True)
        return orphaned

    def _array(self, array: str, min_age: float, *, is_open: bool) -> set[str]:
        """Remove an array if its elements are final and old; return the jobs whose last attempt it was."""
        spool = self._spool
        found = spool.arrays.read(array)
        job_ids = [] if found is None else [element["id"] for element in found.elements]
        if any(self._ages.get(job_id, min_age) < min_age for job_id in job_ids):
            return set()
        if is_open and not all(spool.is_final(job_id, self._is_conclusive) for job_id in job_ids):
            return set()
        if any(spool.deferred_attempt(job_id) is not None for job_id in job_ids):
            # their requests are here
            return set()
        if not is_open and any(spool.pending_retry(job_id) is not None for job_id in job_ids):
            # their last attempts are here
            return set()
        members = {job_id: spool.last_array_member(job_id) for job_id in job_ids if job_id in self._ages}
        spool.arrays.remove(array)
        # the last attempt of a retried job is not in this array
        return {job_id for job_id, member in members.items() if member is not None and member.array == array}

    def folder(self, job_id: str, *, is_empty: bool) -> None:
        """Remove the folder of a job that is final, or that holds no information."""
        spool = self._spool
        if self._is_needed(job_id):
            return
        if not is_empty:
            is_young = self._ages[job_id] <= _EMPTY_SECONDS
            is_empty = not is_young and spool.last_intent(job_id) is None and spool.damage(job_id) is None
        if is_empty or spool.is_final(job_id, self._is_conclusive):
            spool.remove(job_id)

    def _is_needed(self, job_id: str) -> bool:
        """Return True if the job is yet to be submitted, or an existing array has it.

        Without its folder, a job of an array would look new.
        """
        if self._spool.deferred_attempt(job_id) is not None:
            return True
        members = self._spool.places(job_id)
        linked_members = [member for member in members.values() if member is not None]
        if any(os.path.exists(self._spool.arrays.folder(member.array)) for member in linked_members):  # noqa: PTH110
            return True
        # an attempt that never began, or that could not write its link, does not name its array
        linked = {attempt for attempt, member in members.items() if member is not None}
        attempts = range(1, 1 + self._spool.last_attempt(job_id))
        if all(it in linked or self._spool.has_intent(job_id, it) for it in attempts):
            return False
        return self._array_jobs is None or job_id in self._array_jobs

    @functools.cached_property
    def _array_jobs(self) -> frozenset[str] | None:
        """The jobs that are elements of existing arrays; None if the arrays cannot be read.

        It is needed rarely, as this reads all arrays.
        """
        arrays = self._spool.arrays
        with contextlib.suppress(OSError):
            intents = filter(None, map(arrays.read, arrays.names()))
            return frozenset(it["id"] for intent in intents for it in intent.elements)
        return None


def _age(entry: os.DirEntry[str], now: float) -> float:
    try:
        return now - entry.stat(follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return 0.0

"""Finds array elements that this process does not follow, for recover() and recall().

It settles the arrays whose submitter died: it finds them by their tags, or makes sure that they never run.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import attrs

from jpsi_engine.host import exists
from jpsi_engine.scheduler import Backend, NativeIds, element_intent, warn_of_damage
from jpsi_engine.spool import DAMAGE, UNNAMED, ArrayAttempt, ArrayIntent, Intent, Spool, array_problem
from jpsi_engine.submission.handoff import Handoff

log = logging.getLogger(__name__)

_BUSY = "being submitted by another process, and left out until recover() is called again: array %s"
# The most arrays whose locks are held together; each lock takes a descriptor.
_BATCH_SIZE = 100


@attrs.frozen(slots=True)
class FoundElements:
    """An element with its native id; without one, the batch system never had it, and it can never run."""

    intent: Intent
    native_id: str | None


class ArrayElements:
    """The elements of arrays in one spool. Methods may be called from any thread; OSError passes."""

    def __init__(self, backend: Backend, spool: Spool, handoff: Handoff, native_ids: NativeIds) -> None:
        self._backend = backend
        self._native_ids = native_ids
        self._spool = spool
        self._handoff = handoff

    def find_unfinished(
        self,
        is_finished: Callable[[str], bool],
        folders: Collection[str],
        timeout_seconds: float,
    ) -> list[FoundElements]:
        """Return the elements that are not finished, and that were not submitted again as single jobs.

        Args:
            is_finished: returns True if a job with a folder is final or is followed already.
            folders: the ids of the jobs that have a folder.
            timeout_seconds: how long, in seconds and in all, to wait for processes that submit arrays.

        Raises:
            JpsiError: the batch system did not answer about arrays whose submitter died.
        """
        arrays = dict(filter(None, map(self._read, self._spool.arrays.names())))
        left = self._unfinished_indices(
            [array for array, _ in arrays.values()], is_finished, frozenset(folders)
        )
        native_ids = self.resolve_native_ids({name: arrays[name][1] for name in left}, timeout_seconds)
        found: list[FoundElements] = []
        for name, native_id in native_ids.items():
            found += self._yield_elements(arrays[name][0], left[name], native_id)
        return found

    def known_native_ids(self, names: Collection[str]) -> Mapping[str, str | None]:
        """Return the native ids of arrays that the spool has; arrays that cannot be read are left out."""
        found: dict[str, str | None] = {}
        for name in names:
            with _fence(name):
                found[name] = self._native_ids.for_array(name)
        return found

    def resolve_native_ids(
        self, native_ids: Mapping[str, str | None], timeout_seconds: float
    ) -> dict[str, str | None]:
        """Return the native ids of arrays; if it is None, no element of the array can ever run.

        Arrays that another process is submitting are left out.

        Args:
            native_ids: the known native id of each array, by its name.
            timeout_seconds: how long, in seconds and in all, to wait for processes that are submitting them.

        Raises:
            JpsiError: as `find_unfinished`.
        """
        unnamed_arrays = [name for name, native_id in native_ids.items() if native_id is None]
        deadline, resolved = time.monotonic() + timeout_seconds, dict[str, str | None]()
        for start in range(0, len(unnamed_arrays), _BATCH_SIZE):
            resolved |= self._resolve(unnamed_arrays[start : start + _BATCH_SIZE], deadline)
        return {name: native_id for name, native_id in native_ids.items() if native_id is not None} | resolved

    def _read(self, name: str) -> tuple[str, tuple[ArrayIntent, str | None]] | None:
        """Return an array's name, intent and native id; None if it is unreadable or was never made."""
        with _fence(name):
            array = self._spool.arrays.read(name)
            if array is not None:
                return name, (array, self._native_ids.for_array(name))
            # an array without the script that its jobs run was never complete, so it was never submitted
            if exists(f"{self._spool.arrays.folder(name)}/run"):
                _warn(name, array_problem(self._spool.root, name) or "is gone")
        return None

    def _unfinished_indices(
        self,
        arrays: Collection[ArrayIntent],
        is_finished: Callable[[str], bool],
        folders: frozenset[str],
    ) -> dict[str, list[int]]:
        """Return the indices of unfinished elements, by array; of each job only the last attempt counts."""
        last: dict[str, int] = {}
        for array in arrays:
            for element in array.elements:
                last[element["id"]] = max(element["attempt"], last.get(element["id"], 0))
        left: dict[str, list[int]] = {}
        for array in arrays:
            for index, element in enumerate(array.elements, 1):
                job_id, attempt = element["id"], element["attempt"]
                if attempt < last[job_id]:
                    continue
                try:
                    is_unfinished = job_id not in folders or self._is_unfinished(
                        array.array, job_id, attempt, is_finished
                    )
                except (OSError, *DAMAGE) as e:
                    warn_of_damage(self._spool, job_id, e)
                    continue
                if is_unfinished:
                    left.setdefault(array.array, []).append(index)
        return left

    def _is_unfinished(
        self, array: str, job_id: str, attempt: int, is_finished: Callable[[str], bool]
    ) -> bool:
        """Return True if a job that has a folder is to be found as an element of this array."""
        newest = self._spool.last_attempt(job_id)
        if attempt != newest:
            # the folder's files of an earlier attempt say nothing of this one
            return attempt > newest
        # If two processes submitted it at the same time, it is in two arrays; the folder names the first.
        place = self._spool.places(job_id).get(attempt)
        return (place is None or place.array == array) and not is_finished(job_id)

    def _find_by_tags(self, names: Sequence[str]) -> dict[str, str]:
        """Ask the batch system, by tag, for the native ids that a submitter died before recording."""
        tags = {self._attempt(name).tag: name for name in names}
        found = (self._backend.find_by_tags(list(tags)) if tags else None) or {}
        return {tags[tag]: native_id for tag, native_id in found.items() if tag in tags}

    def _resolve(self, names: Sequence[str], deadline: float) -> dict[str, str | None]:
        """Return the native ids of arrays that no process is submitting.

        If the native id is None, no element of the array can ever run. Arrays that another process is
        submitting are left out.
        """
        resolved: dict[str, str | None] = {}
        with contextlib.ExitStack() as locks:
            unnamed: list[str] = []
            for name in names:
                with _fence(name):
                    left = max(0.0, deadline - time.monotonic())
                    if not locks.enter_context(self._spool.arrays.hold_lock(name, left)):
                        log.warning(_BUSY, name)
                        continue
                    # it may have been submitted meanwhile
                    native_id = self._spool.arrays.read_native_id(name)
                    # a revoked array never runs, even if the batch system has it
                    if native_id is None and (not self._spool.arrays.is_revoked(name) or self._has_run(name)):
                        unnamed.append(name)
                    else:
                        resolved[name] = native_id
            found = self._find_by_tags(unnamed)
            for name in unnamed:
                with _fence(name):
                    resolved[name] = self._resolve_by_tag(name, found.get(name))
        return resolved

    def _resolve_by_tag(self, name: str, native_id: str | None) -> str | None:
        """Return the native id of an array whose lock is held; None if no element can ever run."""
        attempt = self._attempt(name)
        if native_id is None:
            return f"{UNNAMED}{name}" if self._has_run(name) else self._handoff.withdraw(attempt)
        if self._handoff.is_revoked(attempt) and not self._has_run(name):
            return None
        with _fence(name):
            self._spool.arrays.record_native_id(name, native_id)
        return native_id

    def _yield_elements(
        self, array: ArrayIntent, indices: Sequence[int], native_id: str | None
    ) -> Iterator[FoundElements]:
        intents = [element_intent(array, index) for index in indices]
        element_ids = self.element_native_ids([intent.job_id for intent in intents], indices, native_id)
        for intent, element_id in zip(intents, element_ids, strict=True):
            yield FoundElements(intent, element_id)

    def element_native_ids(
        self, job_ids: Sequence[str], indices: Sequence[int], native_id: str | None
    ) -> Sequence[str | None]:
        """Return the native ids of elements of an array; None for each if the array can never run."""
        if native_id is None:
            return [None] * len(indices)
        if native_id.startswith(UNNAMED):
            # the native id of the array is lost: its elements are followed by their markers
            return [f"{UNNAMED}{job_id}" for job_id in job_ids]
        return self._backend.element_ids(native_id, indices)

    def _has_run(self, name: str) -> bool:
        """Return True if any element has begun, by its files, even if the claim of the array is lost."""
        array = self._spool.arrays.read(name)
        attempts = {} if array is None else {it["id"]: it["attempt"] for it in array.elements}
        if any(marker.attempt == attempts[marker.job_id] for marker in self._spool.news(attempts.keys())):
            return True
        return any(self._spool.has_run(job_id, attempt) for job_id, attempt in attempts.items())

    def _attempt(self, name: str) -> ArrayAttempt:
        return ArrayAttempt(self._spool, name)


@contextlib.contextmanager
def _fence(array: str) -> Iterator[None]:
    """Log an error about one array, so that the others are still found."""
    try:
        yield
    except (OSError, *DAMAGE) as e:
        _warn(array, f"cannot be understood: {e!r}")


def _warn(array: str, problem: str) -> None:
    msg = "the jobs of array %s are left alone: its intent %s; jpsi doctor says what to do"
    log.warning(msg, array, problem)

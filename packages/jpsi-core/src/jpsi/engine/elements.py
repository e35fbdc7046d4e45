"""Finds the jobs that were submitted as elements of arrays, and that nobody follows."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence

import attrs

from jpsi.engine.array_files import ArrayIntent
from jpsi.engine.backend import Backend
from jpsi.engine.native_ids import NativeIds, element_intent
from jpsi.engine.sending import Sending, WrittenArray
from jpsi.engine.spool import Intent, Spool

log = logging.getLogger(__name__)


@attrs.frozen(slots=True)
class Found:
    """An element, with its native id; without one it never reached the batch system, and cannot any more."""

    intent: Intent
    native_id: str | None


class Elements:
    """The elements of arrays in one spool. Methods may be called from any thread; OSError passes."""

    def __init__(self, backend: Backend, spool: Spool, sending: Sending, native_ids: NativeIds) -> None:
        self._backend = backend
        self._native_ids = native_ids
        self._spool = spool
        self._sending = sending

    def unfinished(
        self,
        is_finished: Callable[[str], bool],
        folders: Collection[str],
        patience: float,
    ) -> list[Found]:
        """The elements that are not finished, and that were not submitted again by themselves.

        Args:
            is_finished: whether a job with a folder needs nobody who follows it.
            folders: the jobs that have one.
            patience: how long, in seconds and in all, to wait for those who are submitting arrays.

        Raises:
            JpsiError: the batch system was asked for arrays whose submitter died, and did not answer.
        """
        read = (self._read(name) for name in self._spool.arrays.names())
        arrays = {array.array: array for array in read if array is not None}
        left = self._left(arrays.values(), is_finished, frozenset(folders))
        native_ids = {name: self._native_ids.of_array(name) for name in left}
        tags = {self._written(name).tag: name for name, native_id in native_ids.items() if native_id is None}
        if tags:
            for tag, native_id in (self._backend.find(list(tags)) or {}).items():
                native_ids[tags[tag]] = native_id
        deadline = time.monotonic() + patience
        found: list[Found] = []
        for name, indices in left.items():
            try:
                found += self._found(arrays[name], indices, native_ids[name], deadline)
            except (OSError, KeyError, TypeError, ValueError):
                log.warning("array %s: its folder cannot be understood", name, exc_info=True)
        return found

    def _read(self, name: str) -> ArrayIntent | None:
        try:
            return self._spool.arrays.read(name)
        except OSError:
            # one odd folder says nothing of the others
            log.warning("array %s: its folder cannot be read", name, exc_info=True)
            return None

    def _left(
        self,
        arrays: Collection[ArrayIntent],
        is_finished: Callable[[str], bool],
        folders: frozenset[str],
    ) -> dict[str, list[int]]:
        """The indices of elements to be told of, by array: of each job the last attempt."""
        last: dict[str, int] = {}
        for array in arrays:
            for element in array.elements:
                last[element["id"]] = max(element["attempt"], last.get(element["id"], 0))
        left: dict[str, list[int]] = {}
        for array in arrays:
            for index, element in enumerate(array.elements, 1):
                job_id, attempt = element["id"], element["attempt"]
                # what a folder says of an earlier attempt says nothing of this one
                newest = self._spool.last_attempt(job_id) if job_id in folders else 0
                if attempt < max(last[job_id], newest) or (attempt == newest and is_finished(job_id)):
                    continue
                left.setdefault(array.array, []).append(index)
        return left

    def _found(
        self, array: ArrayIntent, indices: Sequence[int], native_id: str | None, deadline: float
    ) -> Iterator[Found]:
        if native_id is None:
            with self._spool.arrays.judging(array.array, max(0.0, deadline - time.monotonic())) as may_judge:
                if not may_judge:
                    log.warning(
                        "being submitted by another process, and left out until recover() is called again:"
                        " array %s",
                        array.array,
                    )
                    return
                native_id = self._judged(array.array)
        if native_id is None:
            yield from (Found(element_intent(array, index), None) for index in indices)
            return
        native_ids = self._backend.element_ids(native_id, indices)
        for index, element_id in zip(indices, native_ids, strict=True):
            yield Found(element_intent(array, index), element_id)

    def _judged(self, name: str) -> str | None:
        """The native id of an array whose submitter is done with it; without one it can run no more."""
        written = self._written(name)
        native_id = self._spool.arrays.read_native_id(name)
        if native_id is not None:
            return native_id
        found = (self._backend.find([written.tag]) or {}).get(written.tag)
        return found or self._sending.withdraw(written)

    def _written(self, name: str) -> WrittenArray:
        return WrittenArray(self._spool, name)

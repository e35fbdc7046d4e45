"""Finds the jobs that were submitted as elements of arrays, and that nobody follows."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import attrs

from jpsi_engine.host import exists
from jpsi_engine.scheduler import Backend, NativeIds, element_intent, warn_of_damage
from jpsi_engine.spool import DAMAGE, UNNAMED, ArrayIntent, Intent, Spool, WrittenArray, array_problem
from jpsi_engine.submission.handoff import Sending

log = logging.getLogger(__name__)

_BUSY = "being submitted by another process, and left out until recover() is called again: array %s"
# Whose locks are held together, of which each takes a descriptor.
_AT_A_TIME = 100


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
        arrays = dict(filter(None, map(self._read, self._spool.arrays.names())))
        left = self._left([array for array, _ in arrays.values()], is_finished, frozenset(folders))
        native_ids = self.settled({name: arrays[name][1] for name in left}, patience)
        found: list[Found] = []
        for name, native_id in native_ids.items():
            found += self._found(arrays[name][0], left[name], native_id)
        return found

    def native_ids_of(self, names: Collection[str]) -> Mapping[str, str | None]:
        """Return what the spool tells of the native ids of arrays; those that cannot be read are left out."""
        found: dict[str, str | None] = {}
        for name in names:
            with _fence(name):
                found[name] = self._native_ids.of_array(name)
        return found

    def settled(self, native_ids: Mapping[str, str | None], patience: float) -> dict[str, str | None]:
        """The native ids of arrays; without one, none of it can run any more.

        Those that are being submitted are left out.

        Args:
            native_ids: what is known of each array, by its name.
            patience: how long, in seconds and in all, to wait for those who are submitting them.

        Raises:
            JpsiError: as `unfinished`.
        """
        unsent = [name for name, native_id in native_ids.items() if native_id is None]
        deadline, judged = time.monotonic() + patience, dict[str, str | None]()
        for start in range(0, len(unsent), _AT_A_TIME):
            judged |= self._judged(unsent[start : start + _AT_A_TIME], deadline)
        return {name: native_id for name, native_id in native_ids.items() if native_id is not None} | judged

    def _read(self, name: str) -> tuple[str, tuple[ArrayIntent, str | None]] | None:
        """An array and its native id, by its name."""
        with _fence(name):
            array = self._spool.arrays.read(name)
            if array is not None:
                return name, (array, self._native_ids.of_array(name))
            # one without the script that its jobs run was never made
            if exists(f"{self._spool.arrays.folder(name)}/run"):
                _warn(name, array_problem(self._spool.root, name) or "is gone")
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
                if attempt < last[job_id]:
                    continue
                try:
                    is_left = job_id not in folders or self._is_left(
                        array.array, job_id, attempt, is_finished
                    )
                except (OSError, *DAMAGE) as e:
                    warn_of_damage(self._spool, job_id, e)
                    continue
                if is_left:
                    left.setdefault(array.array, []).append(index)
        return left

    def _is_left(self, array: str, job_id: str, attempt: int, is_finished: Callable[[str], bool]) -> bool:
        """Whether a job that has a folder is to be told of as an element of this array."""
        newest = self._spool.last_attempt(job_id)
        if attempt != newest:
            # what a folder says of an earlier attempt says nothing of this one
            return attempt > newest
        # two processes that submitted it at the same time have named two arrays; the folder names the first
        place = self._spool.places(job_id).get(attempt)
        return (place is None or place.array == array) and not is_finished(job_id)

    def _tagged(self, names: Sequence[str]) -> dict[str, str]:
        """The native ids of arrays whose submitters died before they could write them down."""
        tags = {self._written(name).tag: name for name in names}
        found = (self._backend.find(list(tags)) if tags else None) or {}
        return {tags[tag]: native_id for tag, native_id in found.items() if tag in tags}

    def _judged(self, names: Sequence[str], deadline: float) -> dict[str, str | None]:
        """The native ids of arrays whose submitters are done with them; without one, none can run any more.

        Those that are being submitted are left out.
        """
        judged: dict[str, str | None] = {}
        with contextlib.ExitStack() as locks:
            unnamed: list[str] = []
            for name in names:
                with _fence(name):
                    left = max(0.0, deadline - time.monotonic())
                    if not locks.enter_context(self._spool.arrays.judging(name, left)):
                        log.warning(_BUSY, name)
                        continue
                    # it may have been sent since
                    native_id = self._spool.arrays.read_native_id(name)
                    # what was revoked never runs, whatever the batch system has of it
                    if native_id is None and (not self._spool.arrays.is_revoked(name) or self._has_run(name)):
                        unnamed.append(name)
                    else:
                        judged[name] = native_id
            found = self._tagged(unnamed)
            for name in unnamed:
                with _fence(name):
                    judged[name] = self._judged_by_tag(name, found.get(name))
        return judged

    def _judged_by_tag(self, name: str, native_id: str | None) -> str | None:
        """Return the native id of an array whose lock is held; without one, none of it can run any more."""
        written = self._written(name)
        if native_id is None:
            return f"{UNNAMED}{name}" if self._has_run(name) else self._sending.withdraw(written)
        if self._sending.is_revoked(written) and not self._has_run(name):
            return None
        with _fence(name):
            self._spool.arrays.note_found(name, native_id)
        return native_id

    def _found(self, array: ArrayIntent, indices: Sequence[int], native_id: str | None) -> Iterator[Found]:
        intents = [element_intent(array, index) for index in indices]
        element_ids = self.native_ids([intent.job_id for intent in intents], indices, native_id)
        for intent, element_id in zip(intents, element_ids, strict=True):
            yield Found(intent, element_id)

    def native_ids(
        self, job_ids: Sequence[str], indices: Sequence[int], native_id: str | None
    ) -> Sequence[str | None]:
        """The native ids of elements of an array of this native id; without one, none can run any more."""
        if native_id is None:
            return [None] * len(indices)
        if native_id.startswith(UNNAMED):
            # that of the array is lost: they are known by what they leave
            return [f"{UNNAMED}{job_id}" for job_id in job_ids]
        return self._backend.element_ids(native_id, indices)

    def _has_run(self, name: str) -> bool:
        """Whether any element has begun, by what it has left, although the claim of the array is lost."""
        array = self._spool.arrays.read(name)
        attempts = {} if array is None else {it["id"]: it["attempt"] for it in array.elements}
        if any(marker.attempt == attempts[marker.job_id] for marker in self._spool.news(attempts.keys())):
            return True
        return any(self._spool.has_run(job_id, attempt) for job_id, attempt in attempts.items())

    def _written(self, name: str) -> WrittenArray:
        return WrittenArray(self._spool, name)


@contextlib.contextmanager
def _fence(array: str) -> Iterator[None]:
    """What is odd about one array says nothing of the others."""
    try:
        yield
    except (OSError, *DAMAGE) as e:
        _warn(array, f"cannot be understood: {e!r}")


def _warn(array: str, problem: str) -> None:
    msg = "the jobs of array %s are left alone: its intent %s; jpsi doctor says what to do"
    log.warning(msg, array, problem)

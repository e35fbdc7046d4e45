"""Maps the jobs of jpsi to their native ids, and native ids to the jobs of jpsi.

It also finds the intents of jobs, and the native ids that a batch system has reused.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

import attrs

from jpsi.plugin import JpsiError
from jpsi_engine.scheduler.backend import Backend, log_failed_query
from jpsi_engine.scheduler.job_view import JobView
from jpsi_engine.spool import DAMAGE, UNNAMED, ArrayIntent, ArrayMember, Intent, Spool, array_tag, tag
from jpsi_engine.verdict import has_exit_marker

log = logging.getLogger(__name__)


class OwnArray(NamedTuple):
    """An array that jpsi submitted."""

    #: The tag that its elements carry in the batch system.
    tag: str
    #: The native ids of its elements.
    native_ids: tuple[str, ...]


@attrs.define(slots=True, eq=False)
class NativeIds:
    """The native ids of the jobs in one spool. Methods may be called from any thread.

    Each folder is read once, not for each query: the native id of an attempt never changes.
    """

    _backend: Backend
    _spool: Spool
    #: Brings what jobs have left in these folders of the spool to this machine; returns False if it may be
    #: missing.
    _refresh: Callable[[Collection[str]], bool]
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _owners: dict[str, str] = attrs.field(factory=dict, init=False)
    _read_jobs: set[str] = attrs.field(factory=set, init=False)

    def for_intent(self, intent: Intent) -> str | None:
        """Return the native id of an attempt, or of its array, as the client or a runner stored it."""
        if intent.place is not None:
            return self.for_array(intent.place.array)
        return intent.native_id or self.claimed_id(intent.job_id, intent.attempt)

    def own_id(self, intent: Intent) -> str | None:
        """Return the native id of an attempt as `for_intent`, but that of an array element for an element."""
        native_id = self.for_intent(intent)
        if native_id is None or intent.place is None or native_id.startswith(UNNAMED):
            return native_id
        return self._backend.element_ids(native_id, [intent.place.index])[0]

    def claimed_id(self, job_id: str, attempt: int) -> str | None:
        """Return the native id that an attempt's runner put into its claim; None if no runner has one."""
        return self._backend.claimed_id(self._spool.claim(job_id, attempt))

    def for_array(self, array: str) -> str | None:
        """Return the native id of an array, as the submitting client or its first element stored it."""
        arrays = self._spool.arrays
        return arrays.read_native_id(array) or self._backend.claimed_id(arrays.claim(array))

    def find_arrays(self, native_id: str) -> list[OwnArray]:
        """Return jpsi's arrays that had this native id, which a batch system may give again.

        Raises:
            OSError: the arrays cannot be listed.
        """
        found = (self._own_array(name, native_id) for name in self._spool.arrays.names())
        return [it for it in found if it is not None]

    def _own_array(self, name: str, native_id: str) -> OwnArray | None:
        """Return an array of jpsi's if it had this native id."""
        try:
            array = self._spool.arrays.read(name) if self.for_array(name) == native_id else None
        except (OSError, *DAMAGE):
            return None  # one damaged folder must not hide the others
        if array is None:
            return None
        indices = range(1, 1 + len(array.elements))
        return OwnArray(array_tag(name), tuple(self._backend.element_ids(native_id, indices)))

    def find_owners(self, native_ids: Collection[str]) -> dict[str, Intent]:
        """Return the last attempts of the jobs of jpsi that have these native ids.

        Raises:
            OSError: the jobs cannot be listed.
        """
        found = self._elements(native_ids)
        for native_id in native_ids:
            intent = found.get(native_id) or self._find_single(native_id)
            if intent is not None:
                found[native_id] = intent
        return found

    def _elements(self, native_ids: Collection[str]) -> dict[str, Intent]:
        """Return the intents of these native ids that belong to elements of jpsi's arrays."""
        wanted: dict[str, set[str]] = {}
        for native_id, array in self._backend.arrays_of(list(native_ids)).items():
            wanted.setdefault(array, set()).add(native_id)
        names = self._spool.arrays.names() if wanted else ()
        return dict(found for name in names for found in self._elements_of(name, wanted))

    def _elements_of(self, name: str, wanted: Mapping[str, Collection[str]]) -> Iterator[tuple[str, Intent]]:
        try:
            native_id = self.for_array(name)
            if native_id is None or native_id not in wanted:
                return
            array = self._spool.arrays.read(name)
        except (OSError, *DAMAGE):
            return  # one damaged folder must not hide the others
        indices = range(1, 1 + (0 if array is None else len(array.elements)))
        for index, element_id in zip(indices, self._backend.element_ids(native_id, indices), strict=True):
            if array is not None and element_id in wanted[native_id]:
                yield element_id, element_intent(array, index)

    def _find_single(self, native_id: str) -> Intent | None:
        """Return the last attempt of the single job (not an array element) that has this native id."""
        with self._lock:
            known = self._owners.get(native_id)
            intent = None if known is None else self._intent_with_id(known, native_id)
            if intent is not None:
                return intent
            unread = (job_id for job_id in self._spool.job_ids() if job_id not in self._read_jobs)
            return next(filter(None, (self._intent_with_id(job_id, native_id) for job_id in unread)), None)

    def _intent_with_id(self, job_id: str, native_id: str) -> Intent | None:
        """Return the last attempt of a job if it has this native id."""
        try:
            place = self._spool.last_array_member(job_id)
            if place is not None:
                # the element's native id stays that array's, and is found by way of the array
                if self.for_array(place.array) is not None:
                    self._read_jobs.add(job_id)
                return None
            intent = self._spool.last_intent(job_id)
            if intent is None:
                return None
            found = self.for_intent(intent)
        except (OSError, *DAMAGE):
            return None  # one damaged folder must not hide the others
        if intent.native_id is not None:
            self._owners[intent.native_id] = job_id
            self._read_jobs.add(job_id)
        return intent if found == native_id else None

    def correct_ids(self, jobs: Collection[JobView]) -> dict[str, str]:
        """Return, by job id, the right native ids of jobs that the batch system does not know or calls ended.

        A submit command that was retried may have made several jobs; the claim names the one that runs. Jobs
        whose native id is unknown are found by their tags, with one query for all. Jobs whose id cannot be
        found out now are left out.
        """
        known: dict[str, str] = {}
        unnamed: list[JobView] = []
        arrays = {job.place.array for job in jobs if job.place is not None}
        folders = {f"jobs/{job.spool_id}" for job in jobs} | {f"arrays/{array}" for array in arrays}
        if not self._refresh(folders):
            return {}
        claims = self._array_claims(arrays)
        for job in jobs:
            try:
                if job.place is None:
                    claimed_id = self.claimed_id(job.spool_id, job.attempt)
                else:
                    claimed_id = self._of_element(job, claims[job.place.array])
            except OSError:
                log.warning("job %s: its folder cannot be read", job.job_id, exc_info=True)
                continue
            except KeyError:
                continue  # an array that cannot be read now
            if claimed_id is not None and not claimed_id.startswith(UNNAMED):
                known[job.job_id] = claimed_id
            elif job.native_id.startswith(UNNAMED):
                unnamed.append(job)
            else:
                known[job.job_id] = job.native_id
        return known | self._find_by_tags(unnamed)

    def _array_claims(self, arrays: Collection[str]) -> dict[str, str | None]:
        """Return the native id of each array from its claim; arrays that cannot be read now are left out."""
        found: dict[str, str | None] = {}
        for array in arrays:
            try:
                found[array] = self._backend.claimed_id(self._spool.arrays.claim(array))
            except OSError:
                log.warning("array %s: its folder cannot be read", array, exc_info=True)
        return found

    def _of_element(self, job: JobView, native_id: str | None) -> str | None:
        """Return the native id of a job whose array has this native id; for a single job, the id itself."""
        if native_id is None or job.place is None:
            return native_id
        return self._backend.element_ids(native_id, [job.place.index])[0]

    def _find_by_tags(self, unnamed: Collection[JobView]) -> dict[str, str]:
        """Look jobs up by their tags; return the present id for each job that is not found."""
        tags = {job.tag for job in unnamed if job.tag is not None}
        try:
            found = (self._backend.find_by_tags(sorted(tags)) if tags else None) or {}
        except JpsiError as e:
            log_failed_query(self._backend.display_name, e)
            return {}
        ids = {job: self._of_element(job, found.get(job.tag or "")) for job in unnamed}
        return {job.job_id: native_id or job.native_id for job, native_id in ids.items()}


def intent_tag(intent: Intent) -> str:
    """Return the tag that an intent's job carries in the batch system: for an element, its array's tag."""
    if intent.place is not None:
        return array_tag(intent.place.array)
    return tag(intent.job_id, intent.attempt)


def element_intent(array: ArrayIntent, index: int) -> Intent:
    """Return the intent of one element of an array."""
    content = array.content(index)
    return Intent(content["id"], content["attempt"], content, None, ArrayMember(array.array, index))


def find_intents(spool: Spool, job_ids: Collection[str]) -> list[Intent]:
    """Return the last attempts of these jobs; jobs without a readable intent in the spool are left out.

    Raises:
        OSError: the arrays cannot be listed.
    """
    found = {}
    for job_id in job_ids:
        try:
            intent = spool.last_intent(job_id)
        except (OSError, *DAMAGE) as e:
            warn_of_damage(spool, job_id, e)
            continue
        if intent is not None:
            found[job_id] = intent
        else:
            warn_of_damage(spool, job_id)
    missing = frozenset(job_ids).difference(found)
    if missing:
        found |= {it.job_id: it for it in _elements(spool, missing)}
    return list(found.values())


def warn_of_damage(spool: Spool, job_id: str, error: Exception | None = None) -> None:
    """Log one warning about a job whose files are damaged, or could not be read."""
    try:
        problem = spool.damage(job_id)
    except OSError as e:
        problem = str(e)
    problem = problem or (None if error is None else f"its files cannot be parsed: {error!r}")
    if problem is not None:
        log.warning(
            "job %s is damaged and left alone, in %s: %s; jpsi doctor says what to do",
            job_id,
            spool.folder(job_id),
            problem,
        )


def _elements(spool: Spool, job_ids: Collection[str]) -> Iterator[Intent]:
    """Yield the intents of array elements that have no folder, as they have not begun yet."""
    for name in spool.arrays.all_names():
        try:
            array = spool.arrays.read(name)
        except (OSError, *DAMAGE):
            continue  # `jpsi doctor` names it; one damaged folder must not hide the others
        for index, element in enumerate(() if array is None else array.elements, 1):
            if array is not None and element["id"] in job_ids:
                yield element_intent(array, index)


def reused_native_ids(backend: Backend, spool: Spool, owners: Mapping[str, Intent]) -> frozenset[str]:
    """Return the native ids that now belong to other jobs in the batch system than their owners in the spool.

    Only an owner that has left an exit marker can have lost its id, and only then is the batch system
    queried: does it have an unfinished job with that id, and does that job lack the owner's tag? A job with
    the tag is the owner, which is being cleaned up or runs again. In doubt, for example if the batch system
    does not answer, the id is still the owner's.

    Args:
        backend: the batch system.
        spool: the spool that holds the owners.
        owners: the last attempts of jobs, by native id.

    Raises:
        OSError: the spool cannot be read.
    """
    job_ids = {owner.job_id for owner in owners.values()}
    # the markers stay in place for the processes that follow these jobs
    ended_ids = {marker.job_id for marker in spool.new_markers(job_ids) if has_exit_marker([marker])}
    ended = {
        native_id: owner
        for native_id, owner in owners.items()
        if owner.job_id in ended_ids or spool.is_final(owner.job_id, has_exit_marker)
    }
    if not ended:
        return frozenset()
    try:
        # the tags come first: a job that the batch system drops after that is not in the states
        reused = _ids_without_tag(backend, ended)
        states = backend.query_states(reused) if reused else {}
    except JpsiError as e:
        log.info("%s did not say whether it has reused native ids: %s", backend.display_name, e)
        return frozenset()
    unfinished = {it for it, seen in states.items() if seen.state is not None and not seen.final}
    return frozenset(reused).intersection(unfinished)


def _ids_without_tag(backend: Backend, owners: Mapping[str, Intent]) -> list[str]:
    """Return the native ids whose jobs do not carry the owner's tag; none if tags cannot be queried."""
    tags = {native_id: intent_tag(owner) for native_id, owner in owners.items()}
    found = backend.find_by_tags(sorted(set(tags.values())))
    if found is None:
        return []
    arrays = backend.arrays_of(list(owners))
    return [it for it, carried in tags.items() if found.get(carried) not in {it, arrays.get(it, it)}]

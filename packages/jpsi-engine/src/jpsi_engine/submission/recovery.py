"""Finds the jobs on disk that this process does not follow, for recover() and recall().

It settles the jobs and arrays whose submitter died: it finds them by their tags, or makes sure that they
never run.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial

import attrs

from jpsi.plugin import JpsiError
from jpsi.plugin.engine import Recovered
from jpsi_engine.host import convert_os_errors, exists
from jpsi_engine.monitor import JobMonitor
from jpsi_engine.scheduler import (
    Backend,
    JobView,
    NativeIds,
    element_intent,
    find_intents,
    intent_tag,
    warn_of_damage,
)
from jpsi_engine.spool import (
    DAMAGE,
    UNNAMED,
    UNREADABLE,
    ArrayAttempt,
    ArrayIntent,
    Intent,
    JobAttempt,
    JobIntent,
    Spool,
    array_problem,
    decode_request,
    encode_status,
    is_revoked,
)
from jpsi_engine.submission.handoff import Handoff
from jpsi_engine.submission.run_host import RunHost
from jpsi_engine.verdict import never_ran_status

log = logging.getLogger(__name__)

# How long to wait in all for submissions that other processes have under way. An orphaned submit command
# holds the lock until it ends, which may be never.
_JUDGE_SECONDS = 10.0
# The most attempts whose locks are held together; each lock takes a descriptor.
_BATCH_SIZE = 100


@attrs.frozen(slots=True)
class Recovery:
    """The jobs in one spool that may be recovered. Methods may be called from any thread."""

    _backend: Backend
    _run_host: RunHost
    #: Withdraws attempts that were never submitted.
    _handoff: Handoff
    _native_ids: NativeIds
    #: The jobs that this process follows.
    _monitor: JobMonitor

    @property
    def _spool(self) -> Spool:
        return self._run_host.spool

    @property
    def _unreadable(self) -> str:
        return f"the jobs in {self._spool.root} cannot be read"

    def recover(self) -> list[Recovered]:
        """Find the jobs on disk that are not final; see `jpsi.plugin.engine.Engine`."""
        mirror_error = self._import_other_jobs()
        with convert_os_errors(self._unreadable):
            job_ids = self._spool.job_ids()
            unseen = self._spool.take_markers_of_lost_attempts(job_ids)
        intents = self._open_intents(job_ids, unseen)
        unnamed = [it.job_id for it in intents if self._native_ids.for_intent(it) is None]
        if unnamed and self._run_host.refresh([f"jobs/{job_id}" for job_id in unnamed]):
            intents = [it for it in intents if it.job_id not in unnamed]
            intents += self._open_intents(unnamed, unseen)
        with convert_os_errors(self._unreadable):
            intents += self._unfinished_elements(frozenset(job_ids))
            # this process may have begun to follow some of them meanwhile
            found = [self._without_revoked(it) for it in self._find(intents)]
            found = [it for it in found if not self._is_followed(it.job_id)]
        readable = list(self._decode(found))
        jobs = {(intent.job_id, intent.attempt, intent.place): job for intent, job in readable}
        chosen = list(self._without_ended(_deduplicate(intent for intent, _ in readable)))
        recovered = [jobs[it.job_id, it.attempt, it.place] for it in chosen]
        if mirror_error is not None:
            if not recovered:
                raise mirror_error
            msg = "%s: jobs of other machines are left out until recover() is called again: %s"
            log.warning(msg, self._backend.display_name, mirror_error)
        # Only now, so that after an earlier error the next call still finds all of them.
        self._register(chosen)
        return recovered

    def recall(self, job_ids: Collection[str]) -> list[Recovered]:
        """Find jobs on disk; see `jpsi.plugin.engine.Engine`."""
        with convert_os_errors(self._unreadable):
            unknown = [it for it in job_ids if not self._is_followed(it)]
            self._spool.take_markers_of_lost_attempts(unknown)
            intents = find_intents(self._spool, unknown)
            found = [self._without_revoked(it) for it in self._find(intents)]
        readable = list(self._decode(found))
        self._register(intent for intent, _ in readable)
        return [it for _, it in readable]

    def _without_revoked(self, intent: Intent) -> Intent:
        """Return the attempt before one that never ran, if that one was to follow it; otherwise the same."""
        retried = self._spool.last_retried(intent.job_id, intent.attempt)
        if intent.native_id is not None or retried is None:
            return intent
        ended = self._spool.find_intent(intent.job_id, retried[0])
        if ended is None:
            return intent
        return attrs.evolve(ended, native_id=self._native_ids.own_id(ended) or f"{UNNAMED}{ended.job_id}")

    def _decode(self, found: Iterable[Intent]) -> Iterator[tuple[Intent, Recovered]]:
        """Yield the intents whose content can be read, with the jobs in them."""
        for intent in found:
            with self._fence(partial(warn_of_damage, self._spool, intent.job_id)):
                yield (
                    intent,
                    Recovered(
                        job_id=intent.job_id,
                        attempt=intent.attempt,
                        spec=decode_request(self._spool.folder(intent.job_id), intent.content),
                        native_id=intent.native_id,
                        time=datetime.fromisoformat(intent.content["time"]).astimezone(UTC),
                    ),
                )

    def _register(self, found: Iterable[Intent]) -> None:
        for it in found:
            if it.native_id is not None:
                job = JobView(it.job_id, it.job_id, it.attempt, it.native_id, place=it.place)
                self._monitor.add_found(job)

    def _import_other_jobs(self) -> JpsiError | None:
        """Mirror the jobs that other machines have submitted; return the error if that fails."""
        try:
            with convert_os_errors(self._unreadable):
                self._run_host.import_other_jobs()
        except JpsiError as e:
            return e
        return None

    # --------------------------------------------------------------------------- what is not followed yet

    def _is_followed(self, job_id: str) -> bool:
        """Return True if this process follows a job; after an interrupted submission it does not."""
        job = self._monitor.get(job_id)
        return job is not None and job.is_followed

    def _is_known(self, job_id: str) -> bool:
        return self._is_followed(job_id) or self._spool.is_final(job_id, self._backend.is_conclusive)

    def _open_intents(self, job_ids: Iterable[str], unseen: Collection[str]) -> list[Intent]:
        """Return the last attempts of jobs that are not final and that this process does not follow.

        Of array elements, it returns those between two attempts. The jobs in `unseen` are returned even if
        they are final, since no client has seen their end yet.
        """
        intents, arrays = [], frozenset(self._spool.arrays.names())
        for job_id in job_ids:
            with self._fence(partial(warn_of_damage, self._spool, job_id)):
                is_known = self._is_followed(job_id) if job_id in unseen else self._is_known(job_id)
                if is_known:
                    continue
                place = self._spool.last_array_member(job_id)
                # the array of an attempt that never ran may have been given up
                is_open = place is None or place.array in arrays
                ended = None if is_open else self._spool.pending_retry(job_id)
                if place is not None and ended is None:
                    continue
                intent = (
                    self._spool.last_intent(job_id)
                    if ended is None
                    else self._spool.find_intent(job_id, ended[0])
                )
                if intent is None:
                    warn_of_damage(self._spool, job_id)
                else:
                    intents.append(intent)
        return intents

    def _unfinished_elements(self, folders: frozenset[str]) -> list[Intent]:
        """Return the elements that are not final, and that were not submitted again as single jobs.

        Args:
            folders: the ids of the jobs that have a folder.
        """
        arrays = [it for it in map(self._read_array, self._spool.arrays.names()) if it is not None]
        # of each job only the last attempt counts
        last: dict[str, int] = {}
        for array in arrays:
            for element in array.elements:
                last[element["id"]] = max(element["attempt"], last.get(element["id"], 0))
        intents = []
        for array in arrays:
            for index, element in enumerate(array.elements, 1):
                job_id, attempt = element["id"], element["attempt"]
                with self._fence(partial(warn_of_damage, self._spool, job_id)):
                    if attempt == last[job_id] and (
                        not self._is_followed(job_id)
                        if job_id not in folders
                        else self._is_unfinished(array.array, job_id, attempt)
                    ):
                        intents.append(element_intent(array, index))
        return intents

    def _read_array(self, name: str) -> ArrayIntent | None:
        """Return an array; None if it is unreadable or was never made."""
        with self._fence(partial(_warn_of_array, name)):
            array = self._spool.arrays.read(name)
            # an array without the script that its jobs run was never complete, so it was never submitted
            if array is None and exists(f"{self._spool.arrays.folder(name)}/run"):
                _warn_of_array(name, array_problem(self._spool.root, name) or "is gone")
            return array
        return None

    def _is_unfinished(self, array: str, job_id: str, attempt: int) -> bool:
        """Return True if a job that has a folder is to be found as an element of this array."""
        newest = self._spool.last_attempt(job_id)
        if attempt != newest:
            # the folder's files of an earlier attempt say nothing of this one
            return attempt > newest
        # If two processes submitted it at the same time, it is in two arrays; the folder names the first.
        place = self._spool.places(job_id).get(attempt)
        is_first = (
            place is None
            or place.array == array
            or self._spool.arrays.is_of_another_job(place, job_id, attempt)
        )
        return is_first and not self._is_known(job_id)

    def _without_ended(self, found: Iterable[Intent]) -> Iterator[Intent]:
        """Yield the jobs that were neither cancelled before they began nor given up."""
        for it in found:
            with self._fence(partial(warn_of_damage, self._spool, it.job_id)):
                if it.native_id is not None or not (
                    self._was_stopped(it.job_id, it.attempt) or self._spool.is_given_up(it.job_id, it.attempt)
                ):
                    yield it

    def _was_stopped(self, job_id: str, attempt: int) -> bool:
        """Return True if a job was cancelled before it began, and record that as its end."""
        if self._spool.read_stop(job_id, attempt) is None:
            return False
        self._spool.finish(job_id, attempt, encode_status(never_ran_status()))
        return True

    # ------------------------------------------------------------------------------------ native ids

    def _find(self, intents: Iterable[Intent]) -> list[Intent]:
        """Return attempts with their native ids; None for one that can never run.

        Attempts that other processes are submitting are left out.
        """
        groups: dict[str, list[Intent]] = {}
        for intent in intents:
            groups.setdefault(intent_tag(intent), []).append(intent)
        native_ids: dict[str, str | None] = {}
        lost = []
        for tag, group in groups.items():
            one = self._attempt(group[0])
            with self._attempt_fence(one):
                known = self._native_ids.for_intent(group[0])
                # the elements of an array whose claim is unreadable are followed by their markers
                if known is None or (known == UNREADABLE and group[0].place is None):
                    lost.append(one)
                else:
                    native_ids[tag] = known
        native_ids |= self._settle(lost)
        return [
            attrs.evolve(intent, native_id=native_id)
            for tag, group in groups.items()
            if tag in native_ids
            for intent, native_id in zip(group, self._spell(group, native_ids[tag]), strict=True)
        ]

    def _spell(self, group: Sequence[Intent], native_id: str | None) -> Sequence[str | None]:
        """Return the native ids of a single job, or of elements of one array."""
        indices = [it.place.index for it in group if it.place is not None]
        if native_id is None or not indices:
            return [native_id] * len(group)
        if native_id.startswith(UNNAMED):
            # the native id of the array is lost: its elements are followed by their markers
            return [f"{UNNAMED}{it.job_id}" for it in group]
        return self._backend.element_ids(native_id, indices)

    def _attempt(self, intent: Intent) -> JobAttempt:
        """Return the attempt of an intent: of the job, or the array that it is in."""
        if intent.place is None:
            return JobIntent(self._spool, intent.job_id, intent.attempt)
        return ArrayAttempt(self._spool, intent.place.array)

    def _settle(self, lost: Iterable[JobAttempt]) -> dict[str, str | None]:
        """Return, by tag, the native ids of attempts; None for one that can never run.

        Raises:
            JpsiError: the batch system did not answer.
        """
        begun, left, unnamed = list[JobAttempt](), list[JobAttempt](), list[JobAttempt]()
        for it in lost:
            with self._attempt_fence(it):
                has_run = it.has_run()
                if has_run or not is_revoked(it.claim()):
                    unnamed.append(it)
                (begun if has_run else left).append(it)
        found = self._find_by_tags(unnamed)
        for it in begun:
            with self._attempt_fence(it):
                self._record_found(it, found.get(it.tag))
        # the monitor looks for a job without a native id by its tag until its end is known
        settled: dict[str, str | None] = {it.tag: found.get(it.tag) or f"{UNNAMED}{it.id}" for it in begun}
        # At first without waiting, so that a busy job does not delay the others.
        for seconds in (0.0, _JUDGE_SECONDS):
            deadline, waiting = time.monotonic() + seconds, left
            left = []
            for start in range(0, len(waiting), _BATCH_SIZE):
                left += self._settle_batch(waiting[start : start + _BATCH_SIZE], found, deadline, settled)
        if left:
            names = ", ".join(it.name for it in left)
            msg = "being submitted or recovered by other processes, and left out until a later recover(): %s"
            log.warning(msg, names)
        return settled

    def _record_found(self, begun: JobAttempt, native_id: str | None) -> None:
        """Record the native id of an array that has begun, unless another process has the array's lock."""
        if native_id is None or not isinstance(begun, ArrayAttempt):
            return
        with begun.hold_lock(0.0) as is_held:
            if is_held and begun.read_native_id() is None:
                _record_native_id(begun, native_id)

    def _settle_batch(
        self,
        lost: Iterable[JobAttempt],
        found: Mapping[str, str],
        deadline: float,
        settled: dict[str, str | None],
    ) -> list[JobAttempt]:
        """Settle attempts that have not begun; return those that other processes are submitting.

        The batch system has shown the native ids in `found`, by tag. Those attempts are settled at once, so
        that locks are held for as short a time as possible: a job that starts meanwhile waits for its own.
        """
        busy = list[JobAttempt]()
        with contextlib.ExitStack() as locks:
            unnamed = list[tuple[JobAttempt, contextlib.ExitStack]]()
            for it in lost:
                tag, lock = it.tag, locks.enter_context(contextlib.ExitStack())
                with self._attempt_fence(it):
                    if not lock.enter_context(it.hold_lock(max(0.0, deadline - time.monotonic()))):
                        busy.append(it)
                        continue
                    # it may have been submitted meanwhile
                    native_id = it.read_native_id()
                    if native_id is not None or is_revoked(it.claim()):
                        settled[tag] = native_id
                    elif tag in found:
                        settled[tag] = self._resolve(it, found[tag])
                    else:
                        unnamed.append((it, lock))
                        continue
                lock.close()
            late = self._find_by_tags([it for it, _ in unnamed])
            for it, lock in unnamed:
                with lock, self._attempt_fence(it):
                    settled[it.tag] = self._resolve(it, late.get(it.tag))
        return busy

    def _resolve(self, lost: JobAttempt, native_id: str | None) -> str | None:
        """Return the native id of an attempt whose lock is held; None if it can never run."""
        # it may have begun meanwhile, with a claim that could not be written
        if lost.has_run():
            native_id = native_id or self._handoff.claimed_native_id(lost) or f"{UNNAMED}{lost.id}"
        elif native_id is None:
            return self._handoff.withdraw(lost)
        elif self._handoff.is_revoked(lost):
            return None
        _record_native_id(lost, native_id)
        return native_id

    def _find_by_tags(self, lost: Sequence[JobAttempt]) -> dict[str, str]:
        """Ask the batch system, by tag, for the native ids that a submitter died before recording."""
        found = self._backend.find_by_tags([it.tag for it in lost]) if lost else None
        return dict(found or {})

    def _attempt_fence(self, attempt: JobAttempt) -> AbstractContextManager[None]:
        """See `_fence`."""
        if isinstance(attempt, ArrayAttempt):
            return self._fence(partial(_warn_of_array, attempt.id))
        return self._fence(partial(warn_of_damage, self._spool, attempt.id))

    @staticmethod
    @contextlib.contextmanager
    def _fence(warn: Callable[[Exception], None]) -> Iterator[None]:
        """Log an error about the files of one job or array, so that the others are still found."""
        try:
            yield
        except (OSError, *DAMAGE) as e:
            warn(e)


def _record_native_id(lost: JobAttempt, native_id: str) -> None:
    """Record the native id of an attempt whose lock is held."""
    if native_id.startswith(UNNAMED):
        return
    try:
        lost.record_native_id(native_id)
    except OSError:
        # the next process that recovers it finds it by its tag, too
        msg = "%s: its native id %s could not be recorded"
        log.warning(msg, lost.name, native_id, exc_info=True)


def _warn_of_array(name: str, problem: Exception | str) -> None:
    problem = problem if isinstance(problem, str) else f"cannot be parsed: {problem!r}"
    msg = "the jobs of array %s are left alone: its intent %s; jpsi doctor says what to do"
    log.warning(msg, name, problem)


def _deduplicate(found: Iterable[Intent]) -> list[Intent]:
    """Return one entry per job: the one that the batch system has, or else the last attempt.

    A job may occur twice, in its folder and in an array, if two processes submitted it at the same time.
    """
    chosen: dict[str, Intent] = {}
    for it in found:
        known = chosen.get(it.job_id)
        if known is None or _rank(it) > _rank(known):
            chosen[it.job_id] = it
    return list(chosen.values())


def _rank(it: Intent) -> tuple[bool, int]:
    return it.native_id is not None, it.attempt

"""Asks how far the jobs have come that a job is to wait for, before the batch system is told of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from jpsi.plugin import Dependency, InvalidJobException, JobSpec, JobState, JpsiError, SubmitException
from jpsi.plugin.engine import decode_status, dependencies, is_own
from jpsi_engine.monitor import Tracking
from jpsi_engine.scheduler import Backend, NativeIds, given_anew, intent_tag
from jpsi_engine.spool import Intent, Spool
from jpsi_engine.submission.dependencies import weigh
from jpsi_engine.verdict import Facts, judge

_SUBJECT = "the job"


class _Attempt(NamedTuple):
    """An attempt of a job of jpsi's, and what the batch system carries for it."""

    job_id: str
    number: int
    tag: str | None


class Predecessors:
    """The jobs that others of one executor wait for.

    Args:
        backend: whose jobs they are.
        spool: where those of jpsi's are.
        native_ids: tells which they are.
        shortest: how long what was said of a job that has ended is believed, in seconds.
    """

    def __init__(self, backend: Backend, spool: Spool, native_ids: NativeIds, shortest: float) -> None:
        self._backend = backend
        self._spool = spool
        self._native_ids = native_ids
        self._shortest = shortest
        # How jobs ended that the queue has forgotten, and when the accounting said so.
        self._accounted: dict[str, tuple[float, JobState]] = {}
        # When native ids were those of the jobs that had them first.
        self._kept: dict[str, float] = {}

    def still_open(self, spec: JobSpec, tracking: Tracking) -> tuple[Dependency, ...]:
        """The dependencies of which the batch system must be told, since the jobs have not ended.

        Args:
            spec: a valid spec.
            tracking: follows the jobs that were submitted here.

        A job that ends and is forgotten between the answer that is relied upon and the submission would be
        taken for one that ended as it should; batch systems remember jobs for longer than that takes.

        Raises:
            InvalidJobException: a job has ended otherwise, or nobody knows it.
            SubmitException: it cannot be told now whether a job has ended.
            OSError: the spool cannot be read.
        """
        wanted = [Dependency(self._backend.spelled(it.native_id or ""), it.kind) for it in dependencies(spec)]
        if not wanted:
            return ()
        native_ids = sorted({it.native_id for it in wanted if it.native_id is not None})
        weighed = weigh(wanted, self._known(native_ids, tracking))
        if weighed.never:
            raise InvalidJobException.of(_SUBJECT, list(dict.fromkeys(weighed.never)))
        if weighed.unclear:
            names = ", ".join(weighed.unclear)
            msg = f"attributes.after: {self._backend.place} does not tell now whether {names} has ended"
            raise SubmitException(msg, transient=True)
        return weighed.open

    def _known(self, native_ids: Sequence[str], tracking: Tracking) -> dict[str, JobState | None]:
        """The states of jobs as spool, queue or accounting know them, the first that does."""
        with contextlib.suppress(JpsiError):
            # which exit codes are final; without that, every failure may be run again
            self._backend.probe()
        own = self._own(native_ids, tracking)
        ends = {native_id: self._end_on_disk(it.job_id, it.number) for native_id, it in own.items()}
        known: dict[str, JobState | None] = {name: end for name, end in ends.items() if end is not None}
        tags = {it: own[it].tag if it in own else None for it in native_ids if it not in known}
        known |= tracking.standing(tags, time.monotonic, time.sleep)
        missing = {native_id: tag for native_id, tag in tags.items() if native_id not in known}
        # What the queue has forgotten is over, even if the accounting has not heard of it.
        return dict.fromkeys(own) | known | self._ended(missing)

    def _own(self, native_ids: Sequence[str], tracking: Tracking) -> dict[str, _Attempt]:
        """Which attempt of which job of jpsi's has a native id; what it has left is in its folder then."""
        now = time.monotonic()
        followed = {it: job for it in native_ids if (job := tracking.known_as(it, now)) is not None}
        owners = {
            it: intent
            for it in native_ids
            if it not in followed and (intent := self._native_ids.owner(it)) is not None
        }
        if owners:
            others = self._given_anew(owners, now)
            owners = {it: intent for it, intent in owners.items() if it not in others}
            self._spool.collect({intent.job_id for intent in owners.values()})
        own = {
            it: _Attempt(job.spool_id, job.attempt, job.tag) for it, job in followed.items() if job.has_runner
        }
        return own | {
            it: _Attempt(intent.job_id, intent.attempt, intent_tag(intent)) for it, intent in owners.items()
        }

    def _given_anew(self, owners: Mapping[str, Intent], now: float) -> frozenset[str]:
        """Those of these native ids that the batch system has given to other jobs."""
        doubtful = {
            native_id: owner
            for native_id, owner in owners.items()
            if now - self._kept.get(native_id, float("-inf")) >= self._shortest
        }
        others = given_anew(self._backend, self._spool, doubtful)
        self._kept.update(dict.fromkeys(doubtful.keys() - others, now))
        return others

    def _ended(self, tags: Mapping[str, str | None]) -> dict[str, JobState | None]:
        """What the accounting says of jobs that the queue has forgotten, or has said only just now."""
        native_ids = tags.keys()
        now = time.monotonic()
        known: dict[str, JobState | None] = {}
        for native_id in native_ids:
            then, state = self._accounted.get(native_id, (float("-inf"), None))
            if now - then < self._shortest:
                known[native_id] = state
        left = [native_id for native_id in native_ids if native_id not in known]
        if left:
            for native_id, seen in (self._backend.finished(left) or {}).items():
                if not is_own(seen, tags[native_id]):
                    continue
                known[native_id] = seen.state if seen.final else None
                if seen.state is not None and seen.final:
                    self._accounted[native_id] = now, seen.state
        return known

    def _end_on_disk(self, job_id: str, attempt: int) -> JobState | None:
        """How a job of jpsi's ended, if what is on disk says so."""
        content = self._spool.read_final(job_id, attempt)
        if content is not None:
            return decode_status(content).state
        facts = Facts(
            system=self._backend.name,
            now=datetime.now(UTC),
            markers=[marker for marker in self._spool.consumed(job_id) if marker.attempt == attempt],
            requeue_exit_codes=self._backend.requeue_exit_codes,
        )
        status = judge(facts)
        return status.state if status is not None and status.final else None

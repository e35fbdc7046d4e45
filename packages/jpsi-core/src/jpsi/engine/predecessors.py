"""Asks how far the jobs have come that a job is to wait for, before the batch system is told of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from jpsi.contract.asked import dependencies
from jpsi.engine.backend import Backend
from jpsi.engine.dependencies import weigh
from jpsi.engine.native_ids import NativeIds
from jpsi.engine.spool import Spool
from jpsi.engine.tracking import Tracking
from jpsi.engine.verdict import Facts, judge
from jpsi.model.dependencies import Dependency
from jpsi.model.errors import InvalidJobException, JpsiError, SubmitException
from jpsi.model.plain import decode_status
from jpsi.model.spec import JobSpec
from jpsi.model.states import JobState

_SUBJECT = "the job"


class Predecessors:
    """The jobs that others of one executor wait for.

    Args:
        backend: whose jobs they are.
        spool: where those of jpsi's are.
        native_ids: tells which they are.
        shortest: how long what the accounting said is believed, in seconds.
    """

    def __init__(self, backend: Backend, spool: Spool, native_ids: NativeIds, shortest: float) -> None:
        self._backend = backend
        self._spool = spool
        self._native_ids = native_ids
        self._shortest = shortest
        # How jobs ended that the queue has forgotten, and when the accounting said so.
        self._accounted: dict[str, tuple[float, JobState]] = {}

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
            msg = f"attributes.after: {self._backend.name} does not tell now whether {names} has ended"
            raise SubmitException(msg, transient=True)
        return weighed.open

    def _known(self, native_ids: Sequence[str], tracking: Tracking) -> dict[str, JobState | None]:
        """The states of jobs as spool, queue or accounting know them, the first that does."""
        with contextlib.suppress(JpsiError):
            # which exit codes are final; without that, every failure may be run again
            self._backend.probe()
        own = {it: attempt for it in native_ids if (attempt := self._attempt(it, tracking)) is not None}
        ends = {native_id: self._end_on_disk(*attempt) for native_id, attempt in own.items()}
        known: dict[str, JobState | None] = {name: end for name, end in ends.items() if end is not None}
        left = [native_id for native_id in native_ids if native_id not in known]
        known |= tracking.standing(left, time.monotonic, time.sleep)
        missing = [native_id for native_id in left if native_id not in known]
        # What the queue has forgotten is over, even if the accounting has not heard of it.
        return dict.fromkeys(own) | known | self._ended(missing)

    def _attempt(self, native_id: str, tracking: Tracking) -> tuple[str, int] | None:
        """Which attempt of which job of jpsi's has this native id; what it has left is in its folder then."""
        job = tracking.known_as(native_id, time.monotonic())
        if job is not None:
            return (job.spool_id, job.attempt) if job.has_runner else None
        intent = self._native_ids.owner(native_id)
        if intent is None:
            return None
        self._spool.collect([intent.job_id])
        return intent.job_id, intent.attempt

    def _ended(self, native_ids: Sequence[str]) -> dict[str, JobState | None]:
        """What the accounting says of jobs that the queue has forgotten, or has said only just now."""
        now = time.monotonic()
        known: dict[str, JobState | None] = {}
        for native_id in native_ids:
            then, state = self._accounted.get(native_id, (float("-inf"), None))
            if now - then < self._shortest:
                known[native_id] = state
        left = [native_id for native_id in native_ids if native_id not in known]
        if left:
            for native_id, seen in (self._backend.finished(left) or {}).items():
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

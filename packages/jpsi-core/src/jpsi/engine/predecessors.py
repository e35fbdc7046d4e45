"""Asks how far the jobs have come that a job is to wait for, before the batch system is told of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from jpsi.contract.asked import dependencies
from jpsi.engine.backend import Backend
from jpsi.engine.dependencies import weigh
from jpsi.engine.spool import Intent, Spool
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
        own: finds the intent of the job of jpsi's that has a native id.
        is_followed: whether a native id is that of a job which is followed here, and so is not final.
    """

    def __init__(
        self,
        backend: Backend,
        spool: Spool,
        own: Callable[[str], Intent | None],
        is_followed: Callable[[str], bool],
    ) -> None:
        self._backend = backend
        self._spool = spool
        self._own = own
        self._is_followed = is_followed

    def still_open(self, spec: JobSpec) -> tuple[Dependency, ...]:
        """The dependencies of which the batch system must be told, since the jobs have not ended.

        A job that ends and is forgotten between this question and the submission would be taken for one that
        ended as it should; batch systems remember jobs for longer than that takes.

        Raises:
            InvalidJobException: a job has ended otherwise, or nobody knows it.
            SubmitException: it cannot be told now whether a job has ended.
            OSError: the spool cannot be read.
        """
        wanted = [Dependency(self._backend.spelled(it.native_id or ""), it.kind) for it in dependencies(spec)]
        if not wanted:
            return ()
        native_ids = sorted({it.native_id for it in wanted if it.native_id is not None})
        weighed = weigh(wanted, self._known(native_ids))
        if weighed.never:
            raise InvalidJobException.of(_SUBJECT, list(dict.fromkeys(weighed.never)))
        if weighed.unclear:
            names = ", ".join(weighed.unclear)
            msg = f"attributes.after: {self._backend.name} does not tell now whether {names} has ended"
            raise SubmitException(msg, transient=True)
        return weighed.open

    def _known(self, native_ids: Sequence[str]) -> dict[str, JobState | None]:
        """The states of jobs as queue, accounting or spool know them, the first that does."""
        with contextlib.suppress(JpsiError):
            # which exit codes are final; without that, every failure may be run again
            self._backend.probe()
        known = {name: seen.state for name, seen in self._backend.states(native_ids).items()}
        missing = [native_id for native_id in native_ids if native_id not in known]
        if missing:
            # What the queue has forgotten is over, even if the accounting has not heard of it.
            ended = (self._backend.finished(missing) or {}).items()
            known |= {name: seen.state if seen.final else None for name, seen in ended}
        for native_id in native_ids:
            state = known.get(native_id)
            # One that is followed has not ended; any other may have said so before the queue does.
            if state is not None and (state.final or self._is_followed(native_id)):
                continue
            own = self._own(native_id)
            if own is not None:
                known[native_id] = self._end_on_disk(own) or state
        return known

    def _end_on_disk(self, intent: Intent) -> JobState | None:
        """How a job of jpsi's ended, if what is on disk says so."""
        job_id, attempt = intent.job_id, intent.attempt
        self._spool.collect([job_id])
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

"""Leases executions to dispatchers, so that only one of them runs an execution.

A dispatcher renews its leases. If it dies, they expire, and another dispatcher takes its executions over; on
the same machine at once, as the name of the ended process shows.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, exists

from .. import store
from ..model import UNWANTED, Execution, ExecutionState
from ..records import RecordsReader

# The condition that an execution has an open attempt, whose job may exist.
_HAS_JOB = exists().where(
    store.ATTEMPT.c.execution == store.EXECUTION.c.id, store.ATTEMPT.c.ended_at.is_(None)
)
# The condition that an execution has an open attempt without a native id. A child process may be submitting
# the job, and outlive its dispatcher for a moment. Another dispatcher that looked for the job at once would
# not find it, and would submit it a second time.
_IS_SUBMITTING = exists().where(
    store.ATTEMPT.c.execution == store.EXECUTION.c.id,
    store.ATTEMPT.c.ended_at.is_(None),
    store.ATTEMPT.c.native_id.is_(None),
)


class Leases:
    """The leases of one dispatcher.

    Args:
        records: the records in which the leases are stored.
        lease: the duration of a lease from each renewal.
    """

    def __init__(self, records: RecordsReader, lease: timedelta) -> None:
        self._records = records
        self._lease = lease
        self._renewed: datetime | None = None
        #: The name of this dispatcher's process in the records.
        self.holder = store.name_of_this_process()

    @property
    def own_leases(self) -> ColumnElement[bool]:
        """The SQL condition that this dispatcher still holds an execution."""
        return store.EXECUTION.c.holder == self.holder

    def due(self) -> list[Execution]:
        """Return queued executions, and those whose dispatcher has let its lease expire or has ended."""
        with self._records.database.reading() as tx:
            return store.executions.due(tx) + self._abandoned(tx, ~_IS_SUBMITTING)

    def awaited(self) -> list[Execution]:
        """Return executions that are due later, as a child of their ended dispatcher may submit them.

        Only a dispatcher of this machine is known to have ended before its lease expires.
        """
        with self._records.database.reading() as tx:
            return self._abandoned(tx, _IS_SUBMITTING)

    def _abandoned(self, tx: store.Transaction, condition: ColumnElement[bool]) -> list[Execution]:
        """Return executions whose dispatcher has ended before its lease."""
        is_leased = store.executions.HELD & (store.EXECUTION.c.lease_until > tx.now)
        held = store.executions.some(tx, is_leased, ~self.own_leases, condition)
        return [it for it in held if store.dispatchers.is_gone(it.holder)]

    def take(self, execution: Execution) -> bool:
        """Take the lease of an execution; return False if another dispatcher has taken it first."""
        with self._records.database.writing() as tx:
            lease = {"holder": self.holder, "lease_until": tx.now + self._lease}
            if execution.state is ExecutionState.QUEUED:
                is_still = store.executions.WAITING
                return store.ledger.move(tx, execution.id, ExecutionState.CLAIMED, is_still, **lease)
            is_free = store.EXECUTION.c.lease_until <= tx.now
            if store.dispatchers.is_gone(execution.holder):
                # A dispatcher that has ended cannot renew; the execution is free unless another has taken it.
                is_free |= (store.EXECUTION.c.holder == execution.holder) & ~_IS_SUBMITTING
            return store.executions.change(tx, execution.id, store.executions.HELD & is_free, **lease)

    def renew(self, held: Collection[str]) -> list[str]:
        """Renew all leases after a quarter of their duration; return the executions that were taken over.

        The dispatcher's own lease, which says that it runs, begins and is renewed here as well.
        """
        now = self._records.now()
        if self._renewed is not None and now < self._renewed + self._lease / 4:
            return []
        self._renewed = now
        until = now + self._lease
        with self._records.database.writing() as tx:
            store.dispatchers.renew(tx, self.holder, until)
            return [
                it for it in held if not store.executions.change(tx, it, self.own_leases, lease_until=until)
            ]

    def release_all(self) -> None:
        """Release all leases, so that the next dispatcher can continue at once.

        Executions without a job wait again, as if no dispatcher had taken them, or given them up.
        """
        self._renewed = None
        with self._records.database.writing() as tx:
            store.dispatchers.remove(tx, self.holder)
            for it in store.executions.some(tx, store.executions.HELD, self.own_leases, ~_HAS_JOB):
                reason = None if it.reason == UNWANTED else it.reason
                values = {"holder": None, "lease_until": None, "reason": reason}
                store.ledger.move(tx, it.id, ExecutionState.QUEUED, self.own_leases, **values)
            for it in store.executions.some(tx, store.executions.HELD, self.own_leases, ~_IS_SUBMITTING):
                store.executions.change(tx, it.id, self.own_leases, holder=None, lease_until=tx.now)

    def other(self, execution: Execution) -> str | None:
        """Describe the other dispatcher that holds an execution; return None if there is none."""
        is_leased = execution.lease_until is not None and execution.lease_until > self._records.now()
        if execution.holder is None or execution.holder == self.holder or not is_leased:
            return None
        return store.describe_process(execution.holder)

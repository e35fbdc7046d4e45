"""The executions that a dispatcher has taken: its own for a while, unless it says again that it is there."""

from __future__ import annotations

import socket
from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, exists

from ..model import Execution, ExecutionState
from ..records import Reading
from ..store import (
    ATTEMPT,
    EXECUTION,
    describe_process,
    executions,
    ledger,
    name_of_this_process,
    process_has_ended,
)

_HELD = EXECUTION.c.state.in_([ExecutionState.CLAIMED.value, ExecutionState.RUNNING.value])
# A job may be on its way to a batch system, by a program that outlives its dispatcher for a moment. Whoever
# looked for that job at once would not find it, and submit it again.
_IS_SUBMITTING = exists().where(
    ATTEMPT.c.execution == EXECUTION.c.id, ATTEMPT.c.ended_at.is_(None), ATTEMPT.c.native_id.is_(None)
)


class Leases:
    """What one dispatcher takes, and keeps.

    Args:
        records: where that is written down.
        lease: for how long it takes executions, each time it says that it is still there.
    """

    def __init__(self, records: Reading, lease: timedelta) -> None:
        self._records = records
        self._lease = lease
        self._renewed: datetime | None = None
        #: What stands for the dispatcher in the records.
        self.holder = name_of_this_process()

    @property
    def are_mine(self) -> ColumnElement[bool]:
        """The condition under which an execution is still this dispatcher's."""
        return EXECUTION.c.holder == self.holder

    def due(self) -> list[Execution]:
        """The executions that wait for a dispatcher, or whose dispatcher is late, or gone."""
        now = self._records.now()
        left = _HELD & (EXECUTION.c.lease_until > now) & ~self.are_mine & ~_IS_SUBMITTING
        with self._records.database.reading() as connection:
            due = executions.due(connection, now)
            held = executions.some(connection, left)
        return due + [it for it in held if _is_gone(it.holder)]

    def take(self, execution: Execution) -> bool:
        """Take an execution that nobody sees to; False if somebody else has taken it meanwhile."""
        now = self._records.now()
        mine = {"holder": self.holder, "lease_until": now + self._lease}
        with self._records.database.writing() as connection:
            if execution.state is ExecutionState.QUEUED:
                is_still = (EXECUTION.c.state == execution.state.value) & (EXECUTION.c.priority > 0)
                return ledger.move(connection, execution.id, now, ExecutionState.CLAIMED, is_still, **mine)
            is_free = EXECUTION.c.lease_until <= now
            if _is_gone(execution.holder):
                # one that is gone does not come back, so that it is enough that nobody has followed it yet
                is_free |= (EXECUTION.c.holder == execution.holder) & ~_IS_SUBMITTING
            return executions.change(connection, execution.id, now, _HELD & is_free, **mine)

    def renew(self, held: Collection[str]) -> list[str]:
        """Keep what was taken, once in a while; returns what somebody else has taken over."""
        now = self._records.now()
        if not held or (self._renewed is not None and now < self._renewed + self._lease / 4):
            return []
        self._renewed = now
        until = now + self._lease
        with self._records.database.writing() as connection:
            return [
                it
                for it in held
                if not executions.change(connection, it, now, self.are_mine, lease_until=until)
            ]

    def give_back(self) -> None:
        """Let whoever comes next go on at once with everything that was taken."""
        now = self._records.now()
        with self._records.database.writing() as connection:
            for it in executions.some(connection, _HELD, self.are_mine, ~_IS_SUBMITTING):
                executions.change(connection, it.id, now, self.are_mine, holder=None, lease_until=now)

    def other(self, execution: Execution) -> str | None:
        """Whose an execution is that another dispatcher sees to, for users; None if none does."""
        if execution.holder in {None, self.holder} or (execution.lease_until or self._records.now()) <= (
            self._records.now()
        ):
            return None
        return describe_process(execution.holder or "")


def _is_gone(holder: str | None) -> bool:
    """Whether a dispatcher of this very machine is no more."""
    # machines that were cloned while they ran have the same boot
    return holder is not None and holder.split()[0] == socket.gethostname() and process_has_ended(holder)

"""The executions that a dispatcher has taken: its own for a while, unless it says again that it is there."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement

from . import ledger
from .model import Execution, ExecutionState
from .reading import Reading
from .store import executions
from .store.schema import EXECUTION

_HELD = [ExecutionState.CLAIMED.value, ExecutionState.RUNNING.value]


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
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{os.urandom(4).hex()}"

    @property
    def are_mine(self) -> ColumnElement[bool]:
        """The condition under which an execution is still this dispatcher's."""
        return EXECUTION.c.holder == self.holder

    def take(self, execution: Execution) -> bool:
        """Take an execution that nobody sees to; False if somebody else has taken it meanwhile."""
        now = self._records.now()
        mine = {"holder": self.holder, "lease_until": now + self._lease}
        with self._records.database.writing() as connection:
            if execution.state is ExecutionState.QUEUED:
                is_still = (EXECUTION.c.state == execution.state.value) & (EXECUTION.c.priority > 0)
                return ledger.move(connection, execution.id, now, ExecutionState.CLAIMED, is_still, **mine)
            is_late = EXECUTION.c.state.in_(_HELD) & (EXECUTION.c.lease_until <= now)
            return executions.change(connection, execution.id, is_late, **mine)

    def renew(self, held: Collection[str]) -> list[str]:
        """Keep what was taken, once in a while; returns what somebody else has taken over."""
        now = self._records.now()
        if not held or (self._renewed is not None and now < self._renewed + self._lease / 4):
            return []
        self._renewed = now
        until = now + self._lease
        with self._records.database.writing() as connection:
            return [
                it for it in held if not executions.change(connection, it, self.are_mine, lease_until=until)
            ]

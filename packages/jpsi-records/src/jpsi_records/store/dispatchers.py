"""Registers the dispatchers that run, in the caller's transaction, so that users learn if there is one.

A dispatcher has a lease of its own, beside those of executions, which it renews also while it waits.
"""

from __future__ import annotations

import socket
from datetime import datetime

from sqlalchemy import delete, insert, select, update

from .database import Transaction
from .file_lock import process_has_ended
from .schema import DISPATCHER


def renew(tx: Transaction, holder: str, until: datetime) -> None:
    """Register a dispatcher until a time, and forget those whose lease has expired."""
    own = DISPATCHER.c.holder == holder
    if not tx.execute(update(DISPATCHER).where(own).values(lease_until=until)).rowcount:
        tx.execute(delete(DISPATCHER).where(DISPATCHER.c.lease_until <= tx.now))
        tx.execute(insert(DISPATCHER).values(holder=holder, lease_until=until))


def remove(tx: Transaction, holder: str) -> None:
    """Forget a dispatcher, which ends."""
    tx.execute(delete(DISPATCHER).where(DISPATCHER.c.holder == holder))


def running(tx: Transaction) -> list[str]:
    """Return the processes of dispatchers; one that another machine lost stays until its lease ends."""
    statement = select(DISPATCHER.c.holder).where(DISPATCHER.c.lease_until > tx.now)
    return [it for it in tx.execute(statement.order_by(DISPATCHER.c.holder)).scalars() if not is_gone(it)]


def is_gone(holder: str | None) -> bool:
    """Return True if a dispatcher's process on this machine has ended."""
    # Machines cloned while they ran share a boot id, so the host name must match, too.
    return holder is not None and holder.split()[0] == socket.gethostname() and process_has_ended(holder)

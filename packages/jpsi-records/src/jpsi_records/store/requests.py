"""Reads and writes of requests, in the caller's transaction."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, insert, select, update

from ..model import Request
from .database import Transaction
from .rows import fetch, fetch_one, row_of
from .schema import REQUEST


def get(tx: Transaction, request_id: str) -> Request:
    """Return a request, or raise `NotFoundError`."""
    return fetch_one(tx, Request, REQUEST, request_id)


def some(tx: Transaction, *conditions: ColumnElement[bool]) -> list[Request]:
    """Return the requests that meet the conditions, the oldest first."""
    return fetch(tx, Request, select(REQUEST).where(*conditions).order_by(REQUEST.c.id))


def newest(tx: Transaction, most: int, *conditions: ColumnElement[bool]) -> list[Request]:
    """Return at most `most` requests that meet the conditions, the newest first."""
    statement = select(REQUEST).where(*conditions).order_by(REQUEST.c.id.desc())
    return fetch(tx, Request, statement.limit(most))


def add(tx: Transaction, request: Request) -> None:
    """Insert a request."""
    tx.execute(insert(REQUEST).values(row_of(request)))
    tx.changed.requests.add(request.id)


def change(tx: Transaction, request_id: str, **values: Any) -> None:  # noqa: ANN401  columns are of any type
    """Change a request, its `modified_at` and its `modified_by`."""
    tx.changed.requests.add(request_id)
    values["modified_at"] = tx.now
    if tx.user:
        values["modified_by"] = tx.user
    tx.execute(update(REQUEST).where(REQUEST.c.id == request_id).values(values))

"""Reads and writes the table of requests, in the caller's transaction.

Every change is noted in the transaction, so that a copy of the request is written before the commit.
"""

from __future__ import annotations

from typing import Any

import attrs
from sqlalchemy import ColumnElement, insert, select, update

from ..model import About, Request, RequestSpec
from . import events
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


def create(
    tx: Transaction,
    request_id: str,
    owner: str,
    spec: RequestSpec,
    about: About,
    **values: Any,  # noqa: ANN401  columns are of any type
) -> Request:
    """Insert a request, and record its creation."""
    times: dict[str, Any] = {"created_at": tx.now, "modified_at": tx.now, "modified_by": owner}
    request = Request(id=request_id, owner=owner, spec=spec, **times, **attrs.asdict(about), **values)
    tx.execute(insert(REQUEST).values(row_of(request)))
    tx.changed.requests.add(request.id)
    events.add(tx, "created", request=request.id, by=owner)
    return request


def change(tx: Transaction, request_id: str, **values: Any) -> None:  # noqa: ANN401  columns are of any type
    """Change a request, its `modified_at` and its `modified_by`."""
    tx.changed.requests.add(request_id)
    values["modified_at"] = tx.now
    if tx.user:
        values["modified_by"] = tx.user
    tx.execute(update(REQUEST).where(REQUEST.c.id == request_id).values(values))

"""Reads and writes of requests, in the caller's transaction."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, insert, select, update

from ..errors import NotFoundError
from ..model import Request
from .database import changed_in, writer
from .rows import request_of, request_row
from .schema import REQUEST


def get(connection: Connection, request_id: str) -> Request:
    """Return a request.

    Raises:
        NotFoundError: no request has this id.
    """
    row = connection.execute(select(REQUEST).where(REQUEST.c.id == request_id)).mappings().first()
    if row is None:
        msg = f"there is no request {request_id}"
        raise NotFoundError(msg)
    return request_of(row)


def some(connection: Connection, *conditions: ColumnElement[bool]) -> list[Request]:
    """Return the requests that meet the conditions, the oldest first."""
    rows = connection.execute(select(REQUEST).where(*conditions).order_by(REQUEST.c.id))
    return [request_of(row) for row in rows.mappings()]


def newest(connection: Connection, most: int, *conditions: ColumnElement[bool]) -> list[Request]:
    """Return at most `most` requests that meet the conditions, the newest first."""
    statement = select(REQUEST).where(*conditions).order_by(REQUEST.c.id.desc()).limit(most)
    return [request_of(row) for row in connection.execute(statement).mappings()]


def add(connection: Connection, request: Request) -> None:
    """Insert a request."""
    connection.execute(insert(REQUEST).values(request_row(request)))
    changed_in(connection).requests.add(request.id)


def change(connection: Connection, request_id: str, now: datetime, **values: Any) -> None:  # noqa: ANN401  columns are of any type
    """Change a request, its `modified_at` and its `modified_by`."""
    changed_in(connection).requests.add(request_id)
    values["modified_at"] = now
    if user := writer(connection):
        values["modified_by"] = user
    connection.execute(update(REQUEST).where(REQUEST.c.id == request_id).values(values))

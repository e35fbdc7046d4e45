"""What is written and read of requests, in somebody's transaction."""

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
    """A request.

    Raises:
        NotFoundError: there is none with this id.
    """
    row = connection.execute(select(REQUEST).where(REQUEST.c.id == request_id)).mappings().first()
    if row is None:
        msg = f"there is no request {request_id}"
        raise NotFoundError(msg)
    return request_of(row)


def some(connection: Connection, *conditions: ColumnElement[bool]) -> list[Request]:
    """The requests for which conditions hold, the oldest first."""
    rows = connection.execute(select(REQUEST).where(*conditions).order_by(REQUEST.c.id))
    return [request_of(row) for row in rows.mappings()]


def newest(connection: Connection, most: int, *conditions: ColumnElement[bool]) -> list[Request]:
    """So many of the requests for which conditions hold, the newest first."""
    statement = select(REQUEST).where(*conditions).order_by(REQUEST.c.id.desc()).limit(most)
    return [request_of(row) for row in connection.execute(statement).mappings()]


def add(connection: Connection, request: Request) -> None:
    """Add a request."""
    connection.execute(insert(REQUEST).values(request_row(request)))
    changed_in(connection).requests.add(request.id)


def change(connection: Connection, request_id: str, now: datetime, **values: Any) -> None:  # noqa: ANN401  columns are of any type
    """Change a request; who does so, and when, is written with it."""
    changed_in(connection).requests.add(request_id)
    values["modified_at"] = now
    if user := writer(connection):
        values["modified_by"] = user
    connection.execute(update(REQUEST).where(REQUEST.c.id == request_id).values(values))

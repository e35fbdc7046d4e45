"""Converts rows of the tables to values (`Request`, `Execution`, ...) and back, and finds records by id.

The modules of this package that read or write a table use it.
"""

from __future__ import annotations

import enum
import re
from typing import Any, TypeVar

import attrs
from sqlalchemy import Column, Executable, RowMapping, Table, select

from ..errors import AmbiguousError, NotFoundError
from ..model import RequestSpec, write_request_spec
from .database import Transaction

T = TypeVar("T", bound=attrs.AttrsInstance)

_ID_PREFIX = re.compile(r"[0-9a-f-]{1,36}")
# The largest number of ids in a message.
_MAX_NAMED = 3
# The columns that have other names than the fields of the values.
_COLUMNS = {"spec": "request_spec", "start": "start_time", "end": "end_time", "user": "owner"}


def value_of(kind: type[T], row: RowMapping) -> T:
    """Return the value in a row."""
    return kind(**{it.name: row[_COLUMNS.get(it.name, it.name)] for it in attrs.fields(kind)})


def row_of(value: attrs.AttrsInstance) -> dict[str, Any]:
    """Return the row of a value."""
    fields = attrs.asdict(value, recurse=False)
    return {_COLUMNS.get(name, name): _plain(it) for name, it in fields.items()}


def _plain(value: Any) -> Any:  # noqa: ANN401  columns are of any type
    if isinstance(value, RequestSpec):
        return write_request_spec(value)
    return value.value if isinstance(value, enum.Enum) else value


def fetch(tx: Transaction, kind: type[T], statement: Executable) -> list[T]:
    """Return the values in the rows that a statement selects."""
    return [value_of(kind, row) for row in tx.execute(statement).mappings()]


def fetch_one(tx: Transaction, kind: type[T], table: Table, record_id: str) -> T:
    """Return the value with an id.

    Raises:
        NotFoundError: no row has this id.
    """
    for value in fetch(tx, kind, select(table).where(table.c.id == record_id)):
        return value
    raise NotFoundError(f"there is no {table.name} {record_id}")


def full_id(tx: Transaction, column: Column[str], prefix: str) -> str:
    """Return the one id in a table that begins with a prefix.

    Raises:
        NotFoundError: no id begins with it.
        AmbiguousError: several ids begin with it.
    """
    what = column.table.name
    found: list[str] = []
    if _ID_PREFIX.fullmatch(prefix):
        begins = column.startswith(prefix, autoescape=True)
        statement = select(column).where(begins).order_by(column).limit(_MAX_NAMED + 1)
        found = list(tx.execute(statement).scalars())
    if len(found) == 1 or prefix in found:
        return prefix if prefix in found else found[0]
    if found:
        others = " and others" if len(found) > _MAX_NAMED else ""
        listed = ", ".join(found[:_MAX_NAMED])
        msg = f"several {what}s begin with {prefix}: {listed}{others}; write more characters"
        raise AmbiguousError(msg)
    raise NotFoundError(f"there is no {what} {prefix}")

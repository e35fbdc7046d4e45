"""Rows of the tables as values, and values as rows."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

import attrs
from sqlalchemy import RowMapping

from ..model import Attempt, Event, Execution, ExecutionState, Interval, Request, RequestState
from ..wish import read_wish, write_wish

T = TypeVar("T", bound=attrs.AttrsInstance)


def new_id(now: datetime) -> str:
    """An id that sorts by time: a UUID of version 7 (RFC 9562)."""
    digits = f"{int(now.timestamp() * 1000):012x}"
    rest = os.urandom(10).hex()
    return f"{digits[:8]}-{digits[8:]}-7{rest[:3]}-{'89ab'[int(rest[3], 16) % 4]}{rest[4:7]}-{rest[7:19]}"


def request_of(row: RowMapping) -> Request:
    """The request in a row."""
    values = {**row, "state": RequestState(row["state"]), "wish": read_wish(row["wish"])}
    return _value(Request, values)


def request_row(request: Request) -> dict[str, Any]:
    """The row of a request."""
    return {**_row(request), "wish": write_wish(request.wish)}


def execution_of(row: RowMapping) -> Execution:
    """The execution in a row."""
    return _value(Execution, {**row, "state": ExecutionState(row["state"])})


def execution_row(execution: Execution) -> dict[str, Any]:
    """The row of an execution."""
    return _row(execution)


def attempt_of(row: RowMapping) -> Attempt:
    """The attempt in a row."""
    return _value(Attempt, dict(row))


def attempt_row(attempt: Attempt) -> dict[str, Any]:
    """The row of an attempt."""
    return _row(attempt)


def event_of(row: RowMapping) -> Event:
    """The event in a row."""
    return _value(Event, dict(row))


def interval_of(row: RowMapping) -> Interval:
    """The interval in a row of accounting."""
    names = {"start": row["start_time"], "end": row["end_time"], "user": row["owner"]}
    return _value(Interval, {**row, **names, "state": ExecutionState(row["state"])})


def _value(kind: type[T], values: Mapping[str, Any]) -> T:
    return kind(**{field.name: values[field.name] for field in attrs.fields(kind)})


def _row(value: attrs.AttrsInstance) -> dict[str, Any]:
    row = {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
    return {name: it.value if isinstance(it, enum.Enum) else it for name, it in row.items()}

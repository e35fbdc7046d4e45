"""The conversion between rows of the tables and values."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs
from sqlalchemy import RowMapping

from ..model import (
    Attempt,
    Event,
    Execution,
    ExecutionState,
    Interval,
    Request,
    RequestState,
    read_request_spec,
    write_request_spec,
)

T = TypeVar("T", bound=attrs.AttrsInstance)


def request_of(row: RowMapping) -> Request:
    """Return the request in a row."""
    # the column is named `wish`
    values = {**row, "state": RequestState(row["state"]), "spec": read_request_spec(row["wish"])}
    return _value(Request, values)


def request_row(request: Request) -> dict[str, Any]:
    """Return the row of a request."""
    row = _row(request)
    del row["spec"]
    return {**row, "wish": write_request_spec(request.spec)}


def execution_of(row: RowMapping) -> Execution:
    """Return the execution in a row."""
    return _value(Execution, {**row, "state": ExecutionState(row["state"])})


def execution_row(execution: Execution) -> dict[str, Any]:
    """Return the row of an execution."""
    return _row(execution)


def attempt_of(row: RowMapping) -> Attempt:
    """Return the attempt in a row."""
    return _value(Attempt, dict(row))


def attempt_row(attempt: Attempt) -> dict[str, Any]:
    """Return the row of an attempt."""
    return _row(attempt)


def event_of(row: RowMapping) -> Event:
    """Return the event in a row."""
    return _value(Event, dict(row))


def interval_of(row: RowMapping) -> Interval:
    """Return the interval in a row of the accounting view."""
    names = {"start": row["start_time"], "end": row["end_time"], "user": row["owner"]}
    return _value(Interval, {**row, **names, "state": ExecutionState(row["state"])})


def _value(kind: type[T], values: Mapping[str, Any]) -> T:
    return kind(**{field.name: values[field.name] for field in attrs.fields(kind)})


def _row(value: attrs.AttrsInstance) -> dict[str, Any]:
    row = {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
    return {name: it.value if isinstance(it, enum.Enum) else it for name, it in row.items()}

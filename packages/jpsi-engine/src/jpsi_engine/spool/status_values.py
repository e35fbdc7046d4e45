"""Converts the statuses of jobs to plain values for JSON, and back.

The spool stores a final status in this form if it does not follow from the exit marker alone.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jpsi import Evidence, JobState, JobStatus, Reason

_VALUE = operator.attrgetter("value")
# The fields of a status, with their conversions; None needs none.
_FIELDS: Mapping[str, Any] = {
    "state": (_VALUE, JobState),
    "time": (datetime.isoformat, datetime.fromisoformat),
    "exit_code": None,
    "message": None,
    "reason": (_VALUE, Reason),
    "evidence": (_VALUE, Evidence),
    "metadata": (dict, dict),
}
_OPTIONAL = frozenset({"reason", "evidence"})


def encode_status(status: JobStatus) -> dict[str, Any]:
    """Return a status as plain values."""
    return {name: _converted(0, name, getattr(status, name)) for name in _FIELDS}


def decode_status(plain: Mapping[str, Any]) -> JobStatus:
    """Return the status that `encode_status` converted; KeyError, TypeError, ValueError for other content."""
    return JobStatus(**{name: _converted(1, name, plain[name]) for name in _FIELDS})


def _converted(direction: int, name: str, value: Any) -> Any:  # noqa: ANN401  the value of any field
    conversions = _FIELDS[name]
    if conversions is None or (value is None and name in _OPTIONAL):
        return value
    return conversions[direction](value)

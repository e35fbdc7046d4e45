"""Filters: conditions of a request on the execution to reuse, such as one on its time of creation.

`problems` checks them when a request is made; `unmet_filters` compares them with an execution, which the
choice of an execution uses.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from .field_checks import is_number

# An attribute, an operator and a value.
_PARTS = 3
_TIMES = frozenset({"created_at", "started_at", "finished_at", "modified_at"})
_NUMBERS = frozenset({"exit_code", "progress", "priority"})
_TEXTS = frozenset({"id", "state", "fingerprint", "output", "modified_by"})
# The values of `ExecutionState`.
_STATES = ("queued", "claimed", "running", "complete", "cancelled")
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda found, wanted: found in wanted,
    "not in": lambda found, wanted: found not in wanted,
}
_LIST_OPERATORS = frozenset({"in", "not in"})


def problems(filters: Any) -> Iterator[str]:  # noqa: ANN401  any JSON value
    """Yield every problem of filters."""
    if not isinstance(filters, list | tuple):
        yield f"filters must be a list, not {filters!r}"
        return
    for it in filters:
        if not isinstance(it, list | tuple) or len(it) != _PARTS:
            yield f"a filter is [attribute, operator, value], not {it!r}"
            continue
        attribute, sign, wanted = it
        attributes = sorted(_TIMES | _NUMBERS | _TEXTS)
        if attribute not in attributes:
            yield f"filters: {attribute!r} is none of {', '.join(attributes)}"
        elif not isinstance(sign, str) or sign not in _OPERATORS:
            yield f"filters: {sign!r} is none of {', '.join(_OPERATORS)}"
        elif not _can_be(attribute, wanted, is_list=sign in _LIST_OPERATORS):
            known = f"; it is one of {', '.join(_STATES)}" if attribute == "state" else ""
            yield f"filters: {attribute} {sign} cannot be {wanted!r}{known}"


def _can_be(attribute: str, wanted: Any, *, is_list: bool) -> bool:  # noqa: ANN401  as above
    if is_list:
        return isinstance(wanted, list | tuple) and all(
            _can_be(attribute, it, is_list=False) for it in wanted
        )
    if attribute in _NUMBERS:
        return is_number(wanted)
    if not isinstance(wanted, str):
        return False
    if attribute == "state":
        return wanted in _STATES
    try:
        return attribute not in _TIMES or bool(_time(wanted))
    except ValueError:
        return False


def unmet_filters(filters: Any, execution: object) -> Iterator[str]:  # noqa: ANN401  lists of lists
    """Yield the filters that an execution does not meet, as sentences; an unknown value meets none."""
    for attribute, sign, wanted in filters:
        found = getattr(execution, attribute)
        found = found.value if isinstance(found, enum.Enum) else found
        if found is None or not _OPERATORS[sign](found, _value(attribute, wanted)):
            yield f"its {attribute} is {found}, not {sign} {wanted}"


def _value(attribute: str, wanted: Any) -> Any:  # noqa: ANN401  as above
    if isinstance(wanted, list | tuple):
        return [_value(attribute, it) for it in wanted]
    return _time(wanted) if attribute in _TIMES else wanted


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)

"""The priority of an execution: the largest priority of its active requests."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import attrs

from ..errors import InvalidRequestError


@attrs.frozen(slots=True, kw_only=True)
class Interest:
    """The contribution of a committed request to the priority of its execution."""

    priority: float
    expires_at: datetime | None = None
    #: The priority of the parent execution, whose job has made the request; None without a parent.
    inherited: float | None = None

    def counts(self, now: datetime) -> float:
        """Return the contribution at a time; zero is none.

        A child request has the priority of its parent execution, unless its own is zero or less.
        """
        if self.priority <= 0 or (self.expires_at is not None and self.expires_at <= now):
            return 0
        return max(0, self.priority if self.inherited is None else self.inherited)


def effective_priority(interests: Iterable[Interest], now: datetime) -> float:
    """Return the priority of an execution.

    >>> effective_priority([Interest(priority=it) for it in (1, 2.5, -1)], datetime.now())
    2.5
    """
    return max((it.counts(now) for it in interests), default=0)


def check_priority(priority: Any) -> None:  # noqa: ANN401  any value of a caller
    """Raise `InvalidRequestError` unless a value is a valid priority."""
    if isinstance(priority, bool) or not isinstance(priority, int | float) or not math.isfinite(priority):
        msg = f"a priority is a finite number, not {priority!r}"
        raise InvalidRequestError(msg)

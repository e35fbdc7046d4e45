"""How urgent an execution is: as urgent as the most urgent live interest in it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import attrs

from ..errors import InvalidRequestError


@attrs.frozen(slots=True, kw_only=True)
class Interest:
    """What a committed request contributes."""

    priority: float
    expires_at: datetime | None = None
    #: The priority of the execution whose job has made the request; None if nobody's has.
    inherited: float | None = None

    def counts(self, now: datetime) -> float:
        """What it contributes at a time; zero is nothing.

        A request of a job is as urgent as the job is, unless it is not to run at all.
        """
        if self.priority <= 0 or (self.expires_at is not None and self.expires_at <= now):
            return 0
        return max(0, self.priority if self.inherited is None else self.inherited)


def effective_priority(interests: Iterable[Interest], now: datetime) -> float:
    """The priority of an execution.

    >>> effective_priority([Interest(priority=it) for it in (1, 2.5, -1)], datetime.now())
    2.5
    """
    return max((it.counts(now) for it in interests), default=0)


def check_priority(priority: Any) -> None:  # noqa: ANN401  whatever a caller gives
    """Raise `InvalidRequestError` unless it is a priority."""
    if isinstance(priority, bool) or not isinstance(priority, int | float) or not math.isfinite(priority):
        msg = f"a priority is a finite number, not {priority!r}"
        raise InvalidRequestError(msg)

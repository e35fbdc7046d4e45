"""What can go wrong with requests and records, as one tree of exceptions.

JpsiError
└── RecordsError
    ├── InvalidRequestError   the request itself: what it says, or what it names is not there
    ├── StateError            what was asked for is not done in this state
    ├── ChangedError          since the preview something has happened that changes it
    ├── NothingToReuseError   the request may not run anything, and nothing satisfies it
    ├── NotFoundError         there is no such record
    └── StoreError            the records, or the files beside them, cannot be used
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from jpsi import JpsiError


class RecordsError(JpsiError):
    """The common root of what this package raises on purpose."""


class InvalidRequestError(RecordsError):
    """The request can never be satisfied as it stands; nothing was written."""

    def __init__(
        self, message: str, exception: BaseException | None = None, *, problems: Sequence[str] = ()
    ) -> None:
        super().__init__(message, exception)
        #: Everything that is wrong, one sentence each; never empty.
        self.problems: tuple[str, ...] = tuple(problems) or (message,)

    @classmethod
    def of(cls, problems: Sequence[str]) -> Self:
        """One exception that names every problem."""
        if len(problems) == 1:
            return cls(f"the request is not valid: {problems[0]}", problems=problems)
        return cls("the request is not valid:" + "".join(f"\n  - {it}" for it in problems), problems=problems)


class StateError(RecordsError):
    """A record is in a state in which this is not done."""


class ChangedError(RecordsError):
    """Something else would come of the request now than the preview has shown."""


class NothingToReuseError(RecordsError):
    """Nothing satisfies the request, and it may not cause a run."""


class NotFoundError(RecordsError):
    """There is no record with this id."""


class AmbiguousError(NotFoundError):
    """Several records have an id that begins like this."""


class StoreError(RecordsError):
    """The records, or the files beside them, cannot be read or written."""

"""The exceptions of requests and records.

JpsiError
└── RecordsError
    ├── InvalidRequestError   the request is invalid, or names something that does not exist
    ├── StateError            the operation is not allowed in the record's state
    ├── ChangedError          the result would differ from that of the preview
    ├── NothingToReuseError   no execution satisfies the request, and it excludes a new run
    ├── NotFoundError         no record has this id
    └── StoreError            the records, or the files beside them, cannot be used
        └── SourceError       a file or directory that is to be stored cannot be read
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Self

from jpsi import JpsiError


class RecordsError(JpsiError):
    """The base class of this package's exceptions."""


class InvalidRequestError(RecordsError):
    """An invalid request, which can never be satisfied; nothing was written."""

    def __init__(
        self, message: str, exception: BaseException | None = None, *, problems: Sequence[str] = ()
    ) -> None:
        super().__init__(message, exception)
        #: Every problem as one sentence; never empty.
        self.problems: tuple[str, ...] = tuple(problems) or (message,)

    @classmethod
    def of(cls, problems: Sequence[str]) -> Self:
        """Return one exception that names every problem."""
        if len(problems) == 1:
            return cls(f"the request is not valid: {problems[0]}", problems=problems)
        return cls("the request is not valid:" + "".join(f"\n  - {it}" for it in problems), problems=problems)


class StateError(RecordsError):
    """An operation that is not allowed in the state of the record."""


class ChangedError(RecordsError):
    """A commit whose result would differ from that of the preview."""


class NothingToReuseError(RecordsError):
    """A request that no execution satisfies, and that excludes a new run."""


class NotFoundError(RecordsError):
    """A record id that does not exist."""


class AmbiguousError(NotFoundError):
    """An id prefix that several records share."""


class StoreError(RecordsError):
    """A failure to read or write the records, or the files beside them."""


class SourceError(StoreError):
    """A file or directory that is to be stored, and does not exist or cannot be read."""


@contextlib.contextmanager
def store_errors(failure: str, error: type[RecordsError] = StoreError) -> Iterator[None]:
    """Raise an `OSError` as an error of the records that says what failed, and the reason."""
    try:
        yield
    except OSError as e:
        raise error(f"{failure}: {e.strerror}", e) from e

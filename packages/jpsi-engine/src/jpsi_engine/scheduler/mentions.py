"""What an answer says of jobs: of each itself, or of the array that it is an element of."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from jpsi.plugin import Observation
from jpsi_engine.scheduler.snapshot import Answer


@attrs.frozen(slots=True)
class Said:
    """An answer, read for some jobs."""

    answer: Answer
    #: The native ids of the arrays of those that are elements of one.
    arrays: Mapping[str, str]

    def of(self, native_id: str) -> Observation | None:
        """What is said of a job; None if nothing is.

        An element that is not mentioned waits as its array does. How an array ended says nothing here of an
        element: one that ran may have been forgotten since.
        """
        seen, whole = self._seen(native_id)
        if whole is None or (seen is not None and seen is not whole):
            return seen
        return None if whole.final else whole

    def of_one_that_never_began(self, native_id: str) -> Observation | None:
        """What is said of an element of which it is known that it never began: it ended as its array did."""
        seen, whole = self._seen(native_id)
        return seen if seen is not None and seen is whole else self.of(native_id)

    def _seen(self, native_id: str) -> tuple[Observation | None, Observation | None]:
        """What is said of a job, and of the array that it is an element of."""
        array = self.arrays.get(native_id)
        return self.answer.seen.get(native_id), None if array is None else self.answer.seen.get(array)

"""Looks up jobs in a snapshot: each by itself, or by the array that it is an element of."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from jpsi.plugin import Observation
from jpsi_engine.scheduler.snapshot import Snapshot


@attrs.frozen(slots=True)
class Mentions:
    """A snapshot, together with the arrays of the jobs that are to be looked up in it."""

    snapshot: Snapshot
    #: The native ids of the arrays, by the native ids of their elements.
    arrays: Mapping[str, str]

    def observation_of(self, native_id: str) -> Observation | None:
        """Return what the snapshot says of a job; None if it says nothing.

        An element that is not mentioned waits as its array does. The end of an array says nothing about such
        an element: it may have run, and been forgotten since.
        """
        seen, whole = self._observations(native_id)
        if whole is None or (seen is not None and seen is not whole):
            return seen
        return None if whole.final else whole

    def observation_of_unstarted(self, native_id: str) -> Observation | None:
        """Return what the snapshot says of an element that never began: it ended as its array did."""
        seen, whole = self._observations(native_id)
        return seen if seen is not None and seen is whole else self.observation_of(native_id)

    def _observations(self, native_id: str) -> tuple[Observation | None, Observation | None]:
        """Return the observation of a job, and that of the array that it is an element of."""
        array = self.arrays.get(native_id)
        return self.snapshot.seen.get(native_id), None if array is None else self.snapshot.seen.get(array)

"""Which GPUs of a node each run has, so that no two have the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# CUDA's, ROCm's and Level Zero's.
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")


class NoDeviceError(Exception):
    """A node has fewer GPUs than it should."""


class Devices:
    """The GPUs of a node; whoever calls the methods holds a lock."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Take those that the pilot may use, as its batch system says by variables; else they are counted.

        Args:
            environment: that of the pilot.
        """
        self._names = {
            name: [it.strip() for it in environment[name].split(",") if it.strip()]
            for name in _VARIABLES
            if name in environment
        }
        self._taken: set[int] = set()

    def take(self, count: int) -> tuple[int, ...]:
        """The places of so many that nobody has; they are to be given back.

        Raises:
            NoDeviceError: there are not as many.
        """
        there = min(map(len, self._names.values()), default=len(self._taken) + count)
        free = [it for it in range(there) if it not in self._taken]
        if len(free) < count:
            msg = f"it needs {count} GPUs; {len(free)} of the {there} that the pilot has there are free"
            raise NoDeviceError(msg)
        self._taken.update(free[:count])
        return tuple(free[:count])

    def give_back(self, places: Sequence[int]) -> None:
        """Nobody has these any more."""
        self._taken.difference_update(places)

    def variables(self, places: Sequence[int]) -> Mapping[str, str]:
        """What tells a run that these are its own, and that no others are.

        >>> Devices({"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}).variables([1])
        {'CUDA_VISIBLE_DEVICES': 'GPU-b'}
        >>> Devices({}).variables([0, 2])
        {'CUDA_VISIBLE_DEVICES': '0,2'}
        """
        if not self._names:
            return {_VARIABLES[0]: ",".join(map(str, places))}
        return {name: ",".join(names[it] for it in places) for name, names in self._names.items()}

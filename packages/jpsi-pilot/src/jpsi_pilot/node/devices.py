"""Assigns the GPUs of a node to runs, so that no two runs have the same.

`Runs` reserves GPUs for each job that it starts on the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# CUDA's, ROCm's and Level Zero's.
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")


class NoDeviceError(Exception):
    """A node has fewer free GPUs than a run needs."""


class Devices:
    """The GPUs of a node; the caller of its methods holds a lock."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Read from variables which GPUs the pilot may use; without them, only count GPUs.

        Args:
            environment: the environment of the pilot.
        """
        self._names = {
            name: [it.strip() for it in environment[name].split(",") if it.strip()]
            for name in _VARIABLES
            if name in environment
        }
        self._reserved: set[int] = set()

    def reserve(self, count: int) -> tuple[int, ...]:
        """Reserve so many free GPUs, and return their positions; the caller gives them back.

        Raises:
            NoDeviceError: not enough of them are free.
        """
        total = min(map(len, self._names.values()), default=len(self._reserved) + count)
        free = [it for it in range(total) if it not in self._reserved]
        if len(free) < count:
            msg = f"it needs {count} GPUs, and {len(free)} of the pilot's {total} on that node are free"
            raise NoDeviceError(msg)
        self._reserved.update(free[:count])
        return tuple(free[:count])

    def release(self, positions: Sequence[int]) -> None:
        """Free these GPUs."""
        self._reserved.difference_update(positions)

    def variables(self, positions: Sequence[int]) -> Mapping[str, str]:
        """Return the variables that show a run its own GPUs and no others.

        >>> Devices({"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}).variables([1])
        {'CUDA_VISIBLE_DEVICES': 'GPU-b'}
        >>> Devices({}).variables([0, 2])
        {'CUDA_VISIBLE_DEVICES': '0,2'}
        """
        if not self._names:
            return {_VARIABLES[0]: ",".join(map(str, positions))}
        return {name: ",".join(names[it] for it in positions) for name, names in self._names.items()}

"""Times and sizes as Slurm counts them, rounded up so that a job never gets less than it asked for."""

from __future__ import annotations

from datetime import timedelta

_MEBIBYTE = 1 << 20


def minutes(duration: timedelta) -> int:
    """A duration in whole minutes, the finest that `--time` can say (sbatch(1): the time resolution).

    >>> minutes(timedelta(seconds=61))
    2
    """
    return -(-duration // timedelta(minutes=1))


def mebibytes(size: int, shares: int = 1) -> str:
    """The share that each of `shares` parts has of `size` bytes, as `--mem` takes it.

    >>> mebibytes(3 * 2**20, shares=2)
    '2M'
    """
    return f"{-(-size // (shares * _MEBIBYTE))}M"

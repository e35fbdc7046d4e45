"""Times and sizes as Slurm counts them."""

from __future__ import annotations

from datetime import timedelta

from jpsi.plugin import units

_MEBIBYTE = 1 << 20


def minutes(duration: timedelta) -> int:
    """A duration in whole minutes, the finest that `--time` can say (sbatch(1): the time resolution).

    >>> minutes(timedelta(seconds=61))
    2
    """
    return units(duration, timedelta(minutes=1))


def mebibytes(size: int, shares: int = 1) -> str:
    """The share that each of `shares` parts has of `size` bytes, as `--mem` takes it.

    >>> mebibytes(3 * 2**20, shares=2)
    '2M'
    """
    return f"{units(size, shares * _MEBIBYTE)}M"

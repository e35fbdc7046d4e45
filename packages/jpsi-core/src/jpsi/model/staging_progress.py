"""The progress of a file or directory that is staged from one machine to another."""

from __future__ import annotations

import attrs

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024


@attrs.frozen(slots=True, kw_only=True)
class StagingProgress:
    """The part of a file or directory that has been transferred.

    >>> print(StagingProgress(path="a.dat", is_in=True, done=120 * 2**20, total=2**30))
    staging in a.dat: 120.0 MiB of 1.0 GiB
    """

    #: The file or directory, by its path on the submitting machine.
    path: str
    #: True for stage in, False for stage out.
    is_in: bool
    #: The number of bytes that have arrived.
    done: int
    #: The number of bytes in all.
    total: int

    def __str__(self) -> str:
        way = "in" if self.is_in else "out"
        return f"staging {way} {self.path}: {amount(self.done)} of {amount(self.total)}"


def amount(count: int) -> str:
    """Format a number of bytes for people.

    >>> [amount(it) for it in (0, 1023, 1536, 5 * 2**40)]
    ['0 bytes', '1023 bytes', '1.5 KiB', '5.0 TiB']
    """
    rank = min(max(0, count.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{count / _STEP**rank:.1f} {_UNITS[rank]}" if rank else f"{count} {_UNITS[0]}"

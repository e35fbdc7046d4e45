"""The slots of this machine that the jobs of one user occupy, across all programs of the user.

    <root>/slots/lock                           locked while a program takes slots
    <root>/slots/<native id>.<n>.<x>            n slots that a process has; a file for each job
    <root>/slots/<native id>.<n>.<x>.<array>    the same for an element of an array that limits its elements

The array is a checksum of its id, as that may hold any characters. The name of an empty file is the fact, as
with markers. It first names the program that is about to start a job, and then the job's own process. So the
slots are occupied exactly as long as that process lives, even if the program ends before it.
"""

from __future__ import annotations

import contextlib
import os
import re
import zlib
from collections.abc import Iterator

import attrs

from jpsi.plugin import JobSpec, ResourceSpec, components
from jpsi_engine import host
from jpsi_engine.array_expansion import array_id, at_a_time
from jpsi_engine.scheduler import QuotaReached

# Seconds between two checks for ended jobs of other programs; this program's own jobs trigger a check.
_CHECK_SECONDS = 0.5
# Seconds until the next try if another program has the lock, which it holds for less time than that.
_RETRY_SECONDS = 0.02
_NAME = re.compile(r"(.+?)\.(\d+)\.[0-9a-f]{8}(?:\.([0-9a-f]{8}))?")


@attrs.frozen(slots=True)
class ArrayLimit:
    """The number of elements of one array that may run at a time."""

    array: str
    at_a_time: int

    @classmethod
    def of(cls, spec: JobSpec) -> ArrayLimit | None:
        """Return the limit that a spec states; None if it states none."""
        limit = at_a_time(spec)
        if limit is None:
            return None
        return cls(f"{zlib.crc32((array_id(spec) or '').encode(errors='surrogateescape')):08x}", limit)


class SlotsTaken:
    """Slots that one job occupies."""

    def __init__(self, folder: str, count: int, array: str | None) -> None:
        self._folder = folder
        self._count = count
        self._unique = os.urandom(4).hex() if array is None else f"{os.urandom(4).hex()}.{array}"
        program = host.identify(os.getpid()) or host.ProcessId(os.getpid(), host.UNKNOWN_START)
        self._path = self._name(program)
        os.close(host.open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))

    def _name(self, process: host.ProcessId) -> str:
        return f"{self._folder}/{process.native_id}.{self._count}.{self._unique}"

    def transfer_to(self, process: host.ProcessId) -> None:
        """Give the slots to this process until it ends."""
        path = self._name(process)
        # if the file cannot be renamed, the program keeps the slots
        with contextlib.suppress(OSError):
            os.rename(self._path, path)  # noqa: PTH104  text, as in the spool
            self._path = path

    def release(self) -> None:
        """Release the slots; never raises."""
        host.forget(self._path)


@attrs.frozen(slots=True)
class Slots:
    """The slots of one executor.

    Args:
        root: the folder of the executor, which is private to the user.
        count: the number of slots; None for no limit but those of arrays.
    """

    root: str
    count: int | None

    @property
    def _folder(self) -> str:
        return f"{self.root}/slots"

    def acquire(self, count: int, limit: ArrayLimit | None) -> SlotsTaken | QuotaReached:
        """Take slots for a job if enough are free; return `QuotaReached` otherwise.

        Args:
            count: the number of slots.
            limit: the limit of the job's array, if it has one.

        Raises:
            OSError: the slots cannot be recorded on disk.
        """
        host.make_directories(self._folder)
        with host.hold_lock(f"{self._folder}/lock", 0.0, create=True) as is_locked:
            if not is_locked:
                return QuotaReached(_RETRY_SECONDS, "another program is taking slots")
            found = list(self._occupied())
            occupied = sum(it for it, _ in found)
            if self.count is not None and occupied + count > self.count:
                why = (
                    f"{occupied} of {self.count} slots (max_active) are taken, and the next job needs {count}"
                )
                return QuotaReached(_CHECK_SECONDS, why)
            if limit is None:
                return SlotsTaken(self._folder, count, None)
            running = sum(array == limit.array for _, array in found)
            if running >= limit.at_a_time:
                return QuotaReached(
                    _CHECK_SECONDS, f"{running} jobs of the array run, as many as may at a time"
                )
            return SlotsTaken(self._folder, count, limit.array)

    def _occupied(self) -> Iterator[tuple[int, str | None]]:
        """Yield the slots of each living process, and its array; delete the files of processes that ended."""
        for name in os.listdir(self._folder):  # noqa: PTH208
            match = _NAME.fullmatch(name)
            if match is not None:
                process = host.parse_native_id(match[1])
                if process is not None and process.is_alive():
                    yield int(match[2]), match[3]
                else:
                    host.forget(f"{self._folder}/{name}")


def core_count(resources: ResourceSpec | None) -> int:
    """Return the number of slots that a job needs, one for each of its cores; `resources` may be None.

    >>> core_count(None)
    1
    """
    return sum(it.computed_core_count for it in components(resources))

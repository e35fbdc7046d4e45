"""The slots of a machine that the jobs of one user take, whichever program has started them.

    <root>/slots/lock                           held while somebody takes slots
    <root>/slots/<native id>.<n>.<x>            n slots that a process has; a file for each job

An empty file whose name is the fact, as markers are. It names the program that is about to start a job, and
then the job's own process: so slots are taken for as long as that process lives, and no longer, whatever
becomes of the program.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator

import attrs

from jpsi.plugin.kit import make_directories, open_private
from jpsi_engine.host import NOBODY, Full, ProcessId, forget, identify, parse_native_id

# How often it is looked whether jobs of other programs have ended; one's own tell.
_LOOK_SECONDS = 0.5
# When to look again if another program has the lock, which takes less than that.
_RETRY_SECONDS = 0.02
_NAME = re.compile(r"(.+)\.(\d+)\.[0-9a-f]+")


class Taken:
    """Slots that were taken for one job."""

    def __init__(self, folder: str, count: int) -> None:
        self._folder = folder
        self._count = count
        self._unique = os.urandom(4).hex()
        program = identify(os.getpid()) or ProcessId(os.getpid(), NOBODY)
        self._path = self._name(program)
        os.close(open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))

    def _name(self, process: ProcessId) -> str:
        return f"{self._folder}/{process.native_id}.{self._count}.{self._unique}"

    def hold(self, process: ProcessId) -> None:
        """Let this process have the slots until it ends."""
        path = self._name(process)
        # if that cannot be said, the program has them
        with contextlib.suppress(OSError):
            os.rename(self._path, path)  # noqa: PTH104  text, as in the spool
            self._path = path

    def free(self) -> None:
        """Nobody has the slots any more; never raises."""
        forget(self._path)


@attrs.frozen(slots=True)
class Slots:
    """So many slots.

    Args:
        root: the folder of the executor, which is private to the user.
        count: how many there are.
    """

    root: str
    count: int

    @property
    def _folder(self) -> str:
        return f"{self.root}/slots"

    def take(self, count: int) -> Taken | Full:
        """Take slots for a job, if so many are free.

        Raises:
            OSError: it cannot be written down.
        """
        make_directories(self._folder)
        with self._locked() as is_locked:
            if not is_locked:
                return Full(_RETRY_SECONDS, "another program is taking slots")
            taken = sum(self._taken())
            if taken + count > self.count:
                why = f"{taken} of {self.count} slots (max_active) are taken, and the next job needs {count}"
                return Full(_LOOK_SECONDS, why)
            return Taken(self._folder, count)

    def _taken(self) -> Iterator[int]:
        """How many slots each living process has; those of others are free again."""
        for name in os.listdir(self._folder):  # noqa: PTH208
            match = _NAME.fullmatch(name)
            if match is not None:
                process = parse_native_id(match[1])
                if process is not None and process.is_alive():
                    yield int(match[2])
                else:
                    forget(f"{self._folder}/{name}")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[bool]:
        lock = open_private(f"{self._folder}/lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            # a child that was forked in the meantime has the descriptor too
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)

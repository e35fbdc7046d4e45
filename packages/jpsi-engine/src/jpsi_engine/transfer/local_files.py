"""Copies and reads the files of jobs that run on this machine, or share its file systems.

`open_job_files` returns them if the transport is local. A file that changes while it is copied is an error,
and a target appears only when it is complete.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jpsi import OutputPart
from jpsi.plugin.engine import Progress
from jpsi_engine.host import changed_file_error, local_file_error

# most programs read output, and copy nothing
if TYPE_CHECKING:
    from jpsi_engine.transfer.progress import ProgressCounter
    from jpsi_engine.transfer.trees import Entry

_CHUNK = 1 << 22


class LocalFiles:
    """The files of this machine, which are transferred by copying; implements `JobFiles`."""

    are_local = True

    def put(self, source: str, target: str, progress: Progress | None = None) -> None:
        """Copy a file or a tree; see `JobFiles`."""
        _copy_all(source, _expand_home(target), progress)

    def get(self, source: str, target: str, progress: Progress | None = None) -> None:
        """Copy a file or a tree; see `JobFiles`."""
        _copy_all(_expand_home(source), target, progress)

    def read(self, path: str, offset: int, most: int) -> OutputPart | None:
        """Return the content of a file from an offset on; None if there is no such file. See `JobFiles`."""
        try:
            return _read(_expand_home(path), offset, most)
        except FileNotFoundError:
            return None
        except OSError as e:
            raise local_file_error(path, "read", e) from e


@contextlib.contextmanager
def open_source(path: str) -> Iterator[int]:
    """Open a file of this machine for reading, and yield its descriptor.

    Raises:
        TransferError: the file cannot be read, or the body raised an `OSError`.
    """
    try:
        fd = os.open(path, os.O_RDONLY)
        try:
            yield fd
        finally:
            os.close(fd)
    except OSError as e:
        raise local_file_error(path, "read", e) from e


def _expand_home(path: str) -> str:
    """Expand `~` in a path on the job's side, as a remote host does."""
    return os.path.expanduser(path) if path == "~" or path.startswith("~/") else path  # noqa: PTH111  text


def _copy_all(source: str, target: str, progress: Progress | None) -> None:
    from jpsi_engine.transfer.progress import ProgressCounter  # noqa: PLC0415  as above
    from jpsi_engine.transfer.trees import Kind, make_entries, set_modes, tree  # noqa: PLC0415  as above

    target = os.path.abspath(target)  # noqa: PTH100  text
    entries = tree(source)
    count = ProgressCounter(progress, entries)
    directories = make_entries(entries, target)
    for entry in entries:
        if entry.kind is Kind.FILE:
            _copy(entry, source, target, count)
    set_modes(directories, target)


def _copy(entry: Entry, source_root: str, target_root: str, count: ProgressCounter) -> None:
    from jpsi_engine.transfer.part_files import append, complete, open_part_file  # noqa: PLC0415  as above

    source, target = entry.below(source_root), entry.below(target_root)
    with open_source(source) as read_from, open_part_file(target) as part:
        os.ftruncate(part.fd, 0)
        copied = 0
        while data := os.read(read_from, _CHUNK):
            append(part, data)
            copied += len(data)
            count.add(len(data))
        if copied < entry.size:
            raise changed_file_error(source, "while it was read")
        complete(part, target, entry.mode)


def _read(path: str, offset: int, most: int) -> OutputPart:
    # Opened each time: only then does NFS promise the file's true size.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(found.st_mode):
            return OutputPart(b"", 0, 0)
        start = found.st_size + offset if offset < 0 else offset
        start = start if 0 <= start <= found.st_size else 0
        return OutputPart(os.pread(fd, min(most, found.st_size - start), start), start, found.st_size)
    finally:
        os.close(fd)

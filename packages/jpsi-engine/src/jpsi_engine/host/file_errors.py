"""Makes errors that say why a file could not be read, written or moved, on this machine or a remote host."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from jpsi import TransferError
from jpsi.plugin import BytesResult, SubmitException, TransportError
from jpsi_engine.host.files import is_transient

# The messages of programs in the locale C; the first match counts. A shell has messages of its own.
_ERRNOS = {
    "No space left on device": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "Disc quota exceeded": errno.EDQUOT,
    "File too large": errno.EFBIG,
    "Permission denied": errno.EACCES,
    "Operation not permitted": errno.EPERM,
    "Read-only file system": errno.EROFS,
    "Not a directory": errno.ENOTDIR,
    "Is a directory": errno.EISDIR,
    "File exists": errno.EEXIST,
    "file exists": errno.EEXIST,
    "File name too long": errno.ENAMETOOLONG,
    "Too many levels of symbolic links": errno.ELOOP,
    "Stale file handle": errno.ESTALE,
    "Input/output error": errno.EIO,
    "Cannot allocate memory": errno.ENOMEM,
    "Text file busy": errno.ETXTBSY,
    "No such file or directory": errno.ENOENT,
    "No such file": errno.ENOENT,
    "Directory nonexistent": errno.ENOENT,
}


def parse_os_error(message: str) -> OSError | None:
    """Return the error that a program's message names; None if the message has no known one.

    >>> parse_os_error("cat: write error: No space left on device").errno == errno.ENOSPC
    True
    """
    return next(
        (OSError(code, errno_message(code)) for text, code in _ERRNOS.items() if text in message), None
    )


def errno_message(code: int) -> str:
    """Return the message for a code of errno, in a text that is the same on all systems."""
    return next((text for text, known in _ERRNOS.items() if known == code), f"error {code}")


def local_file_error(path: str, what: str, error: OSError) -> TransferError:
    """Return the error for a file of this machine; `what` is what failed, as in "read"."""
    reason = error.strerror or str(error)
    return TransferError(f"{path} cannot be {what}: {reason}", error, transient=is_transient(error))


@contextlib.contextmanager
def convert_os_errors(what: str, directory: str | None = None, exists: str | None = None) -> Iterator[None]:
    """Raise SubmitException in place of an OSError.

    Args:
        what: what failed, as a sentence.
        directory: where files were to be written, for the message about a full disk.
        exists: the message if a file exists that was to be made; None for `what`.
    """
    try:
        yield
    except OSError as e:
        if exists is not None and isinstance(e, FileExistsError):
            raise SubmitException(exists, e) from e
        raise SubmitException(f"{what}: {_describe_error(e, directory)}", e, transient=is_transient(e)) from e


def _describe_error(error: OSError, directory: str | None) -> str:
    """Return an error as text; if the disk is full, with the directory and the space that is free there."""
    if error.errno not in {errno.ENOSPC, errno.EDQUOT} or directory is None:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)!r}: "
        whose = f" (the work directory is {directory!r})" if directory and where else ""
        return f"{where}{error.strerror or error}{whose}"
    try:
        existing = next(it for it in (Path(directory), *Path(directory).parents) if it.exists())
        free = shutil.disk_usage(existing).free / 2**20
    except OSError:
        return str(error)
    quota = ", but your quota is used up" if error.errno == errno.EDQUOT else ""
    return f"{error.strerror}: {free:.1f} MiB are free in {directory}{quota}; make room there"


class RemoteTimeoutError(TransportError):
    """The error of a command about a remote file that timed out: the line may be cut, or the file slow."""


def remote_file_error(path: str, what: str, result: BytesResult) -> TransferError | TransportError:
    """Return the error for a file of a remote host, from the result of a command; `what` is as in "read"."""
    file = f"{path}, where jobs run,"
    if result.timed_out:
        msg = f"{file} could not be {what}: no answer in time"
        return RemoteTimeoutError(msg, transient=True, may_have_run=True)
    cause = parse_os_error(result.stderr)
    if cause is not None:
        msg = f"{file} cannot be {what}: {cause.strerror}"
        return TransferError(msg, cause, transient=is_transient(cause))
    message = " ".join(result.stderr.split())[-_MAX_MESSAGE_LENGTH:]
    message = message or f"exit code {result.returncode}, and no error message"
    return TransferError(f"{file} cannot be {what}: {message}")


def changed_file_error(path: str, what: str) -> TransferError:
    """Return the error for a file that changed meanwhile; `what` says when, as in "while it was read"."""
    return TransferError(f"{path} has changed {what}", transient=True)


# The length of a program's message in an error, in characters.
_MAX_MESSAGE_LENGTH = 500

"""Makes errors that say why a file could not be read, written or moved, on this machine or a remote host."""

from __future__ import annotations

import errno

from jpsi import TransferError
from jpsi.plugin import BytesResult, TransportError
from jpsi_engine.host.files import is_transient

# The messages of programs in the locale C; the first match counts. A shell has messages of its own.
_WORDS = {
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


def cause_of(words: str) -> OSError | None:
    """Return the error that a program's message names; None if the message has no known one.

    >>> cause_of("cat: write error: No space left on device").errno == errno.ENOSPC
    True
    """
    return next((OSError(code, phrase(code)) for said, code in _WORDS.items() if said in words), None)


def phrase(code: int) -> str:
    """Return the message for a code of errno, in words that are the same on all systems."""
    return next((said for said, known in _WORDS.items() if known == code), f"error {code}")


def failed_here(path: str, what: str, error: OSError) -> TransferError:
    """Return the error for a file of this machine; `what` is what failed, as in "read"."""
    why = error.strerror or str(error)
    return TransferError(f"{path} cannot be {what}: {why}", error, transient=is_transient(error))


class NoAnswerError(TransportError):
    """The error of a command about a remote file that timed out: the line may be cut, or the file slow."""


def failed_there(path: str, what: str, result: BytesResult) -> TransferError | TransportError:
    """Return the error for a file of a remote host, from the result of a command; `what` is as in "read"."""
    where = f"{path}, where jobs run,"
    if result.timed_out:
        msg = f"{where} could not be {what}: no answer in time"
        return NoAnswerError(msg, transient=True, may_have_run=True)
    cause = cause_of(result.stderr)
    if cause is not None:
        msg = f"{where} cannot be {what}: {cause.strerror}"
        return TransferError(msg, cause, transient=is_transient(cause))
    said = " ".join(result.stderr.split())[-_LENGTH:] or f"exit code {result.returncode} without a word"
    return TransferError(f"{where} cannot be {what}: {said}")


def changed(path: str, what: str) -> TransferError:
    """Return the error for a file that changed meanwhile; `what` says when, as in "while it was read"."""
    return TransferError(f"{path} has changed {what}", transient=True)


# The length of a program's message in an error, in characters.
_LENGTH = 500

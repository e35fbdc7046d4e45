"""Why a file could not be read, written or moved: from what the system here or a program over there says."""

from __future__ import annotations

import errno

from jpsi import TransferError
from jpsi.plugin import BytesResult, TransportError
from jpsi_engine.host.files import is_transient

# What programs say in the locale C; the first that is found holds. A shell has words of its own.
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
    """What a program complains of; None if that is not one of the usual things.

    >>> cause_of("cat: write error: No space left on device").errno == errno.ENOSPC
    True
    """
    return next((OSError(code, phrase(code)) for said, code in _WORDS.items() if said in words), None)


def phrase(code: int) -> str:
    """What a code of errno means, in words that are the same everywhere."""
    return next((said for said, known in _WORDS.items() if known == code), f"error {code}")


def failed_here(path: str, what: str, error: OSError) -> TransferError:
    """A file of this machine could not be dealt with; `what` says it, as in "read"."""
    why = error.strerror or str(error)
    return TransferError(f"{path} cannot be {what}: {why}", error, transient=is_transient(error))


class NoAnswerError(TransportError):
    """A question about a file was not answered in time: the line may be cut, or the file be slow."""


def failed_there(path: str, what: str, result: BytesResult) -> TransferError | TransportError:
    """A program over there could not do that to a file."""
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
    """A file did not stay as it was while it was moved; `what` says when, as in "while it was read"."""
    return TransferError(f"{path} has changed {what}", transient=True)


# How much of a complaint an error carries.
_LENGTH = 500

"""The claim: a file that is made exclusively, by whoever runs an attempt or sees to it that nobody does."""

from __future__ import annotations

import os
import re

import attrs

from jpsi.plugin.kit import open_private
from jpsi_engine.host import write_all

#: How the claim of a job begins that does not know its native id.
UNNAMED = "unnamed."
REVOKED = "revoked"
#: What is read in a claim that is damaged: somebody has made it, and nobody knows who.
UNREADABLE = f"{UNNAMED}unreadable"

# What a claim may say: no native id has blanks in it, or what cannot be shown.
_TEXT = re.compile(r"[^\s\x00-\x1f\x7f\ufffd]{0,256}\Z")
# More bytes than any claim has.
_LONGEST = 4096


@attrs.frozen(slots=True)
class Claim:
    """Who runs an attempt."""

    #: The pid of the runner, or its native id; REVOKED; UNREADABLE; or empty if the runner died in between.
    text: str
    time_ns: int


def read_claim(path: str) -> Claim | None:
    """The claim in this file; None if there is none."""
    try:
        # a third of the time of what `open` returns, which counts where there are thousands
        fd = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        return Claim(UNREADABLE, os.stat(path).st_mtime_ns)  # noqa: PTH116  text, as in the spool
    try:
        text = os.read(fd, _LONGEST).decode("utf-8", "replace").strip()
        time_ns = os.fstat(fd).st_mtime_ns
    except IsADirectoryError:
        return Claim(UNREADABLE, os.fstat(fd).st_mtime_ns)
    finally:
        os.close(fd)
    return Claim(checked_text(text), time_ns)


def checked_text(text: str) -> str:
    """Return what stands in a claim, or UNREADABLE for what nobody can have written there.

    >>> checked_text("17[].server"), checked_text("1 7")
    ('17[].server', 'unnamed.unreadable')
    """
    return text if _TEXT.match(text) else UNREADABLE


def revoke(path: str) -> bool:
    """Make the claim so that nobody else can; False if it is made already."""
    try:
        fd = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return False
    try:
        write_all(fd, REVOKED.encode("ascii"))
    finally:
        os.close(fd)
    return True

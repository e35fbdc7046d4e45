"""The claim: a file that is made exclusively, by whoever runs an attempt or sees to it that nobody does."""

from __future__ import annotations

import os

import attrs

from jpsi.contract.private_files import open_private
from jpsi.engine.files import write_all

REVOKED = "revoked"

# More bytes than any claim has.
_LONGEST = 4096


@attrs.frozen(slots=True)
class Claim:
    """Who runs an attempt."""

    #: The pid of the runner, or its native id; REVOKED; or empty if the runner died while writing.
    text: str
    time_ns: int


def read_claim(path: str) -> Claim | None:
    """The claim in this file; None if there is none."""
    try:
        # a third of the time of what `open` returns, which counts where there are thousands
        fd = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        text = os.read(fd, _LONGEST).decode("utf-8", "replace").strip()
        return Claim(text, os.fstat(fd).st_mtime_ns)
    finally:
        os.close(fd)


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

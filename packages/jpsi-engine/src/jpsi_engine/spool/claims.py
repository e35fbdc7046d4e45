"""Reads and makes claims: the exclusive files by which a runner takes an attempt or a client revokes it.

Each attempt has one claim file, which only one process can make. So a revoked attempt never runs, and no
attempt runs twice.
"""

from __future__ import annotations

import os
import re

import attrs

from jpsi_engine.host import write_new

#: The beginning of the claim of a job that does not know its native id.
UNNAMED = "unnamed."
REVOKED = "revoked"
#: The beginning of the claim of a process that starts programs; the intent has the native id then.
STARTER = "starter."
#: The text that stands for a damaged claim: the attempt is claimed, but its runner is unknown.
UNREADABLE = f"{UNNAMED}unreadable"

# The valid texts of a claim: a native id has no blanks and no characters that cannot be printed.
_TEXT = re.compile(r"[^\s\x00-\x1f\x7f\ufffd]{0,256}\Z")
# Longer than any claim, in bytes.
_MAX_BYTES = 4096


@attrs.frozen(slots=True)
class Claim:
    """The claim on an attempt, made by its runner or by a client that revoked it."""

    #: The pid of the runner, or its native id; REVOKED; UNREADABLE; or empty if the runner died while it
    #: wrote.
    text: str
    time_ns: int


def read_claim(path: str) -> Claim | None:
    """Return the claim in this file; None if there is none."""
    try:
        # os.open takes a third of the time of open(), which counts for thousands of claims
        fd = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        return Claim(UNREADABLE, os.stat(path).st_mtime_ns)  # noqa: PTH116  text, as in the spool
    try:
        text = os.read(fd, _MAX_BYTES).decode("utf-8", "replace").strip()
        time_ns = os.fstat(fd).st_mtime_ns
    except IsADirectoryError:
        return Claim(UNREADABLE, os.fstat(fd).st_mtime_ns)
    finally:
        os.close(fd)
    return Claim(validate_claim(text), time_ns)


def is_revoked(claim: Claim | None) -> bool:
    """Return True if this is the claim of a client, so that no runner can make one."""
    return claim is not None and claim.text == REVOKED


def claimant(claim: Claim | None) -> str | None:
    """Return what a runner has written into its claim; None if no runner did, or it died meanwhile."""
    return None if claim is None or claim.text in {"", REVOKED} else claim.text


def starter_of(claim: Claim | None) -> int | None:
    """Return the pid of the process that starts programs and has made a claim; None if none of these did.

    >>> starter_of(Claim("starter.17", 0)), starter_of(Claim("17", 0))
    (17, None)
    """
    pid = claim.text.removeprefix(STARTER) if claim is not None and claim.text.startswith(STARTER) else ""
    return int(pid) if pid.isdecimal() else None


def validate_claim(text: str) -> str:
    """Return the text of a claim, or UNREADABLE if it is not a valid one.

    >>> validate_claim("17[].server"), validate_claim("1 7")
    ('17[].server', 'unnamed.unreadable')
    """
    return text if _TEXT.match(text) else UNREADABLE


def revoke(path: str) -> bool:
    """Make the claim as revoked, so that no runner can make it; return False if there is one already."""
    try:
        write_new(path, REVOKED.encode("ascii"))
    except FileExistsError:
        return False
    return True

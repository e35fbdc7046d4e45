"""Claims where files are elsewhere: shell text that asks for one or makes it, and what the answer says."""

from __future__ import annotations

import attrs

from jpsi.plugin import CommandResult, line, word
from jpsi_engine.spool import REVOKED, UNREADABLE, checked_text

_FREE = "free"
_MADE = "made"
_THERE = "there"


@attrs.frozen(slots=True)
class FarClaim:
    """What is known of a claim over there."""

    #: Whether it was made by asking.
    is_made: bool
    #: What stands in one that was there: as in `Claim`; None if there was none.
    text: str | None


def claim_text(path: str) -> str:
    """Shell text that tells what is known of the claim with this path."""
    return _asked(f"[ ! -e {word(path)} ]", _FREE, path)


def revoke_text(path: str) -> str:
    """Shell text that makes the claim, so that nobody else can, and tells what came of it.

    Where its folder is missing, that is made as well: a submission may be on its way that would make it.
    """
    folder = line("mkdir", "-p", path.rpartition("/")[0])
    writes = f"{line('printf', '%s', REVOKED)} >{word(path)}"
    return _asked(f"( umask 077; {folder}; set -C; {writes} ) 2>/dev/null", _MADE, path)


def _asked(condition: str, says: str, path: str) -> str:
    claim = word(path)
    lines = [
        "{",
        f"if {condition}; then echo {says}",
        f"elif [ -f {claim} ]; then echo {_THERE}; cat {claim}",
        f"elif [ -e {claim} ]; then echo {_THERE}; echo {UNREADABLE}",
        "else exit 1",
        "fi",
        "}",
    ]
    return "\n".join([*lines, ""])


def read_far_claim(result: CommandResult) -> FarClaim | None:
    """What the answer says; None if it says nothing, and nothing is decided."""
    said, newline, text = result.stdout.partition("\n")
    if result.timed_out or result.returncode != 0 or not newline:
        return None
    match said:
        case "free" | "made":
            return FarClaim(is_made=said == _MADE, text=None)
        case "there":
            return FarClaim(is_made=False, text=checked_text(text.strip()))
    return None

"""Claims where files are elsewhere: shell text that asks for one or makes it, and what the answer says."""

from __future__ import annotations

import attrs

from jpsi.contract.command import CommandResult
from jpsi.contract.shell import line, word
from jpsi.engine.claims import REVOKED

_GONE = "gone"
_FREE = "free"
_MADE = "made"
_THERE = "there"


@attrs.frozen(slots=True)
class FarClaim:
    """What is known of a claim over there."""

    #: Whether the folder is there in which it would be; without it nothing of the attempt can run.
    has_folder: bool
    #: Whether it was made by asking.
    is_made: bool
    #: What stands in one that was there: as in `Claim`; None if there was none.
    text: str | None


def claim_text(path: str) -> str:
    """Shell text that tells what is known of the claim with this path."""
    return _asked(path, f"elif [ ! -e {word(path)} ]; then echo {_FREE}")


def revoke_text(path: str) -> str:
    """Shell text that makes the claim, so that nobody else can, and tells what came of it."""
    makes = f"( umask 077; set -C; {line('printf', '%s', REVOKED)} >{word(path)} )"
    return _asked(path, f"elif {makes}; then echo {_MADE}")


def _asked(path: str, otherwise: str) -> str:
    folder, claim = word(path.rpartition("/")[0]), word(path)
    lines = [
        "{",
        f"if [ ! -d {folder} ]; then echo {_GONE}",
        otherwise,
        f"elif [ -e {claim} ]; then echo {_THERE}; cat {claim}",
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
        case "gone":
            return FarClaim(has_folder=False, is_made=False, text=None)
        case "free" | "made":
            return FarClaim(has_folder=True, is_made=said == _MADE, text=None)
        case "there":
            return FarClaim(has_folder=True, is_made=False, text=text.strip())
    return None

"""Claims on a remote host: shell text that reads or makes a claim, and the parser of its output.

`RemoteHost` uses it to see if an attempt may still run there, or to revoke it, so that no attempt is
submitted again while an earlier one could run.
"""

from __future__ import annotations

import attrs

from jpsi.plugin import CommandResult, line, word
from jpsi_engine.spool import REVOKED, UNREADABLE, validate_claim


@attrs.frozen(slots=True)
class RemoteClaim:
    """The state of a remote claim."""

    #: True if this request made the claim.
    is_made: bool
    #: The text of a claim that existed before, as in `Claim`; None if there was none.
    text: str | None


def render_claim_query(path: str) -> str:
    """Return shell text that reads the claim with this path."""
    return _render(f"[ ! -e {word(path)} ]", "free", path)


def render_revocation(path: str) -> str:
    """Return shell text that makes the claim, so that no other process can, and prints the outcome.

    If the claim's folder is missing, the text makes it as well, since a submission that would make the folder
    may still arrive.
    """
    folder = line("mkdir", "-p", path.rpartition("/")[0])
    writes = f"{line('printf', '%s', REVOKED)} >{word(path)}"
    return _render(f"( umask 077; {folder}; set -C; {writes} ) 2>/dev/null", "made", path)


def _render(condition: str, outcome: str, path: str) -> str:
    claim = word(path)
    lines = [
        "{",
        f"if {condition}; then echo {outcome}",
        f"elif [ -f {claim} ]; then echo there; cat {claim}",
        f"elif [ -e {claim} ]; then echo there; echo {UNREADABLE}",
        "else exit 1",
        "fi",
        "}",
    ]
    return "\n".join([*lines, ""])


def parse_claim(result: CommandResult) -> RemoteClaim | None:
    """Parse the output; return None if there is no whole answer, so that nothing is decided."""
    status, newline, text = result.stdout.partition("\n")
    if result.timed_out or result.returncode != 0 or not newline:
        return None
    match status:
        case "free" | "made":
            return RemoteClaim(is_made=status == "made", text=None)
        case "there":
            return RemoteClaim(is_made=False, text=validate_claim(text.strip()))
    return None

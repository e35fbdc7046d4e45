"""Where a user's directories are on a machine with files of its own: the question, and its answer."""

from __future__ import annotations

from datetime import timedelta

import attrs

from jpsi.contract.command import Command, CommandResult
from jpsi.model import TransportError

_PATIENCE = timedelta(minutes=1)
_MARK = "jpsi-directory"
# A relative XDG_STATE_HOME counts as none (XDG Base Directory Specification).
_TEXT = f"""\
case ${{XDG_STATE_HOME-}} in /*) ;; *) XDG_STATE_HOME=$HOME/.local/state ;; esac
printf '{_MARK} %s\\n' "$HOME" "$XDG_STATE_HOME/jpsi/work"
"""


@attrs.frozen(slots=True)
class FarDirectories:
    """Directories of the user on a machine with files of its own, as absolute paths."""

    home: str
    #: Where jpsi keeps what jobs need, unless that is configured.
    work: str

    def expanded(self, path: str) -> str:
        """A path over there, in which a leading `~/` is the home directory; a relative one begins there, too.

        >>> FarDirectories("/home/me", "").expanded("~/jobs")
        '/home/me/jobs'
        """
        rest = path[1:].lstrip("/") if path == "~" or path.startswith("~/") else path
        return f"{self.home}/{rest}".rstrip("/") if not rest.startswith("/") else rest


def directories_command() -> Command:
    """The command that asks for them."""
    return Command(["/bin/sh", "-c", _TEXT], timeout=_PATIENCE)


def read_directories(result: CommandResult) -> FarDirectories:
    """What it answers.

    Raises:
        TransportError: it does not say.
    """
    said = [line.partition(" ") for line in result.stdout.splitlines()]
    found = [path for mark, _, path in said if mark == _MARK and path.startswith("/")]
    if result.returncode != 0 or len(found) != 2:  # noqa: PLR2004  home and work
        msg = f"the home directory over there is not known: {result.complaint}"
        raise TransportError(msg, transient=result.timed_out)
    return FarDirectories(*found)

"""The user's directories on a remote host with its own files: the command that finds them, and its output."""

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
class RemoteDirectories:
    """The user's directories on a remote host, as absolute paths."""

    home: str
    #: The directory for jpsi's files of jobs, unless another one is configured.
    work: str

    def expanded(self, path: str) -> str:
        """Return an absolute path on the remote host; `~/` and relative paths begin at the home directory.

        >>> RemoteDirectories("/home/me", "").expanded("~/jobs")
        '/home/me/jobs'
        """
        rest = path[1:].lstrip("/") if path == "~" or path.startswith("~/") else path
        return f"{self.home}/{rest}".rstrip("/") if not rest.startswith("/") else rest


def directories_command() -> Command:
    """Return the command that prints the directories."""
    return Command(["/bin/sh", "-c", _TEXT], timeout=_PATIENCE)


def read_directories(result: CommandResult) -> RemoteDirectories:
    """Read the directories from the output of `directories_command`.

    Raises:
        TransportError: the output does not contain them.
    """
    said = [line.partition(" ") for line in result.stdout.splitlines()]
    found = [path for mark, _, path in said if mark == _MARK and path.startswith("/")]
    if result.returncode != 0 or len(found) != 2:  # noqa: PLR2004  home and work
        msg = f"the home directory over there is not known: {result.complaint}"
        raise TransportError(msg, transient=result.timed_out)
    return RemoteDirectories(*found)

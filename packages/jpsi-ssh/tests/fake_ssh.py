"""A fake of the OpenSSH client: it runs commands on this machine, and fails as a test asks."""

from __future__ import annotations

import subprocess
from pathlib import Path

# It knows the options that jpsi uses. A connection is the file in place of its socket.
_SSH = r"""#!/bin/sh
folder=${0%/*}
printf '%s\n' "$*" >>"$folder/calls"
asks='' connects='' socket=''
while [ $# -gt 0 ]; do
    case $1 in
        -O) asks=1; shift 2 ;;
        -S) socket=$2; shift 2 ;;
        -N) connects=1; shift ;;
        -f | -T) shift ;;
        -o | -l | -p) shift 2 ;;
        --) shift; break ;;
        *) echo "unknown option $1" >&2; exit 255 ;;
    esac
done
if [ -e "$folder/hosts" ] && ! grep -qxF -e "$1" "$folder/hosts"; then
    echo "ssh: Could not resolve hostname $1: Name or service not known" >&2
    exit 255
fi
shift
if [ -n "$asks" ]; then
    [ -e "$socket" ] && ! [ -e "$folder/says" ]
    exit
fi
if [ -e "$folder/says" ]; then
    cat "$folder/says" >&2
    exit 255
fi
if [ -n "$connects" ]; then
    true >"$socket"
    exit
fi
if ! [ -e "$socket" ]; then
    echo "no connection" >&2
    exit 255
fi
sessions=$socket.sessions
mkdir -p "$sessions"
count=0
for session in "$sessions"/*; do
    if kill -0 "${session##*/}" 2>/dev/null; then count=$((count + 1)); else rm -f "$session"; fi
done
if [ "$count" -ge "$(cat "$folder/sessions")" ]; then
    echo 'mux_client_request_session: session request failed: Session open refused by peer' >&2
    exit 255
fi
# remote processes are no children of a local process that is killed, and have signals of their own
setsid /bin/sh -c 'folder=$1 sessions=$2; shift 2
    true >"$sessions/$$"
    if [ -e "$folder/login" ]; then . "$folder/login"; fi
    eval "$*"' sh "$folder" "$sessions" "$@"
"""


class FakeSsh:
    """The fake `ssh`, first on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "ssh"
        program.write_text(_SSH)
        program.chmod(0o755)
        (folder / "calls").touch()
        self.allow(10)

    def allow(self, sessions: int) -> None:
        """Let one connection have so many sessions."""
        (self.folder / "sessions").write_text(f"{sessions}\n")

    def says(self, words: str) -> None:
        """Fail with this error message from now on; if it is empty, work again."""
        if words:
            (self.folder / "says").write_text(f"{words}\n")
        else:
            (self.folder / "says").unlink()

    def know(self, host: str) -> None:
        """Find this host, and no other."""
        (self.folder / "hosts").write_text(f"{host}\n")

    def login(self, text: str) -> None:
        """Let the login shell run this text first; in it `$*` is the command."""
        (self.folder / "login").write_text(text)

    @property
    def calls(self) -> list[str]:
        """The arguments of each run."""
        return (self.folder / "calls").read_text().splitlines()

    @property
    def connections(self) -> int:
        """The number of connections, with those that failed."""
        return sum(" -N " in f" {call}" for call in self.calls)


def sessions(runtime: Path) -> list[int]:
    """Return the process groups of the remote shells that still live."""
    return [int(path.name) for path in runtime.rglob("*.sessions/*") if lives(int(path.name))]


def lives(group: int) -> bool:
    """Return True if any process of a group lives."""
    listed = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, text=True, check=True)
    # one that has ended may not have been collected yet
    return any(
        int(found) == group and not state.startswith("Z")
        for found, state in (line.split() for line in listed.stdout.splitlines())
    )

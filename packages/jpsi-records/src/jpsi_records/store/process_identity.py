"""Names a process so that others can find out whether it has ended.

A dispatcher's lease and the lock file of the database hold such a name. If the process has ended on the same
machine, the next one takes over at once. Process ids are reused, so a name also has the boot id, the pid
namespace and the start time.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

# From proc_pid_stat(5): the indices of fields, counted from the field after the name in parentheses.
_STATE = 0
_START = 19
# Used for what cannot be known without /proc.
_UNKNOWN = "-"
# Used as the start time of a zombie: it has ended, but its parent has not waited for it yet.
_ENDED = "ended"


def name_of_this_process() -> str:
    """Return a new name: host, boot id, pid namespace, pid, start time and a random number."""
    pid = os.getpid()
    return f"{socket.gethostname()} {_place()} {pid} {_started(pid) or _UNKNOWN} {os.urandom(8).hex()}"


def process_has_ended(name: str) -> bool:
    """Return True if a named process has certainly ended; on another machine that is never certain."""
    words = name.split()
    if len(words) != 6:  # noqa: PLR2004  the name is still being written
        return False
    _, boot, space, pid, start, _ = words
    if _UNKNOWN in {boot, start} or f"{boot} {space}" != _place():
        return False
    now = _started(int(pid))
    return not _is_there(int(pid)) if now is None else now != start


def describe_process(name: str) -> str:
    """Return a process name in the form that users need to find the process.

    >>> describe_process("node1 b6a2 pid:[4026531836] 12 3456 9f")
    'process 12 on node1'
    """
    host, _, _, pid, *_ = (*name.split(), *["?"] * 4)
    return f"process {pid} on {host}"


def _place() -> str:
    """Return the boot id of this machine and the pid namespace of this process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{_UNKNOWN} {_UNKNOWN}"


def _started(pid: int) -> str | None:
    """Return the start time of a process; None if it does not exist or is hidden."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2]
    except OSError:
        return None
    state, start = fields.split()[_STATE], fields.split()[_START]
    return _ENDED if state in "ZX" else start


def _is_there(pid: int) -> bool:
    """Return True if a process with this pid exists, even where /proc hides it (hidepid)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True

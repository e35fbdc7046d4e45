"""Names of processes for all times and machines, and which of them are known to have ended."""

from __future__ import annotations

import os
import socket
from pathlib import Path

# Of proc_pid_stat(5): the start time, counted from behind the name in parentheses.
_START = 19
_STATE = 0
# What is not known where there is no /proc.
_UNKNOWN = "-"
# In place of the start time of a process that only its parent has yet to take notice of.
_ENDED = "ended"


def name_of_this_process() -> str:
    """A new name of this process: the host, its boot, who counts pids, the pid, since when, and a number."""
    pid = os.getpid()
    return f"{socket.gethostname()} {_place()} {pid} {_started(pid) or _UNKNOWN} {os.urandom(8).hex()}"


def process_has_ended(name: str) -> bool:
    """Whether the process with a name is known to have ended; of another machine that is never known."""
    words = name.split()
    if len(words) != 6:  # noqa: PLR2004  it is just being written
        return False
    _, boot, space, pid, start, _ = words
    if _UNKNOWN in {boot, start} or f"{boot} {space}" != _place():
        return False
    now = _started(int(pid))
    return not _is_there(int(pid)) if now is None else now != start


def describe_process(name: str) -> str:
    """A process as a user looks for it.

    >>> describe_process("node1 b6a2 pid:[4026531836] 12 3456 9f")
    'process 12 on node1'
    """
    host, _, _, pid, *_ = (*name.split(), *["?"] * 4)
    return f"process {pid} on {host}"


def _place() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{_UNKNOWN} {_UNKNOWN}"


def _started(pid: int) -> str | None:
    """When a process was started; None if it is not there, or cannot be seen."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2]
    except OSError:
        return None
    state, start = fields.split()[_STATE], fields.split()[_START]
    return _ENDED if state in "ZX" else start


def _is_there(pid: int) -> bool:
    """Whether there is a process with this pid, also where /proc hides those of other users (hidepid)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True

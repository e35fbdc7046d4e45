"""Identifies processes, by pid and start time, and lists the processes of a session.

The local engine follows, signals and recovers its jobs by these identities, since the system gives a pid to
another process later. On Linux the answers come from /proc (proc(5)), on other systems from ps(1).
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import attrs

#: The value of `boot_id` if the system has no name for a boot.
NO_BOOT = "0"
#: The start time of a process that is gone, or whose start time is unknown: no process has it.
UNKNOWN_START = 0

_NATIVE_ID = re.compile(r"(\d+)(?:\.(\d+)(?:\.([0-9a-f]+))?)?\Z")
# proc(5), since Linux 4.7
_UMASK = re.compile(rb"^Umask:\t([0-7]+)$", re.MULTILINE)
# What processes inherit, besides limits and priority (proc(5), /proc/PID/status).
_INHERITED = re.compile(
    rb"^(?:Uid|Gid|Groups|Cap\w+|NoNewPrivs|Seccomp|Cpus_allowed|Mems_allowed):.*$", re.MULTILINE
)
_HAS_PROC = Path("/proc/self/stat").exists()
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# the clock by which proc(5) counts start times
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
# Indices of the fields after the name in parentheses (proc(5), /proc/PID/stat).
_STATE, _PARENT, _SESSION, _START = 0, 1, 3, 19


@attrs.frozen(slots=True)
class ProcessId:
    """A unique process: the system uses a pid again, but not with the same start time."""

    pid: int
    #: In clock ticks since boot on Linux, in seconds since 1970 on other systems.
    start: int

    @property
    def native_id(self) -> str:
        """The id as users see it: `<pid>.<start>.<boot>`."""
        return f"{self.pid}.{self.start}.{boot_id()}"

    def is_alive(self) -> bool:
        """Return True if this very process still runs; a zombie does not."""
        found = _read_state(self.pid)
        return found is not None and found[1] == self.start and found[0] not in "ZX"

    def parent(self) -> int | None:
        """Return the pid of its parent, also of a zombie; None if this very process exists no more."""
        found = _read_state(self.pid)
        return None if found is None or found[1] != self.start else found[2]


@functools.cache
def boot_id() -> str:
    """Return a short name of the current boot; pids and start times of another boot mean nothing."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
    except OSError:
        return NO_BOOT


def inherited_state() -> tuple[str | None, object]:
    """Return the umask of this process, as umask(1) prints it, and what else its children inherit.

    The umask is None if only setting it would show it. Of the rest, only that it is equal means anything.
    """
    try:
        fd = os.open("/proc/self/status", os.O_RDONLY)
        try:
            status = os.read(fd, 8192)
        finally:
            os.close(fd)
    except OSError:
        return None, None
    found = _UMASK.search(status)
    limits = [resource.getrlimit(it) for it in _LIMITS]
    rest = (_INHERITED.findall(status), limits, os.getpriority(os.PRIO_PROCESS, 0))
    return None if found is None else found[1].decode("ascii"), rest


_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


def parse_native_id(native_id: str) -> ProcessId | None:
    """Return the process that a native id or a plain pid means; None if it is not one of this boot.

    A plain pid means the process that has it now; the result is None if there is no such process.
    """
    match = _NATIVE_ID.match(native_id)
    if match is None:
        return None
    pid, start, boot = int(match[1]), match[2], match[3]
    if boot is not None and boot != boot_id():
        return None
    return identify(pid) if start is None else ProcessId(pid, int(start))


def identify(pid: int) -> ProcessId | None:
    """Return the process that has this pid now; None if there is none."""
    found = _read_state(pid)
    return None if found is None else ProcessId(pid, found[1])


def start_tick() -> int:
    """Return the start time that a process started now would have."""
    return time.clock_gettime_ns(_CLOCK) * _TICKS_PER_SECOND // 1_000_000_000


def identify_started(pid: int, tick_before: int) -> ProcessId | None:
    """Return the process that was just started under this pid, when `start_tick` was `tick_before`.

    The kernel makes readers of /proc/PID wait while that process executes its program. If the clock has not
    advanced since, the start time is known without that wait.
    """
    if _HAS_PROC and start_tick() == tick_before:
        return ProcessId(pid, tick_before)
    return identify(pid)


def seconds_since_start(process: ProcessId) -> float | None:
    """Return the age of a process of this boot, in seconds; None if only the wall clock could give it."""
    if not _HAS_PROC or process.start == UNKNOWN_START:
        return None
    return (start_tick() - process.start) / _TICKS_PER_SECOND


def command_line(pid: int) -> str:
    """Return the command line of a process, its words joined by NUL; empty if it is unknown."""
    if not _HAS_PROC:
        return "\0".join(_ps("-o", "command=", "-p", str(pid)))
    try:
        return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return ""


def find_leader(variable: str) -> ProcessId | None:
    """Return the oldest leader of a session with this variable, as `NAME=value`; None if there is none."""
    wanted, found = b"\0%s\0" % os.fsencode(variable), []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc") if _HAS_PROC else ())):  # noqa: PTH208  as below
        with contextlib.suppress(OSError):
            fields = _read_stat(pid)
            is_leader = fields is not None and int(fields[_SESSION]) == pid
            if fields and is_leader and wanted in b"\0%s" % Path(f"/proc/{pid}/environ").read_bytes():
                found.append(ProcessId(pid, int(fields[_START])))
    return min(found, key=lambda it: it.start, default=None)


def belongs_to_user(pid: int) -> bool:
    """Return True if the user of this process may signal that one."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def session(leader: ProcessId) -> list[int]:
    """Return the pids of the session that a process leads, or led before it ended; without zombies.

    The kernel gives no process the pid of a session that still has members. If another process has this pid,
    the session has no members left.
    """
    found = _read_state(leader.pid)
    if leader.start == UNKNOWN_START or (found is not None and found[1] != leader.start):
        return []
    return list(_members(leader.pid) if _HAS_PROC else _members_by_ps(leader.pid))


def _members(session_id: int) -> Iterator[int]:
    for name in os.listdir("/proc"):  # noqa: PTH208  thousands of entries, names only
        if name.isdigit():
            fields = _read_stat(int(name))
            if fields is not None and int(fields[_SESSION]) == session_id and fields[_STATE] not in "ZX":
                yield int(name)


def _read_state(pid: int) -> tuple[str, int, int] | None:
    """Return the state, the start time and the parent of a process; None if there is none with this pid."""
    if not _HAS_PROC:
        return _read_state_by_ps(pid)
    fields = _read_stat(pid)
    return None if fields is None else (fields[_STATE], int(fields[_START]), int(fields[_PARENT]))


def _read_stat(pid: int) -> list[str] | None:
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            text = os.read(fd, 4096)
        finally:
            os.close(fd)
    except (FileNotFoundError, ProcessLookupError):
        return None  # any other error, such as a lack of descriptors, propagates
    return text[text.rindex(b")") + 2 :].decode("ascii").split() if text else None


def _read_state_by_ps(pid: int) -> tuple[str, int, int] | None:
    rows = _ps("-o", "stat=", "-o", "ppid=", "-o", "lstart=", "-p", str(pid))
    if not rows:
        return None
    state, parent, started = rows[0].strip().split(maxsplit=2)
    start = int(time.mktime(time.strptime(started.strip(), "%a %b %d %H:%M:%S %Y")))
    return state[:1], start, int(parent)


def _members_by_ps(session_id: int) -> Iterator[int]:
    # A job's processes keep its process group; ps(1) of macOS prints no session numbers.
    for row in _ps("-A", "-o", "pgid=", "-o", "pid="):
        group, pid = row.split()
        if int(group) == session_id:
            yield int(pid)


def _ps(*arguments: str) -> list[str]:
    result = subprocess.run(  # noqa: S603  fixed words and a number
        ["/bin/ps", *arguments], capture_output=True, text=True, check=False, env={"LC_ALL": "C"}
    )
    return result.stdout.splitlines()


# The names of shared file systems in proc_pid_mountinfo(5).
_NETWORK = re.compile(
    r"(nfs|lustre|gpfs|cifs|smb|beegfs|ceph|gluster|9p|afs|panfs|pvfs|orangefs|virtiofs|wekafs|daos|ocfs|gfs|davfs|ncpfs"
    # FUSE hides the actual type, so it counts as shared.
    r"|fuse)"
)
_MOUNTS = "/proc/self/mountinfo"


def is_on_network(path: str) -> bool:
    """Return True if a path is on a network file system; False if the system does not say."""
    try:
        mounts = Path(_MOUNTS).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return False
    return bool(_NETWORK.match(filesystem_type(os.path.realpath(path), mounts)))


def filesystem_type(path: str, mounts: str) -> str:
    r"""Return the type of the file system that an absolute path is on, given the text of mountinfo.

    >>> text = "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:5 / /my\\040home rw shared:1 - nfs4 srv:/ rw\n"
    >>> filesystem_type("/my home/me", text), filesystem_type("/my", text)
    ('nfs4', 'ext4')
    """
    best, found = "", ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:  # noqa: PLR2004  the mount point is the fifth
            continue
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
        is_above = path == point or path.startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= len(best):
            best, found = point, after.split(" ", 1)[0]
    return found

"""On what file system a file is: SQLite's fast journal needs memory that all its users share."""

from __future__ import annotations

from pathlib import Path

# Of mount(8): those that several machines may have mounted.
_NETWORK = frozenset(
    [
        *("9p", "afs", "beegfs", "ceph", "cifs", "davfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs"),
        *("nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb2", "smb3", "smbfs", "wekafs"),
    ]
)
_ESCAPES = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


def is_shared(kind: str) -> bool:
    """Whether a file system of this type may be that of several machines.

    >>> is_shared("nfs4"), is_shared("fuse.sshfs"), is_shared("ext4")
    (True, True, False)
    """
    # What is behind FUSE nobody knows.
    return kind in _NETWORK or kind.startswith("fuse")


def type_of(path: str, mountinfo: str) -> str:
    """The type of the file system that an absolute path is on; empty if that is not known.

    Args:
        path: without symbolic links.
        mountinfo: the text of /proc/self/mountinfo, see proc_pid_mountinfo(5).
    """
    found, longest = "", -1
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:  # noqa: PLR2004  the mount point is the fifth
            continue
        point = fields[4]
        for escape, character in _ESCAPES.items():
            point = point.replace(escape, character)
        inside = point in {"/", path} or path.startswith(f"{point}/")
        # of several mounts at one point the last is on top
        if inside and len(point) >= longest:
            found, longest = after.split(" ")[0], len(point)
    return found


def is_on_network(path: Path) -> bool:
    """Whether the file system of a path may be that of several machines; where nobody tells, it is not."""
    try:
        mountinfo = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return False
    return is_shared(type_of(str(path.resolve()), mountinfo))

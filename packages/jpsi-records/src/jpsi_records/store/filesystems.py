"""The type of a file's file system: SQLite's write-ahead log needs memory that all users share."""

from __future__ import annotations

from pathlib import Path

# From mount(8): the types that several machines may have mounted.
_NETWORK = frozenset(
    [
        *("9p", "afs", "beegfs", "ceph", "cifs", "davfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs"),
        *("nfs", "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb2", "smb3", "smbfs", "wekafs"),
    ]
)
_ESCAPES = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


def is_shared(kind: str) -> bool:
    """Return True if several machines may have mounted a file system of this type.

    >>> is_shared("nfs4"), is_shared("fuse.sshfs"), is_shared("ext4")
    (True, True, False)
    """
    # FUSE hides the actual type, so it counts as shared.
    return kind in _NETWORK or kind.startswith("fuse")


def type_of(path: str, mountinfo: str) -> str:
    """Return the type of the file system of an absolute path; empty if it is unknown.

    Args:
        path: the path, without symbolic links.
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
        # The last of several mounts at one point is on top.
        if inside and len(point) >= longest:
            found, longest = after.split(" ")[0], len(point)
    return found


def is_on_network(path: Path) -> bool:
    """Return True if several machines may have mounted a path's file system; False if it is unknown."""
    try:
        mountinfo = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return False
    return is_shared(type_of(str(path.resolve()), mountinfo))

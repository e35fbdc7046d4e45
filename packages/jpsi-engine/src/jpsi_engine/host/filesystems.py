"""Detects network file systems, on which the kernel does not report the writes of other machines.

The batch engine asks it about the directory of markers. On a network file system it scans that directory
instead of waiting for the kernel, and allows more time before a job without an exit marker counts as ended.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

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

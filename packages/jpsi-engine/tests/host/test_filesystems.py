from __future__ import annotations

from pathlib import Path

import pytest

from jpsi_engine.host.procfs import filesystem_type, is_on_network

MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw - nfs4 server:/home rw
31 30 8:2 / /home/local\040disk rw shared:2 - xfs /dev/sdb1 rw
32 22 0:50 / /scratch rw - tmpfs tmpfs rw
33 22 0:51 / /scratch rw - lustre mds:/scratch rw
""".lstrip()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/etc/passwd", "ext4"),
        ("/home", "nfs4"),
        ("/home/me/records", "nfs4"),
        ("/homeless", "ext4"),
        ("/home/local disk/x", "xfs"),
        ("/scratch/x", "lustre"),
    ],
)
def test_the_type_is_that_of_the_innermost_mount(path: str, kind: str) -> None:
    assert filesystem_type(path, MOUNTS) == kind


def test_an_unknown_filesystem_type_is_empty() -> None:
    assert not filesystem_type("/a", "")


def test_the_type_on_this_host_is_known(tmp_path: Path) -> None:
    assert isinstance(is_on_network(str(tmp_path)), bool)

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from jpsi_records.files.permissions import Reader, is_allowed

MODES = [
    (0o400, 1, 10, True),
    (0o077, 1, 10, False),
    (0o040, 2, 10, True),
    (0o404, 2, 10, False),
    (0o004, 2, 20, True),
    (0o770, 2, 20, False),
]


@pytest.mark.parametrize(("mode", "uid", "gid", "is_so"), MODES, ids=lambda it: f"{it:o}")
def test_the_first_match_of_owner_group_and_others_decides(
    mode: int, uid: int, gid: int, is_so: bool
) -> None:
    assert is_allowed(mode, uid, gid, Reader(1, frozenset([10])), stat.S_IRUSR) is is_so


def test_root_may_everything() -> None:
    assert is_allowed(0, 1, 1, Reader(0, frozenset()), stat.S_IRUSR)


def test_files_in_an_unsearchable_directory_are_unreadable() -> None:
    # pytest's own directories are private
    with tempfile.TemporaryDirectory() as directory:
        inner = Path(directory, "a", "b")
        inner.mkdir(parents=True)
        file = inner / "file"
        file.write_text("")
        for path in (file, inner, inner.parent, Path(directory)):
            path.chmod(0o755)
        uid, groups = os.getuid() + 1, frozenset([os.getgid()])

        assert Reader(uid, groups).may_read(file)
        assert not Reader(uid, groups).may_read(inner / "missing")
        inner.parent.chmod(0o700)
        assert not Reader(uid, groups).may_read(file)


def test_an_unknown_user_name_has_no_permissions() -> None:
    assert Reader.of_user_name("no such user") is None
    assert Reader.of_user_name("root") == Reader(0, frozenset(os.getgrouplist("root", 0)))

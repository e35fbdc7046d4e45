"""The directory of records, which is private and which no other user can replace."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fake_dispatcher import spec
from jpsi_records.errors import StoreError
from jpsi_records.records.records import Records


@pytest.mark.parametrize("umask", [0, 0o022, 0o177], ids="{:03o}".format)
def test_directory_and_database_are_private_under_any_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with Records(tmp_path / "way/records") as records:
            records.draft(spec("a"))
            modes = {it.name: stat.S_IMODE(it.lstat().st_mode) for it in tmp_path.rglob("*")}
    finally:
        os.umask(before)

    assert {name: mode for name, mode in modes.items() if mode & 0o077} == {}
    assert (modes["way"], modes["records"], modes["records.sqlite"]) == (0o700, 0o700, 0o600)


def test_a_path_that_others_can_change_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)

    with pytest.raises(StoreError, match=r"the directory of the records .*/open can be written by others"):
        Records(tmp_path / "open/records").draft(spec("a"))

    assert list((tmp_path / "open").iterdir()) == []

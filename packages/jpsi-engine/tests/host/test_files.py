"""Files of the user: what is not there, and what is something else."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from jpsi_engine.host import files
from jpsi_engine.host.files import list_names


def test_a_missing_directory_has_no_names(tmp_path: Path) -> None:
    assert list_names(str(tmp_path / "missing")) == []


def test_a_file_in_place_of_a_directory_is_an_error(tmp_path: Path) -> None:
    """An empty answer would say that the jobs in it do not exist."""
    (tmp_path / "file").touch()

    with pytest.raises(NotADirectoryError):
        list_names(str(tmp_path / "file"))


@pytest.mark.parametrize(("is_free", "expected"), [(False, False), (True, None)])
def test_a_removed_file_counts_as_gone_only_once_no_process_holds_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_free: bool, expected: bool | None
) -> None:
    path = tmp_path / "lock"
    lock, take = files.create_locked(str(path)), files.take_lock
    if is_free:
        os.close(lock)

    def removed_meanwhile(fd: int, seconds: float) -> bool:
        path.unlink()
        return take(fd, seconds)

    monkeypatch.setattr(files, "take_lock", removed_meanwhile)

    with files.hold_lock(str(path), 0.0) as is_held:
        assert is_held is expected

    if not is_free:
        os.close(lock)


def test_a_locked_file_that_the_file_server_has_forgotten_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lock").touch()

    def stale(*_: object) -> bool:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(os.path, "samestat", stale)

    with files.hold_lock(str(tmp_path / "lock"), 0.0) as is_held:
        assert is_held is None

"""File systems without shared locks: a clear error before anything is submitted."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path
from typing import NoReturn

import pytest

import functions_to_call as calls
import jpsi
from jpsi_functions import FunctionExecutor, locks


@pytest.fixture(params=[errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS], ids=["ENOLCK", "EOPNOTSUPP", "ENOSYS"])
def _no_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(fd: int, operation: int) -> NoReturn:
        raise OSError(request.param, "flock")

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.usefixtures("_no_locks")
def test_calls_are_refused_where_files_cannot_be_locked(tmp_path: Path) -> None:
    folder = tmp_path / "calls"
    folder.mkdir(mode=0o700)
    with FunctionExecutor("local", folder=folder) as executor:
        with pytest.raises(jpsi.ConfigError, match=f"{folder}.* has no locks .*with folder="):
            executor.submit(calls.count, str(tmp_path / "ran"), 1)

        assert [*(folder / "local").iterdir()] == []
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("_no_locks")
def test_calls_are_not_recovered_where_files_cannot_be_locked(tmp_path: Path) -> None:
    abandoned = tmp_path / "calls/local/1"
    abandoned.mkdir(parents=True, mode=0o700)

    with (
        FunctionExecutor("local", folder=tmp_path / "calls") as executor,
        pytest.raises(jpsi.ConfigError, match="has no locks"),
    ):
        executor.recover()
    assert abandoned.exists()


def test_a_lock_keeps_others_out_until_it_is_released(tmp_path: Path) -> None:
    with locks.hold_lock(tmp_path / "lock") as first, locks.hold_lock(tmp_path / "lock") as second:
        assert (first, second) == (True, False)
    with locks.hold_lock(tmp_path / "lock") as third:
        assert third

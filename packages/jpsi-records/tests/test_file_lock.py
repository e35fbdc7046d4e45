"""The exclusive lock file, for file systems whose locks cannot be trusted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from fake_dispatcher import spec
from jpsi_records.errors import StoreError
from jpsi_records.model.mounts import GitTree
from jpsi_records.records.records import Records
from jpsi_records.store import database as databases
from jpsi_records.store.database import Database
from jpsi_records.store.file_lock import FileLock

HOLDING = """\
import os, sys
from pathlib import Path
from jpsi_records.store.file_lock import FileLock

with FileLock(Path(sys.argv[1]), timeout=0).acquire():
    os._exit(0)
"""


class WaitingClock:
    """A clock that advances when a process waits, and then runs the next event."""

    def __init__(self, *happens: Callable[[], object]) -> None:
        self.seconds = 0.0
        self._happens = list(happens)

    def __call__(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        if self._happens:
            self._happens.pop(0)()

    def turns(self, path: Path) -> FileLock:
        return FileLock(path, timeout=60, sleep=self.sleep, clock=self)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.sqlite-turn"


def test_a_process_waits_until_the_lock_is_released(path: Path) -> None:
    first = FileLock(path, timeout=0).acquire()
    first.__enter__()
    waiting = WaitingClock(lambda: None, lambda: first.__exit__(None, None, None))

    with waiting.turns(path).acquire():
        assert path.exists()

    assert waiting.seconds > 0
    assert list(path.parent.iterdir()) == []


def test_a_failed_process_releases_the_lock(path: Path) -> None:
    with pytest.raises(RuntimeError), FileLock(path, timeout=0).acquire():
        raise RuntimeError

    assert not path.exists()


def test_the_lock_of_a_killed_process_is_broken(path: Path) -> None:
    subprocess.run([sys.executable, "-c", HOLDING, str(path)], check=True)
    assert path.exists()

    with WaitingClock().turns(path).acquire():
        assert path.exists()

    assert list(path.parent.iterdir()) == []


def test_the_end_of_a_process_on_another_host_is_unknown(path: Path) -> None:
    path.write_text("host2 b00t pid:[1] 17 42 abc")

    with (
        pytest.raises(StoreError, match=rf"process 17 on host2 .* remove {path}"),
        WaitingClock().turns(path).acquire(),
    ):
        pass

    assert path.read_text() == "host2 b00t pid:[1] 17 42 abc"


def test_a_lock_file_that_is_being_written_is_held(path: Path) -> None:
    path.write_text("")

    with WaitingClock(path.unlink).turns(path).acquire():
        assert path.read_text()


def test_a_lock_that_was_broken_and_retaken_is_not_broken_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes detect that the holder has ended, and one of them is slow."""
    subprocess.run([sys.executable, "-c", HOLDING, str(path)], check=True)
    dead = path.read_text()
    waiting = WaitingClock()
    slow = waiting.turns(path)
    real = slow._read_holder
    holders = [dead]
    monkeypatch.setattr(slow, "_read_holder", lambda: holders.pop() if holders else real())

    with WaitingClock().turns(path).acquire():
        mine = path.read_text()
        slow._break_stale_lock()

        assert path.read_text() == mine


def test_a_lock_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    turns = FileLock(tmp_path / "missing" / "turn", timeout=0)

    with pytest.raises(StoreError, match="cannot be created: No such file"), turns.acquire():
        pass


@pytest.mark.parametrize("kind", ["reading", "writing"])
def test_on_a_network_file_system_transactions_are_exclusive(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "is_on_network", lambda path: True)
    database = Database(f"sqlite:///{tmp_path / 'records.sqlite'}")

    with getattr(database, kind)() as tx:
        assert (tmp_path / "records.sqlite-turn").exists()
        assert tx.execute(text("SELECT 1")).scalar() == 1

    assert not (tmp_path / "records.sqlite-turn").exists()


def test_git_is_called_outside_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "is_on_network", lambda path: True)
    monkeypatch.setattr(databases, "_TIMEOUT_SECONDS", 0)
    with Records(tmp_path / "records") as records:

        def fetched(mount: GitTree) -> list[GitTree]:
            records.put(Path(__file__), "meanwhile")
            return [GitTree(tree="a" * 40)]

        monkeypatch.setattr(records.repositories, "resolve", fetched)
        tree = {"kind": "git_tree", "url": "r", "commit": "main"}

        assert records.preview(spec("true", mounts={"/r": tree})).runs

"""The watch on a directory of markers, where the system has inotify."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi_engine.host.directory_watcher import MarkerWatch

pytestmark = pytest.mark.skipif(not os.uname().sysname.startswith("Linux"), reason="needs inotify")


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events"
    path.mkdir()
    return path


@pytest.fixture
def watch(events: Path) -> Iterator[MarkerWatch]:
    made = MarkerWatch(str(events))
    yield made
    made.close()


def is_readable(watch: MarkerWatch) -> bool:
    """Return True if the kernel announced a change; it does so before the call that made it returns."""
    return bool(select.select([watch], [], [], 0)[0])


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  numbers


def test_no_change_is_announced_without_one(watch: MarkerWatch, events: Path) -> None:
    assert not is_readable(watch)


def test_a_file_that_existed_before_is_not_announced(events: Path) -> None:
    (events / "marker").touch()

    watch = MarkerWatch(str(events))

    assert not is_readable(watch)
    watch.close()


def test_new_file_is_announced(watch: MarkerWatch, events: Path) -> None:
    (events / "marker").touch()

    assert is_readable(watch)


def test_file_that_is_moved_in_is_announced(watch: MarkerWatch, events: Path, tmp_path: Path) -> None:
    (tmp_path / "draft").touch()

    (tmp_path / "draft").rename(events / "marker")

    assert is_readable(watch)


def test_a_file_that_is_moved_away_is_not_announced(watch: MarkerWatch, events: Path, tmp_path: Path) -> None:
    (events / "one").touch()
    (events / "other").touch()
    watch.drain()

    (events / "one").rename(tmp_path / "one")
    (events / "other").unlink()

    assert not is_readable(watch)


def test_drained_watch_announces_only_later_files(watch: MarkerWatch, events: Path) -> None:
    for number in range(200):
        (events / str(number)).touch()

    watch.drain()
    before = is_readable(watch)
    (events / "marker").touch()

    assert (before, is_readable(watch)) == (False, True)


def test_drain_returns_the_names_of_new_files(watch: MarkerWatch, events: Path) -> None:
    for name in ("a1.1.active", "b.1.exit.run.0", "é \udc81\n"):
        (events / name).touch()

    assert watch.drain() == {"a1.1.active", "b.1.exit.run.0", "é \udc81\n"}
    assert watch.drain() == set()


def test_draining_without_changes_does_not_block(watch: MarkerWatch) -> None:
    watch.drain()

    assert not is_readable(watch)


def test_a_missing_directory_is_an_error_and_leaks_no_descriptor(tmp_path: Path) -> None:
    before = open_descriptors()

    with pytest.raises(FileNotFoundError, match="missing"):
        MarkerWatch(str(tmp_path / "missing"))

    assert open_descriptors() == before


def test_closed_watch_gives_its_descriptor_back(events: Path) -> None:
    before = open_descriptors()

    MarkerWatch(str(events)).close()

    assert open_descriptors() == before


def test_descriptor_of_a_watch_is_not_inherited(watch: MarkerWatch) -> None:
    assert not os.get_inheritable(watch.fileno())


def test_directory_of_any_name_is_watched(tmp_path: Path) -> None:
    events = tmp_path / "é \udc81\n"
    events.mkdir()
    watch = MarkerWatch(str(events))

    (events / "marker").touch()

    assert is_readable(watch)
    watch.close()


def test_watch_of_a_directory_that_was_removed_is_over(events: Path, watch: MarkerWatch) -> None:
    (events / "marker").touch()
    assert (watch.drain(), watch.is_removed) == ({"marker"}, False)
    (events / "marker").unlink()

    events.rmdir()

    assert is_readable(watch)
    assert (watch.drain(), watch.is_removed) == (set(), True)

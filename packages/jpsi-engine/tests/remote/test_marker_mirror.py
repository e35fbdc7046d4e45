from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from jpsi_engine.remote.marker_mirror import MarkerMirror
from jpsi_engine.spool.spool import Spool
from jpsi_engine.verdict.markers import Marker
from jpsi_testing.threads import in_this_thread

_SECOND = 1_000_000_000


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    spool = Spool(tmp_path / "work")
    spool.open()
    return spool


@pytest.fixture
def mirror(spool: Spool) -> MarkerMirror:
    """Return the mirror of a client with the jobs a1 and a2, at 1000 s."""
    return MarkerMirror(spool.root, {"a1", "a2"}.__contains__, lambda: 1000 * _SECOND)


def _handle_lines(mirror: MarkerMirror, *lines: str) -> bool:
    """Handle the lines of one listing, and return True if a marker has appeared."""
    for line in lines:
        assert not mirror.handle_line(line)
    return mirror.handle_line("all")


def test_a_marker_appears_with_its_time_by_the_local_clock(spool: Spool, mirror: MarkerMirror) -> None:
    (Path(spool.jobs) / "a1").mkdir()

    assert _handle_lines(mirror, "clock 700.0", "marker 690.5 a1.1.active")

    (marker,) = spool.collect(["a1"])["a1"]
    assert (marker.name, marker.time_ns) == ("a1.1.active", 990_500_000_000)


def test_a_marker_that_is_listed_again_appears_once(spool: Spool, mirror: MarkerMirror) -> None:
    (Path(spool.jobs) / "a1").mkdir()
    line = "marker 990 a1.1.exit.run.0"

    assert [_handle_lines(mirror, line), _handle_lines(mirror, line)] == [True, False]
    spool.collect(["a1"])
    assert not _handle_lines(mirror, line)
    assert not list(Path(spool.events).iterdir())


def test_a_remote_marker_is_kept_until_it_is_mirrored(spool: Spool, mirror: MarkerMirror) -> None:
    active = "marker 991 a2.1.active"
    _handle_lines(mirror, "marker 990 a1.1.active", "marker 991 a1.1.exit.run.0", active, active)

    assert mirror.pop_mirrored() == {"a1": ["a1.1.active", "a1.1.exit.run.0"], "a2": ["a2.1.active"]}
    assert mirror.pop_mirrored() == {}


def test_a_marker_that_is_still_listed_may_be_moved_again(mirror: MarkerMirror) -> None:
    _handle_lines(mirror, "marker 990 a1.1.active")
    mirror.pop_mirrored()

    _handle_lines(mirror, "marker 990 a1.1.active")

    assert mirror.pop_mirrored() == {"a1": ["a1.1.active"]}


def test_a_marker_stays_on_the_remote_host_if_the_mirror_cannot_be_written(
    spool: Spool, mirror: MarkerMirror
) -> None:
    Path(spool.events).rmdir()

    with pytest.raises(OSError, match="a1"):
        _handle_lines(mirror, "marker 990 a1.1.active")

    assert mirror.pop_mirrored() == {}
    assert not list(Path(spool.root).glob("a1*"))


@pytest.mark.parametrize(
    "line",
    [
        "marker 990 b1.1.active",
        "marker 990 a1",
        "marker 990 a1.1.no-such",
        "marker 990 ../x",
        "all",
        "noise",
        "",
    ],
)
def test_markers_of_unknown_jobs_leave_nothing_in_the_mirror(
    spool: Spool, mirror: MarkerMirror, line: str
) -> None:
    assert not _handle_lines(mirror, line)
    assert not list(Path(spool.events).iterdir())
    assert mirror.pop_mirrored() == {}


def test_markers_that_no_client_takes_for_a_day_move_to_the_folders_of_their_jobs(spool: Spool) -> None:
    """Every client scans this directory each second, so it must not grow forever."""
    day = 86_400
    mirror = MarkerMirror(spool.root, {"a1"}.__contains__, lambda: 2 * day * _SECOND)

    assert not _handle_lines(
        mirror,
        f"clock {2 * day}",
        f"marker {day - 1} b1.1.active",
        f"marker {day + 1} b2.1.active",
        "marker - b3.1.active",
    )

    assert mirror.pop_mirrored() == {"b1": ["b1.1.active"]}
    assert not list(Path(spool.events).iterdir())


def test_the_callback_precedes_the_appearance_of_a_marker(spool: Spool) -> None:
    calls: list[tuple[str, list[str]]] = []

    def before(marker: Marker) -> None:
        calls.append((marker.name, [it.name for it in Path(spool.events).iterdir()]))

    mirror = MarkerMirror(spool.root, {"a1"}.__contains__, lambda: 1000 * _SECOND, before)
    _handle_lines(mirror, "marker 990 a1.1.active", "marker 991 b1.1.active")
    _handle_lines(mirror, "marker 990 a1.1.active")

    assert calls == [("a1.1.active", [])]


def test_nothing_else_is_left_in_the_mirror(spool: Spool, mirror: MarkerMirror) -> None:
    before = set(Path(spool.root).iterdir())

    _handle_lines(mirror, "marker 990 a1.1.active")

    assert set(Path(spool.root).iterdir()) == before


def test_markers_of_one_listing_appear_in_the_order_of_their_times(
    mirror: MarkerMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    appeared: list[str] = []
    noted = in_this_thread(lambda _, path: appeared.append(Path(path).name), os.rename)
    monkeypatch.setattr(os, "rename", noted)

    names = ["a1.1.exit.run.0", "a1.1.signalled", "a1.1.active"]
    _handle_lines(
        mirror, *(f"marker {time} {name}" for time, name in zip((991, 991, 990), names, strict=True))
    )

    assert appeared == ["a1.1.active", "a1.1.signalled", "a1.1.exit.run.0"]


def test_markers_of_an_incomplete_listing_wait_for_the_rest(spool: Spool, mirror: MarkerMirror) -> None:
    assert not mirror.handle_line("marker 990 a1.1.exit.run.0")

    assert not list(Path(spool.events).iterdir())


def test_two_threads_can_mirror_one_marker_at_the_same_time(
    spool: Spool, mirror: MarkerMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = MarkerMirror(spool.root, {"a1"}.__contains__, lambda: 1000 * _SECOND)
    utime, line = os.utime, "marker 990 a1.1.active"

    def meanwhile(path: str, *, ns: tuple[int, int]) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(os, "utime", utime)
            thread = threading.Thread(target=_handle_lines, args=(other, line))
            thread.start()
            thread.join()
        utime(path, ns=ns)

    with monkeypatch.context() as patched:
        patched.setattr(os, "utime", meanwhile)
        assert _handle_lines(mirror, line)

    assert [path.name for path in Path(spool.events).iterdir()] == ["a1.1.active"]
    assert not list(Path(spool.root).glob("a1.*"))

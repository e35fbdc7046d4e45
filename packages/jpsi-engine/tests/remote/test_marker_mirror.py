from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from jpsi_engine.remote.marker_mirror import MarkerMirror
from jpsi_engine.spool.spool import Spool
from jpsi_engine.verdict.markers import Marker

_SECOND = 1_000_000_000


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    spool = Spool(tmp_path / "work")
    spool.open()
    return spool


@pytest.fixture
def mirror(spool: Spool) -> MarkerMirror:
    """That of somebody whose jobs are a1 and a2, at 1000 s."""
    return MarkerMirror(spool.root, {"a1", "a2"}.__contains__, lambda: 1000 * _SECOND)


def _look(mirror: MarkerMirror, *lines: str) -> bool:
    """One look tells this; returns whether a marker has appeared by it."""
    for line in lines:
        assert not mirror.handle_line(line)
    return mirror.handle_line("all")


def test_a_marker_appears_with_its_time_by_the_clock_here(spool: Spool, mirror: MarkerMirror) -> None:
    (Path(spool.jobs) / "a1").mkdir()

    assert _look(mirror, "clock 700.0", "marker 690.5 a1.1.active")

    (marker,) = spool.collect(["a1"])["a1"]
    assert (marker.name, marker.time_ns) == ("a1.1.active", 990_500_000_000)


def test_a_marker_that_is_told_again_appears_once(spool: Spool, mirror: MarkerMirror) -> None:
    (Path(spool.jobs) / "a1").mkdir()
    line = "marker 990 a1.1.exit.run.0"

    assert [_look(mirror, line), _look(mirror, line)] == [True, False]
    spool.collect(["a1"])
    assert not _look(mirror, line)
    assert not list(Path(spool.events).iterdir())


def test_a_marker_is_needed_over_there_until_it_is_here(spool: Spool, mirror: MarkerMirror) -> None:
    active = "marker 991 a2.1.active"
    _look(mirror, "marker 990 a1.1.active", "marker 991 a1.1.exit.run.0", active, active)

    assert mirror.pop_mirrored() == {"a1": ["a1.1.active", "a1.1.exit.run.0"], "a2": ["a2.1.active"]}
    assert mirror.pop_mirrored() == {}


def test_a_marker_that_is_still_told_may_be_moved_again(mirror: MarkerMirror) -> None:
    _look(mirror, "marker 990 a1.1.active")
    mirror.pop_mirrored()

    _look(mirror, "marker 990 a1.1.active")

    assert mirror.pop_mirrored() == {"a1": ["a1.1.active"]}


def test_where_the_mirror_cannot_be_written_a_marker_stays_over_there(
    spool: Spool, mirror: MarkerMirror
) -> None:
    Path(spool.events).rmdir()

    with pytest.raises(OSError, match="a1"):
        _look(mirror, "marker 990 a1.1.active")

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
def test_what_is_nobodys_leaves_nothing_here(spool: Spool, mirror: MarkerMirror, line: str) -> None:
    assert not _look(mirror, line)
    assert not list(Path(spool.events).iterdir())
    assert mirror.pop_mirrored() == {}


def test_markers_that_nobody_takes_for_a_day_go_to_the_folders_of_their_jobs(spool: Spool) -> None:
    """So that the directory that everybody looks into each second does not grow for ever."""
    day = 86_400
    mirror = MarkerMirror(spool.root, {"a1"}.__contains__, lambda: 2 * day * _SECOND)

    assert not _look(
        mirror,
        f"clock {2 * day}",
        f"marker {day - 1} b1.1.active",
        f"marker {day + 1} b2.1.active",
        "marker - b3.1.active",
    )

    assert mirror.pop_mirrored() == {"b1": ["b1.1.active"]}
    assert not list(Path(spool.events).iterdir())


def test_whoever_sees_a_marker_may_know_more_by_then(spool: Spool) -> None:
    told: list[tuple[str, list[str]]] = []

    def before(marker: Marker) -> None:
        told.append((marker.name, [it.name for it in Path(spool.events).iterdir()]))

    mirror = MarkerMirror(spool.root, {"a1"}.__contains__, lambda: 1000 * _SECOND, before)
    _look(mirror, "marker 990 a1.1.active", "marker 991 b1.1.active")
    _look(mirror, "marker 990 a1.1.active")

    assert told == [("a1.1.active", [])]


def test_nothing_else_is_left_in_the_mirror(spool: Spool, mirror: MarkerMirror) -> None:
    before = set(Path(spool.root).iterdir())

    _look(mirror, "marker 990 a1.1.active")

    assert set(Path(spool.root).iterdir()) == before


def test_markers_of_one_look_appear_in_the_order_in_which_they_were_left(
    mirror: MarkerMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    appeared: list[str] = []
    monkeypatch.setattr("os.rename", lambda _, path: appeared.append(Path(path).name))

    names = ["a1.1.exit.run.0", "a1.1.signalled", "a1.1.active"]
    _look(mirror, *(f"marker {time} {name}" for time, name in zip((991, 991, 990), names, strict=True)))

    assert appeared == ["a1.1.active", "a1.1.signalled", "a1.1.exit.run.0"]


def test_what_is_told_by_half_a_look_waits_for_the_rest(spool: Spool, mirror: MarkerMirror) -> None:
    assert not mirror.handle_line("marker 990 a1.1.exit.run.0")

    assert not list(Path(spool.events).iterdir())


def test_two_of_one_program_that_hear_of_a_marker_at_the_same_time_do_not_disturb_each_other(
    spool: Spool, mirror: MarkerMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = MarkerMirror(spool.root, {"a1"}.__contains__, lambda: 1000 * _SECOND)
    utime, line = os.utime, "marker 990 a1.1.active"

    def meanwhile(path: str, *, ns: tuple[int, int]) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(os, "utime", utime)
            thread = threading.Thread(target=_look, args=(other, line))
            thread.start()
            thread.join()
        utime(path, ns=ns)

    with monkeypatch.context() as patched:
        patched.setattr(os, "utime", meanwhile)
        assert _look(mirror, line)

    assert [path.name for path in Path(spool.events).iterdir()] == ["a1.1.active"]
    assert not list(Path(spool.root).glob("a1.*"))

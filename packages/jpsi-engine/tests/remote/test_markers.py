from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi_engine.remote.markers import (
    ClockDifference,
    RemoteClock,
    RemoteMarker,
    RemoteMarkers,
    parse_line,
    render_moves,
    render_poll,
    render_watch,
)

# Replacements of stat(1): that of Busybox, one of BSD, and none.
_STATS = {
    "gnu": 'exec "$REAL" "$@"',
    "busybox": 'case $2 in *.9Y*) echo "?"; exit ;; esac; exec "$REAL" "$@"',
    "bsd": """[ "$1" = -f ] || exit 1
format=$2; shift 2
case $format in marker*) exec "$REAL" -c 'marker %.9Y %n' "$@" ;; *) exec "$REAL" -c %.9Y "$@" ;; esac""",
    "none": "exit 127",
}


class RemoteWatch:
    def __init__(self, events: Path, stat: str, folder: Path) -> None:
        folder.mkdir()
        program = folder / "stat"
        program.write_text(f"#!/bin/sh\n{_STATS[stat]}\n")
        program.chmod(0o755)
        self.process = subprocess.Popen(
            ["sh", "-c", render_watch(str(events), 0)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "REAL": shutil.which("stat") or ""},
            text=True,
        )

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()

    def next(self) -> list[RemoteMarker]:
        """Return the markers of the next listing that is not empty."""
        found: list[RemoteMarker] = []
        for line in self.process.stdout or ():
            if line == "all\n" and found:
                return found
            parsed = parse_line(line.removesuffix("\n"))
            if isinstance(parsed, RemoteMarker):
                found.append(parsed)
        return found


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "remote host" / "events"
    path.mkdir(parents=True)
    return path


@pytest.fixture(params=_STATS)
def watch(request: pytest.FixtureRequest, events: Path, tmp_path: Path) -> Iterator[RemoteWatch]:
    watch = RemoteWatch(events, request.param, tmp_path / "bin")
    yield watch
    watch.end()


def _left(events: Path, name: str, time_ns: int) -> Path:
    """Make a marker with its time."""
    draft = events.parent / "draft"
    draft.touch()
    os.utime(draft, ns=(time_ns, time_ns))
    return draft.rename(events / name)


def test_markers_are_reported_with_their_times_as_they_appear(events: Path, watch: RemoteWatch) -> None:
    _left(events, "a1.1.active", 1_500_000_000_000_000_000)

    (first,) = watch.next()

    assert first.name == "a1.1.active"
    assert first.time_ns in {None, 1_500_000_000_000_000_000}
    _left(events, "a1.1.exit.run.0", 1_500_000_001_000_000_000)
    assert {marker.name for marker in watch.next()} == {"a1.1.active", "a1.1.exit.run.0"}


@pytest.mark.parametrize("watch", ["gnu", "bsd"], indirect=True)
def test_times_are_exact_if_the_system_has_them(events: Path, watch: RemoteWatch) -> None:
    _left(events, "a1.1.active", 1_500_000_000_123_456_789)

    assert watch.next() == [RemoteMarker("a1.1.active", 1_500_000_000_123_456_789)]


@pytest.mark.parametrize("watch", ["gnu"], indirect=True)
def test_a_file_that_is_no_marker_hides_none(events: Path, watch: RemoteWatch) -> None:
    for name in ("it's", 'a"b', "two words", "line\nbreak", "-x"):
        (events / name).touch()
    _left(events, "a1.1.active", 1_500_000_000_000_000_000)

    assert [marker.name for marker in watch.next()] == ["a1.1.active"]


def test_a_replaced_directory_is_no_longer_watched(tmp_path: Path) -> None:
    """A user may remove the directory, and the next submission makes another one."""
    for name in ("old", "new"):
        (tmp_path / name / "events").mkdir(parents=True)
    (tmp_path / "root").symlink_to("old")
    (tmp_path / "next").symlink_to("new")
    watch = RemoteWatch(tmp_path / "root" / "events", "gnu", tmp_path / "bin")
    try:
        _left(tmp_path / "old" / "events", "a1.1.active", 1_500_000_000_000_000_000)
        watch.next()

        _left(tmp_path / "new" / "events", "b2.1.active", 1_500_000_000_000_000_000)
        (tmp_path / "next").replace(tmp_path / "root")

        assert [marker.name for marker in watch.next()] == ["b2.1.active"]
    finally:
        watch.end()


def test_the_watch_ends_if_the_directory_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    text = render_watch(str(tmp_path / "file" / "events"))

    assert subprocess.run(["sh", "-c", text], capture_output=True, timeout=30, check=False).returncode != 0


def test_a_poll_lists_all_markers_and_ends(events: Path) -> None:
    _left(events, "a1.1.active", 1_500_000_000_000_000_000)

    done = subprocess.run(
        ["sh"], input=render_poll(str(events)), capture_output=True, text=True, timeout=30, check=False
    )

    clock, *lines = done.stdout.splitlines()
    assert isinstance(parse_line(clock), RemoteClock)
    assert lines == ["marker 1500000000.000000000 a1.1.active", "all"]
    assert done.returncode == 0


def test_markers_move_to_their_jobs_and_those_of_unknown_jobs_are_removed(events: Path) -> None:
    folder = events.parent / "jobs" / "a1"
    folder.mkdir(parents=True)
    for name in ("a1.1.active", "a1.1.exit.run.0", "b2.1.active", "c3.1.active"):
        (events / name).touch()

    text = render_moves(
        str(events.parent), {"a1": ["a1.1.active", "a1.1.exit.run.0", "a1.1.gone"], "b2": ["b2.1.active"]}
    )
    subprocess.run(["sh"], input=text, text=True, check=False)

    assert {path.name for path in folder.iterdir()} == {"a1.1.active", "a1.1.exit.run.0"}
    assert [path.name for path in events.iterdir()] == ["c3.1.active"]


def test_a_folder_that_is_removed_as_its_marker_is_moved_stays_removed(
    events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = events.parent / "jobs" / "a1"
    folder.mkdir(parents=True)
    (events / "a1.1.active").touch()
    program = tmp_path / "bin" / "mv"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nrmdir "{folder}"\nexec {shutil.which("mv")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    subprocess.run(
        ["sh"], input=render_moves(str(events.parent), {"a1": ["a1.1.active"]}), text=True, check=False
    )

    assert not list(folder.parent.iterdir())
    assert not list(events.iterdir())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("clock 1700000000.5", RemoteClock(1_700_000_000_500_000_000)),
        ("clock 1700000000.000000001", RemoteClock(1_700_000_000_000_000_001)),
        ("clock 1700000000.N", RemoteClock(1_700_000_000_000_000_000)),
        ("clock 1700000000", RemoteClock(1_700_000_000_000_000_000)),
        ("marker - a.1.active", RemoteMarker("a.1.active", None)),
        ("marker 17 a.1.active", RemoteMarker("a.1.active", 17_000_000_000)),
        ("all", RemoteMarkers()),
        ("clock", None),
        ("clock x", None),
        ("marker 17 ", None),
        ("marker 17", None),
        ("marker 17 a/b.1.active", None),
        ("marker 17 a.1.exit.x/y.0", None),
        ("marker 17 .1.active", None),
        (f"marker 17 {'a' * 200}.1.active", None),
        ("welcome to the cluster", None),
        ("", None),
    ],
)
def test_a_line_is_parsed_or_ignored(line: str, expected: object) -> None:
    assert parse_line(line) == expected


def test_times_are_converted_to_the_local_clock() -> None:
    clocks = ClockDifference()
    clocks.add_sample(1_000, 5_000)
    clocks.add_sample(2_000, 5_900)
    clocks.add_sample(3_000, 9_000)

    assert clocks.to_local(2_500, 10_000) == 6_400


def test_no_time_is_later_than_its_arrival() -> None:
    clocks = ClockDifference()
    clocks.add_sample(1_000, 5_000)

    assert clocks.to_local(2_000, 5_500) == 5_500


def test_the_time_is_the_arrival_if_the_clock_or_the_time_is_unknown() -> None:
    clocks = ClockDifference()
    assert clocks.to_local(2_000, 5_500) == 5_500

    clocks.add_sample(1_000, 5_000)
    assert clocks.to_local(None, 5_500) == 5_500


def test_the_order_of_markers_is_kept() -> None:
    clocks = ClockDifference()
    clocks.add_sample(1_000, 5_000)

    assert clocks.to_local(1_500, 9_000) < clocks.to_local(1_501, 9_000)


def test_the_order_is_kept_as_the_clock_difference_is_refined() -> None:
    clocks = ClockDifference()
    clocks.add_sample(1_000, 5_000)
    before = clocks.to_local(1_500, 9_000)
    clocks.add_sample(2_000, 5_500)

    assert clocks.to_local(1_501, 9_000) == before
    assert clocks.to_local(2_500, 9_000) == 6_000


def test_an_adjusted_clock_is_accepted_after_a_while() -> None:
    clocks = ClockDifference()
    clocks.add_sample(1_000, 5_000)
    for _ in range(20):
        clocks.add_sample(2_000, 8_000)

    assert clocks.to_local(2_500, 9_000) == 8_500

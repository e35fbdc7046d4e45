"""The files that processes share: one process polls at a time, and malformed files count as missing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jpsi.contract.observation import Observation
from jpsi.model.states import JobState
from jpsi_engine.host.procfs import boot_id
from jpsi_engine.scheduler.shared_poll import SharedPoll
from jpsi_engine.scheduler.snapshot import Snapshot, encode

OBSERVATIONS = {"1": Observation(state=JobState.ACTIVE, native_state="RUNNING")}
SNAPSHOT = Snapshot(begun=10.0, ended=11.0, queried=frozenset({"1", "2"}), seen=OBSERVATIONS)
NOW = 12.0


@pytest.fixture
def shared_poll(tmp_path: Path) -> SharedPoll:
    return another_process(tmp_path)


def another_process(root: Path) -> SharedPoll:
    """Return the shared poll of another process."""
    shared_poll = SharedPoll(str(root))
    shared_poll.announce("it", frozenset(), NOW, 1000)
    return shared_poll


def folder(root: Path) -> Path:
    return root / "shared_poll" / boot_id()


def write(root: Path, content: Mapping[str, Any]) -> None:
    (folder(root) / "snapshot.json").write_text(json.dumps(content))


# -------------------------------------------------------------------------------------- the snapshot


def test_a_snapshot_is_read_by_another_process(tmp_path: Path, shared_poll: SharedPoll) -> None:
    shared_poll.write_snapshot("it", SNAPSHOT)

    assert another_process(tmp_path).read_snapshot("it", NOW) == SNAPSHOT


def test_the_own_snapshot_is_not_read_again_unless_there_is_another(
    tmp_path: Path, shared_poll: SharedPoll
) -> None:
    shared_poll.write_snapshot("it", SNAPSHOT)

    assert shared_poll.read_snapshot("it", NOW) is SNAPSHOT
    assert shared_poll.read_snapshot("another", NOW) is None
    newer = attrs.evolve(SNAPSHOT, begun=10.5)
    another_process(tmp_path).write_snapshot("it", newer)
    assert shared_poll.read_snapshot("it", NOW) == newer


def test_there_is_no_snapshot_before_the_first(shared_poll: SharedPoll) -> None:
    assert shared_poll.read_snapshot("it", NOW) is None


def test_a_snapshot_of_another_system_is_ignored(shared_poll: SharedPoll) -> None:
    shared_poll.write_snapshot("another", SNAPSHOT)

    assert shared_poll.read_snapshot("it", NOW) is None


@pytest.mark.parametrize(
    "change",
    [{"begun": 13.0}, {"ended": 13.0}, {"ended": 9.0}, {"begun": float("nan")}],
    ids=["begun in the future", "ended in the future", "ended before it was begun", "no time"],
)
def test_a_snapshot_with_an_impossible_time_is_ignored(
    shared_poll: SharedPoll, change: dict[str, Any]
) -> None:
    shared_poll.write_snapshot("it", attrs.evolve(SNAPSHOT, **change))

    assert shared_poll.read_snapshot("it", NOW) is None


@pytest.mark.parametrize("version", [0, 1, 2, None, "3"])
def test_a_snapshot_of_another_version_is_ignored(
    tmp_path: Path, shared_poll: SharedPoll, version: object
) -> None:
    write(tmp_path, {"version": version, "system": "it", **encode(SNAPSHOT)})

    assert shared_poll.read_snapshot("it", NOW) is None


@pytest.mark.parametrize("field", ["begun", "ended", "queried", "observations", "native_ids", "system"])
def test_an_incomplete_snapshot_is_ignored(tmp_path: Path, shared_poll: SharedPoll, field: str) -> None:
    content = {"version": 3, "system": "it", **encode(SNAPSHOT)}
    del content[field]
    write(tmp_path, content)

    assert shared_poll.read_snapshot("it", NOW) is None


TEXT = json.dumps({"version": 3, "system": "it", **encode(SNAPSHOT)}).encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.binary(max_size=50) | st.integers(0, len(TEXT) - 1).map(lambda length: TEXT[:length]))
def test_torn_and_malformed_snapshots_are_ignored(
    tmp_path: Path, shared_poll: SharedPoll, content: bytes
) -> None:
    (folder(tmp_path) / "snapshot.json").write_bytes(content)

    assert shared_poll.read_snapshot("it", NOW) is None


def test_a_removed_folder_is_made_again(tmp_path: Path, shared_poll: SharedPoll) -> None:
    shutil.rmtree(tmp_path / "shared_poll")
    shared_poll.announce("it", frozenset({"1"}), NOW, 10)

    shared_poll.announce("it", frozenset({"1"}), NOW, 10)

    assert another_process(tmp_path).wanted_by_others("it", NOW) == {"1"}


def test_an_unreadable_snapshot_is_ignored(tmp_path: Path, shared_poll: SharedPoll) -> None:
    (folder(tmp_path) / "snapshot.json").mkdir()

    assert shared_poll.read_snapshot("it", NOW) is None


def test_a_snapshot_that_json_cannot_encode_is_not_shared(shared_poll: SharedPoll) -> None:
    odd = Observation(state=None, native_state="w", details={"toy.x": object()})

    shared_poll.write_snapshot("it", attrs.evolve(SNAPSHOT, seen={"1": odd}))

    assert shared_poll.read_snapshot("it", NOW) is None


def test_files_are_private_and_no_drafts_are_left(tmp_path: Path, shared_poll: SharedPoll) -> None:
    shared_poll.write_snapshot("it", SNAPSHOT)
    with shared_poll.lock_polling():
        pass

    files = list(folder(tmp_path).iterdir())
    assert len(files) == 3
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert {it.stat().st_mode & 0o777 for it in (folder(tmp_path), tmp_path / "shared_poll")} == {0o700}


def test_nothing_is_shared_without_a_boot_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jpsi_engine.scheduler.shared_poll.boot_id", lambda: "0")
    shared_poll = another_process(tmp_path)
    shared_poll.write_snapshot("it", SNAPSHOT)

    assert shared_poll.read_snapshot("it", NOW) == SNAPSHOT
    assert another_process(tmp_path).read_snapshot("it", NOW) is None


# -------------------------------------------------------------------------------------------- the lock


def test_one_process_polls_at_a_time(tmp_path: Path, shared_poll: SharedPoll) -> None:
    other = another_process(tmp_path)

    with shared_poll.lock_polling() as first, other.lock_polling() as second:
        assert (first, second) == (True, False)
    with other.lock_polling() as third:
        assert third


def test_a_killed_process_releases_the_lock(tmp_path: Path, shared_poll: SharedPoll) -> None:
    program = (
        "import sys; from jpsi_engine.scheduler.shared_poll import SharedPoll\n"
        "with SharedPoll(sys.argv[1]).lock_polling() as is_ours:\n"
        "    print(is_ours, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"True\n"
        with shared_poll.lock_polling() as is_ours:
            assert not is_ours
        process.send_signal(signal.SIGKILL)

    with shared_poll.lock_polling() as is_ours:
        assert is_ours


def test_child_that_was_forked_meanwhile_does_not_keep_the_lock(
    tmp_path: Path, shared_poll: SharedPoll
) -> None:
    reader, writer = os.pipe()
    with shared_poll.lock_polling():
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
    try:
        with another_process(tmp_path).lock_polling() as is_ours:
            assert is_ours
    finally:
        os.close(writer)
        os.close(reader)
        os.waitpid(child, 0)


def test_a_process_does_not_wait_on_a_file_system_without_locks(
    shared_poll: SharedPoll, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", refuse)

    with shared_poll.lock_polling() as is_ours:
        assert is_ours


def test_a_process_that_cannot_write_the_folder_polls_alone(tmp_path: Path) -> None:
    (tmp_path / "shared_poll").write_text("in the way")
    shared_poll = another_process(tmp_path)

    with shared_poll.lock_polling() as is_ours:
        assert is_ours
        shared_poll.write_snapshot("it", SNAPSHOT)
    assert shared_poll.read_snapshot("it", NOW) is None
    assert shared_poll.wanted_by_others("it", NOW) == set()


# ------------------------------------------------------------------------------------- announced jobs


def test_the_jobs_of_all_processes_are_polled(tmp_path: Path, shared_poll: SharedPoll) -> None:
    another_process(tmp_path).announce("it", frozenset({"1"}), NOW, 10)
    another_process(tmp_path).announce("it", frozenset({"2", "3"}), NOW, 10)
    another_process(tmp_path).announce("another", frozenset({"4"}), NOW, 10)

    assert shared_poll.wanted_by_others("it", NOW) == {"1", "2", "3"}


def test_the_jobs_of_others_exclude_the_own_ones(shared_poll: SharedPoll) -> None:
    shared_poll.announce("it", frozenset({"1"}), NOW, 10)

    assert shared_poll.wanted_by_others("it", NOW) == set()


def test_the_last_announcement_of_a_process_counts(tmp_path: Path, shared_poll: SharedPoll) -> None:
    other = another_process(tmp_path)
    other.announce("it", frozenset({"1"}), NOW, 10)
    other.announce("it", frozenset({"2"}), NOW, 10)

    assert shared_poll.wanted_by_others("it", NOW) == {"2"}


def test_an_expired_announcement_is_removed_with_its_files(tmp_path: Path, shared_poll: SharedPoll) -> None:
    other = another_process(tmp_path)
    other.announce("it", frozenset({"1"}), NOW, 10)
    (folder(tmp_path) / f"{other._name}.7.new").touch()

    assert shared_poll.wanted_by_others("it", NOW + 11) == set()

    assert not list(folder(tmp_path).glob(f"{other._name}*"))
    other.announce("it", frozenset({"1"}), NOW + 12, 10)
    assert shared_poll.wanted_by_others("it", NOW + 12) == {"1"}


def test_an_announcement_is_renewed_before_it_expires_and_not_each_time(
    tmp_path: Path, shared_poll: SharedPoll
) -> None:
    other = another_process(tmp_path)
    other.announce("it", frozenset({"1"}), NOW, 10)
    file = folder(tmp_path) / f"{other._name}.json"
    first = file.read_text()

    other.announce("it", frozenset({"1"}), NOW + 4, 10)
    assert file.read_text() == first
    other.announce("it", frozenset({"1"}), NOW + 6, 10)
    assert shared_poll.wanted_by_others("it", NOW + 15) == {"1"}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 3}', '{"version": 3, "until": "x"}'])
def test_a_malformed_announcement_is_ignored(tmp_path: Path, shared_poll: SharedPoll, content: str) -> None:
    (folder(tmp_path) / "0123456789abcdef.json").write_text(content)
    another_process(tmp_path).announce("it", frozenset({"1"}), NOW, 10)

    assert shared_poll.wanted_by_others("it", NOW) == {"1"}


def test_folders_of_old_boots_are_removed(tmp_path: Path) -> None:
    old, young = tmp_path / "shared_poll" / "0ld", tmp_path / "shared_poll" / "y0ung"
    for it in (old, young):
        it.mkdir(parents=True)
        (it / "snapshot.json").touch()
    os.utime(old, (1, 1))

    another_process(tmp_path)

    assert not old.exists()
    assert young.exists()

"""The spool: files are complete, private, and each fact is recorded once."""

from __future__ import annotations

import errno
import functools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from jpsi.model.errors import ConfigError
from jpsi_engine.host import files as files_module
from jpsi_engine.host.files import is_transient
from jpsi_engine.spool import encode_status
from jpsi_engine.spool.arrays import ArrayMember, read_link
from jpsi_engine.spool.claims import REVOKED, Claim
from jpsi_engine.spool.roots import LAYOUT
from jpsi_engine.spool.spool import Intent, Spool
from jpsi_engine.verdict.exit_phases import CANCEL, TIMEOUT
from jpsi_engine.verdict.marker_verdict import Stop, has_exit_marker, never_ran_status
from jpsi_engine.verdict.markers import Marker, parse
from jpsi_testing.threads import in_this_thread

NOW = 1_767_225_600.0
DAY = 86_400.0
STOP = Stop(CANCEL, datetime(2026, 1, 1, tzinfo=UTC))
EXIT = "a1.1.exit.run.0"


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    made = Spool(tmp_path / "spool")
    made.open()
    return made


def make(spool: Spool, job_id: str = "a1", attempt: int = 1, intent: dict[str, Any] | None = None) -> None:
    """Write an attempt, and release its lock."""
    os.close(spool.prepare(job_id, attempt, {"id": job_id} if intent is None else intent, "exit 7\n"))


def touch(directory: str, name: str, time: float = NOW) -> Path:
    path = Path(directory, name)
    path.touch()
    os.utime(path, (time, time))
    return path


def marker(name: str) -> Marker:
    made = parse(name, 0)
    assert made is not None
    return made


def files(spool: Spool) -> list[str]:
    """Return every file below the root."""
    root = Path(spool.root)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def in_another_process(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Start another Python process; the caller reads its output and waits for it."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Return the results or errors of calls that threads make at the same moment."""
    results: list[object] = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def run(index: int) -> None:
        barrier.wait(30)
        try:
            results[index] = calls[index]()
        except OSError as e:
            results[index] = e

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


# ---------------------------------------------------------------------------------------- the root


def test_open_makes_the_directories_and_writes_the_layout_version(spool: Spool) -> None:
    assert Path(spool.jobs).is_dir()
    assert Path(spool.events).is_dir()
    assert Path(spool.root, "layout").read_text() == "1\n"


def test_opening_again_changes_nothing(spool: Spool) -> None:
    make(spool)
    before = files(spool)

    Spool(Path(spool.root)).open()

    assert files(spool) == before


@pytest.fixture(params=[0, 0o002, 0o022, 0o077, 0o177, 0o777], ids="umask {:03o}".format)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def test_everything_is_private_whatever_the_umask(tmp_path: Path, umask: None) -> None:
    spool = Spool(tmp_path / "spool")
    spool.open()
    make(spool)
    make(spool, attempt=2)
    spool.revoke("a1", 1)
    spool.stop("a1", 1, STOP)
    spool.finish("a1", 1, {})

    modes = {path: path.stat().st_mode & 0o777 for path in Path(spool.root).rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert Path(spool.root).stat().st_mode & 0o777 == 0o700


def test_parents_that_open_makes_are_private(tmp_path: Path, umask: None) -> None:
    """A user who can write to one of them may replace the root by another directory."""
    spool = Spool(tmp_path / "work" / "local" / "machine")

    spool.open()

    made = [tmp_path / "work", tmp_path / "work" / "local"]
    assert [path.stat().st_mode & 0o022 for path in made] == [0, 0]


@pytest.mark.parametrize("mode", [0o770, 0o720, 0o702, 0o777], ids="{:o}".format)
def test_root_that_others_can_write_to_is_refused(spool: Spool, mode: int) -> None:
    Path(spool.root).chmod(mode)

    refusal = r"can be written by others \(yours, mode .* chmod go-w .* choose another"
    with pytest.raises(ConfigError, match=refusal):
        spool.open()


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755], ids="{:o}".format)
def test_root_that_others_can_only_read_is_accepted(spool: Spool, mode: int) -> None:
    Path(spool.root).chmod(mode)

    spool.open()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_root_of_another_user_is_refused(spool: Spool) -> None:
    os.chown(spool.root, 12345, -1)

    with pytest.raises(ConfigError, match="belongs to user 12345"):
        spool.open()


def test_newer_layout_is_refused(spool: Spool) -> None:
    Path(spool.root, "layout").write_text(f"{LAYOUT + 1}\n")

    with pytest.raises(ConfigError, match=rf"newer jpsi \(layout {LAYOUT + 1}\); upgrade jpsi-core"):
        spool.open()


@pytest.mark.parametrize("text", ["", "x\n", "é", "1.5"])
def test_layout_that_is_no_number_is_refused(spool: Spool, text: str) -> None:
    Path(spool.root, "layout").write_bytes(text.encode())

    with pytest.raises(ConfigError, match="jpsi's work directory"):
        spool.open()


def test_error_names_the_root_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(OSError, match="file"):
        Spool(tmp_path / "file" / "spool").open()


def test_opened_by_many_at_once(tmp_path: Path) -> None:
    results = at_once(*[Spool(tmp_path / "spool").open] * 8)

    assert results == [None] * 8
    assert files(Spool(tmp_path / "spool")) == ["layout"]


# ----------------------------------------------------------------------------------------- attempts


def test_an_attempt_is_written_unchanged(spool: Spool) -> None:
    intent = {"id": "a1", "spec": {"arguments": ["é\n", "\udc81", "🐚", "\x00"]}}

    os.close(spool.prepare("a1", 1, intent, "echo '\udc81é'\n"))

    assert files(spool) == ["jobs/a1/intent.1.json", "jobs/a1/run.1", "layout"]
    assert spool.last_intent("a1") == Intent("a1", 1, intent, None)
    assert Path(spool.folder("a1"), "run.1").read_bytes() == b"echo '\x81\xc3\xa9'\n"


def test_native_id_is_added_to_the_attempt(spool: Spool) -> None:
    lock = spool.prepare("a1", 1, {"id": "a1"}, "")

    spool.started(lock, "12.34.ab")
    os.close(lock)

    assert spool.last_intent("a1") == Intent("a1", 1, {"id": "a1"}, "12.34.ab")


def test_last_attempt_is_the_one_with_the_highest_number(spool: Spool) -> None:
    for attempt in (1, 2, 9, 10):
        make(spool, attempt=attempt, intent={"n": attempt})

    intent = spool.last_intent("a1")

    assert intent is not None
    assert (intent.attempt, intent.content) == (10, {"n": 10})


@pytest.mark.parametrize("content", ["", "{", '{"a": 1', "\x00\x00", "é"], ids=repr)
def test_an_incomplete_intent_counts_as_never_written(spool: Spool, content: str) -> None:
    """A second attempt counts as made, with the spec of the first one."""
    make(spool, intent={"n": 1})
    os.close(spool.prepare("a2", 1, {"n": 2}, ""))
    lock = spool.prepare("a2", 2, {"n": 3}, "")
    spool.started(lock, "12.34.ab")
    os.close(lock)

    Path(spool.folder("a1"), "intent.1.json").write_bytes(content.encode())
    Path(spool.folder("a2"), "intent.2.json").write_bytes(content.encode())

    assert spool.last_intent("a1") is None
    assert spool.last_intent("a2") == Intent("a2", 2, {"n": 2}, None)


@pytest.mark.parametrize("content", ["5", "null", "[]", '"text"'])
def test_a_malformed_intent_is_ignored(spool: Spool, content: str) -> None:
    make(spool)

    Path(spool.folder("a1"), "intent.1.json").write_text(content)

    assert spool.last_intent("a1") is None


def test_job_without_attempt_has_no_intent(spool: Spool) -> None:
    Path(spool.folder("a1")).mkdir()
    Path(spool.jobs, "stray").touch()

    assert [spool.last_intent(job_id) for job_id in ("a1", "a2", "stray")] == [None] * 3
    assert sorted(spool.job_ids()) == ["a1", "stray"]


@pytest.mark.parametrize("attempt", [1, 2])
def test_attempt_is_made_once(spool: Spool, attempt: int) -> None:
    make(spool)
    if attempt == 2:
        make(spool, attempt=2)
    before = {path: Path(spool.root, path).read_bytes() for path in files(spool)}

    with pytest.raises(FileExistsError):
        spool.prepare("a1", attempt, {"id": "another"}, "exit 8\n")

    assert {path: Path(spool.root, path).read_bytes() for path in files(spool)} == before


def test_an_attempt_that_was_made_is_in_no_array(spool: Spool) -> None:
    make(spool)
    make(spool, attempt=2)
    before = files(spool)

    with pytest.raises(FileExistsError):
        spool.link_retry("a1", 2, ArrayMember("array", 7))

    assert files(spool) == before


def test_an_attempt_of_another_array_is_kept(spool: Spool) -> None:
    make(spool)
    spool.link_retry("a1", 2, ArrayMember("one", 1))

    with pytest.raises(FileExistsError):
        spool.link_retry("a1", 2, ArrayMember("other", 1))

    assert spool.last_array_member("a1") == ArrayMember("one", 1)
    spool.unlink_retry("a1", 2)
    assert spool.last_attempt("a1") == 1


@pytest.mark.parametrize("attempt", [1, 2])
def test_one_of_many_threads_makes_the_attempt(spool: Spool, attempt: int) -> None:
    if attempt == 2:
        make(spool)

    results = at_once(*[lambda: spool.prepare("a1", attempt, {"id": "a1"}, "exit 7\n")] * 8)

    (lock,) = [result for result in results if isinstance(result, int)]
    os.close(lock)
    assert sum(isinstance(result, FileExistsError) for result in results) == 7
    assert spool.claim("a1", attempt) is None
    assert f"jobs/a1/run.{attempt}" in files(spool)
    assert not any("json." in path for path in files(spool))


RACING = """
import sys
from pathlib import Path
from jpsi_engine.spool.spool import Spool

spool = Spool(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for job in range(int(sys.argv[2])):
    for attempt in (1, 2):
        try:
            spool.prepare(f"j{job}", attempt, {"of": sys.argv[3]}, sys.argv[3])
        except FileExistsError:
            pass
        else:
            print(f"j{job}.{attempt}")
"""


def test_one_of_two_processes_makes_the_attempt(spool: Spool) -> None:
    count = 60
    racers = [in_another_process(RACING, spool.root, str(count), name) for name in "xy"]
    for racer in racers:
        assert racer.stdout is not None
        racer.stdout.readline()

    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    won = [racer.communicate()[0].split() for racer in racers]

    assert sorted(won[0] + won[1]) == sorted(
        f"j{job}.{attempt}" for job in range(count) for attempt in (1, 2)
    )
    for name, jobs in zip("xy", won, strict=True):
        for job_id, attempt in (job.split(".") for job in jobs):
            assert Path(spool.folder(job_id), f"run.{attempt}").read_text() == name
            assert spool.claim(job_id, int(attempt)) is None, "the loser revoked what the winner had made"


def test_discarded_first_attempt_leaves_nothing(spool: Spool) -> None:
    make(spool)

    spool.discard("a1", 1)

    assert spool.job_ids() == []


def test_discarded_later_attempt_can_never_run_and_the_next_can(spool: Spool) -> None:
    make(spool)
    make(spool, attempt=2)

    spool.discard("a1", 2)
    make(spool, attempt=3)

    claim = spool.claim("a1", 2)
    assert claim is not None
    assert claim.text == REVOKED
    assert spool.claim("a1", 3) is None


@pytest.mark.parametrize("attempt", [1, 2])
def test_discarding_never_raises(spool: Spool, attempt: int) -> None:
    spool.discard("missing", attempt)


@pytest.mark.parametrize("attempt", [1, 2])
def test_discarding_an_attempt_on_a_broken_disk_does_not_raise(
    spool: Spool, monkeypatch: pytest.MonkeyPatch, attempt: int
) -> None:
    def broken(_: object) -> bool:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("jpsi_engine.host.exists", broken)

    spool.discard("a1", attempt)


# ------------------------------------------------------------------------------------ failing writes


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that makes writes of the spool fail, as on a full disk, after so many bytes."""

    def fail_after(count: int) -> None:
        left = [count]

        def write(fd: int, data: bytes) -> int:
            if left[0] <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written = os.write(fd, data[: left[0]])
            left[0] -= written
            return written

        monkeypatch.setattr(files_module, "os", SimpleNamespace(**{**vars(os), "write": write}))

    return fail_after


WRITES: dict[str, Callable[[Spool], object]] = {
    "first attempt": lambda spool: spool.prepare("new", 1, {"id": "new"}, "exit 7\n"),
    "second attempt": lambda spool: spool.prepare("a1", 2, {"id": "a1"}, "exit 7\n"),
    "stop": lambda spool: spool.stop("a1", 1, STOP),
    "final": lambda spool: spool.finish("a1", 1, {"state": "FAILED"}),
}


@pytest.mark.parametrize("bytes_left", [0, 1, 10])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_file_whose_write_fails_does_not_exist(
    spool: Spool, failing: Callable[[int], None], write: Callable[[Spool], object], bytes_left: int
) -> None:
    make(spool)
    before = files(spool)
    failing(bytes_left)

    with pytest.raises(OSError, match="No space left"):
        write(spool)

    assert files(spool) == before
    assert spool.job_ids() == ["a1"]


def test_layout_whose_write_fails_does_not_exist(tmp_path: Path, failing: Callable[[int], None]) -> None:
    spool = Spool(tmp_path / "spool")
    failing(1)

    with pytest.raises(OSError, match="No space left"):
        spool.open()

    assert files(spool) == []


def test_first_attempt_whose_script_cannot_be_written_leaves_nothing(
    spool: Spool, failing: Callable[[int], None]
) -> None:
    failing(len('{"id": "a1"}') + 3)

    with pytest.raises(OSError, match="No space left"):
        spool.prepare("a1", 1, {"id": "a1"}, "exit 7\n")

    assert spool.job_ids() == []


def test_later_attempt_whose_script_cannot_be_written_can_never_run(
    spool: Spool, failing: Callable[[int], None]
) -> None:
    make(spool)
    failing(len('{"id": "a1"}') + 3)

    with pytest.raises(OSError, match="No space left"):
        spool.prepare("a1", 2, {"id": "a1"}, "exit 7\n")

    assert spool.claim("a1", 2) is not None
    assert spool.claim("a1", 1) is None


@pytest.mark.parametrize("bytes_left", range(6))
def test_a_native_id_is_recorded_as_a_whole_or_not_at_all(
    spool: Spool, failing: Callable[[int], None], bytes_left: int
) -> None:
    """Half of it would be the id of another job."""
    make(spool)
    lock = spool.prepare("a2", 1, {"id": "a2"}, "")
    os.close(spool.arrays.prepare("x", {"spec": {}}, [], "", []))
    writes: list[Callable[[], None]] = [
        lambda: spool.record_native_id("a1", 1, "12345"),
        lambda: spool.started(lock, "12345"),
        lambda: spool.arrays.record_native_id("x", "12345"),
    ]

    for write in writes:
        failing(bytes_left)
        with pytest.raises(OSError, match="No space left"):
            write()

    os.close(lock)
    assert [last(spool, job_id).native_id for job_id in ("a1", "a2")] == [None, None]
    assert spool.arrays.read_native_id("x") is None


def test_an_attempt_whose_link_cannot_be_looked_up_leaks_no_lock(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(spool)
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208  numbers

    def broken(_: object) -> bool:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("jpsi_engine.host.exists", broken)
    with pytest.raises(OSError, match="Input/output error"):
        spool.reserve("a1", 2)

    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208
    assert "intent.2.json" not in spool.names("a1")


def test_file_that_is_written_in_pieces_is_whole(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(fd: int, data: bytes) -> int:
        return os.write(fd, data[:3])

    monkeypatch.setattr(files_module, "os", SimpleNamespace(**{**vars(os), "write": write}))

    make(spool, intent={"id": "a1", "more": "x" * 100})

    assert spool.last_intent("a1") == Intent("a1", 1, {"id": "a1", "more": "x" * 100}, None)
    assert Path(spool.folder("a1"), "run.1").read_text() == "exit 7\n"


def test_failures_leak_no_descriptor(spool: Spool, failing: Callable[[int], None]) -> None:
    make(spool)
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208  numbers

    for bytes_left in (0, 5, 15):
        failing(bytes_left)
        for write in WRITES.values():
            with pytest.raises(OSError, match="No space left"):
                write(spool)
    with pytest.raises(FileExistsError):
        spool.prepare("a1", 1, {}, "")

    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208


# ------------------------------------------------------------------------------------ claim and lock


def test_claim_names_the_runner_of_the_attempt(spool: Spool) -> None:
    make(spool)
    path = touch(spool.folder("a1"), "claim.1")
    path.write_text("1234\n")
    os.utime(path, (NOW, NOW))

    assert spool.claim("a1", 1) == Claim("1234", int(NOW * 1e9))
    assert spool.claim("a1", 2) is None
    assert spool.claim("missing", 1) is None


def test_attempt_can_be_revoked_until_it_is_claimed(spool: Spool) -> None:
    make(spool)

    assert spool.revoke("a1", 1)
    assert not spool.revoke("a1", 1)
    claim = spool.claim("a1", 1)
    assert claim is not None
    assert claim.text == REVOKED


def test_claim_of_a_runner_is_not_revoked(spool: Spool) -> None:
    make(spool)
    Path(spool.folder("a1"), "claim.1").write_text("1234\n")

    assert not spool.revoke("a1", 1)
    assert Path(spool.folder("a1"), "claim.1").read_text() == "1234\n"


def test_one_of_many_concurrent_revocations_succeeds(spool: Spool) -> None:
    make(spool)

    assert sorted(map(bool, at_once(*[lambda: spool.revoke("a1", 1)] * 8))) == [False] * 7 + [True]


def last(spool: Spool, job_id: str = "a1") -> Intent:
    intent = spool.last_intent(job_id)
    assert intent is not None
    return intent


def can_lock(spool: Spool, timeout_seconds: float = 0) -> bool:
    with spool.hold_lock("a1", last(spool).attempt, timeout_seconds) as may:
        return may


HOLDING = """
import sys
from pathlib import Path
from jpsi_engine.spool.spool import Spool

lock = Spool(Path(sys.argv[1])).prepare("a1", 1, {"id": "a1"}, "")
print("holds", flush=True)
sys.stdin.read()
"""


def test_an_attempt_locked_by_another_process_is_not_judged(spool: Spool) -> None:
    holder = in_another_process(HOLDING, spool.root)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "holds\n"

    during = can_lock(spool)
    holder.communicate()

    assert (during, can_lock(spool)) == (False, True)


def test_lock_is_acquired_when_its_holder_releases_it_in_time(spool: Spool) -> None:
    holder = in_another_process(HOLDING, spool.root)
    assert holder.stdout is not None
    holder.stdout.readline()

    judged, _ = at_once(lambda: can_lock(spool, 30), holder.communicate)

    assert judged is True


def test_attempt_is_held_while_a_copy_of_its_lock_is_open(spool: Spool) -> None:
    """The runner has such a lock until it has made its claim."""
    lock = spool.prepare("a1", 1, {"id": "a1"}, "")
    heir = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[lock])
    os.close(lock)

    during = can_lock(spool)
    heir.communicate()

    assert (during, can_lock(spool)) == (False, True)


def test_one_process_judges_an_attempt_at_a_time(spool: Spool) -> None:
    make(spool)

    with spool.hold_lock("a1", 1, 0) as first:
        assert (first, can_lock(spool)) == (True, False)
    assert can_lock(spool)


def test_a_removed_attempt_is_not_judged(spool: Spool) -> None:
    make(spool)
    spool.discard("a1", 1)

    with spool.hold_lock("a1", 1, 0) as may:
        assert not may


def test_attempt_that_is_discarded_while_another_process_waits_for_its_lock_is_not_judged(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(spool)
    take_lock = files_module.take_lock

    def late(fd: int, timeout_seconds: float) -> bool:
        spool.discard("a1", 1)
        return take_lock(fd, timeout_seconds)

    monkeypatch.setattr(files_module, "take_lock", late)

    with spool.hold_lock("a1", 1, 0) as may:
        assert not may


# --------------------------------------------------------------------------------- stops and finals


def test_the_first_reason_of_a_stop_is_recorded(spool: Spool) -> None:
    make(spool)

    stops = [spool.stop("a1", 1, it) for it in (STOP, attrs.evolve(STOP, why=TIMEOUT))]

    assert stops == [STOP] * 2
    assert spool.read_stop("a1", 1) == STOP
    assert spool.read_stop("a1", 2) is None


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        ({"repeats": "often"}, attrs.evolve(STOP, why=TIMEOUT, repeats=0)),
        ({"time": "noon"}, Stop(TIMEOUT, datetime.fromtimestamp(0, UTC))),
        ({"time": "noon", "why": 3}, Stop(CANCEL, datetime.fromtimestamp(0, UTC))),
    ],
    ids=str,
)
def test_a_damaged_stop_still_shows_the_request(
    spool: Spool, damage: dict[str, object], expected: Stop
) -> None:
    make(spool)
    path = Path(spool.folder("a1"), "stop.1.json")
    path.write_text(json.dumps({**STOP.content, "why": "timeout", **damage}))
    os.utime(path, (0, 0))

    assert spool.read_stop("a1", 1) == expected


def test_concurrent_stops_of_an_attempt_return_the_same_record(spool: Spool) -> None:
    make(spool)

    requests = [attrs.evolve(STOP, repeats=number) for number in range(8)]

    stops = at_once(*[functools.partial(spool.stop, "a1", 1, it) for it in requests])

    assert stops == [spool.read_stop("a1", 1)] * 8
    assert files(spool) == ["jobs/a1/intent.1.json", "jobs/a1/run.1", "jobs/a1/stop.1.json", "layout"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], False),
        (["intent.1.json"], False),
        (["intent.1.json", "claim.1"], False),
        (["intent.1.json", "a1.1.signalled"], False),
        (["intent.1.json", "a1.1.exit.run.0"], True),
        (["intent.1.json", "a1.1.exit.pre_launch.3"], True),
        (["intent.1.json", "a1.1.signalled", "a1.1.exit.run.0"], True),
        (["intent.1.json", "a1.1.exit.run.0", "get.1"], False),
        (["intent.1.json", "a1.1.exit.run.0", "got.1.1"], True),
        (["intent.1.json", "final.1.json", "get.1"], True),
        (["intent.1.json", "get.1", "intent.2.json", "a1.2.exit.run.0"], True),
        (["intent.1.json", "stop.1.json"], False),
        (["intent.1.json", "stop.1.json", "a1.1.exit.run.143"], False),
        (["intent.1.json", "stop.1.json", "a1.1.exit.run.143", "final.1.json"], True),
        (["intent.1.json", "final.1.json"], True),
        (["intent.1.json", "a1.1.exit.run.0", "intent.2.json"], False),
        (["intent.1.json", "final.1.json", "intent.2.json"], False),
        (["intent.1.json", "intent.2.json", "a1.2.exit.run.0"], True),
        (["intent.1.json", "stop.1.json", "intent.2.json", "a1.2.exit.run.0"], True),
        (["intent.9.json", "intent.10.json", "a1.9.exit.run.0"], False),
        (["intent.9.json", "intent.10.json", "a1.10.exit.run.0"], True),
        (["intent.1.json", "final.1.json.123.456"], False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_attempt_is_final_when_it_need_not_be_followed(
    spool: Spool, names: list[str], expected: bool
) -> None:
    Path(spool.folder("a1")).mkdir()
    for name in names:
        touch(spool.folder("a1"), name)
        if name == "final.1.json":
            spool.finish("a1", 1, encode_status(never_ran_status()))

    assert spool.is_final("a1", has_exit_marker) is expected


def test_a_damaged_final_status_decides_nothing(spool: Spool) -> None:
    make(spool)
    touch(spool.folder("a1"), "final.1.json")

    assert not spool.is_final("a1", has_exit_marker)


def test_missing_job_is_not_final(spool: Spool) -> None:
    Path(spool.jobs, "stray").touch()

    assert not spool.is_final("missing", has_exit_marker)
    assert not spool.is_final("stray", has_exit_marker)


# ------------------------------------------------------------------------------------------ markers


def marker_names(found: dict[str, list[Marker]]) -> dict[str, list[str]]:
    return {job_id: sorted(marker.name for marker in markers) for job_id, markers in found.items()}


def test_collect_returns_markers_and_moves_them_to_the_folder(spool: Spool) -> None:
    make(spool)
    make(spool, "a2")
    touch(spool.events, "a1.1.signalled")
    touch(spool.events, EXIT, NOW + 1)
    touch(spool.events, "a3.1.exit.run.0")

    found = spool.collect(["a1", "a2"])

    assert marker_names(found) == {"a1": [EXIT, "a1.1.signalled"], "a2": []}
    assert {marker.time_ns for marker in found["a1"]} == {int(NOW * 1e9), int((NOW + 1) * 1e9)}
    assert [path.name for path in Path(spool.events).iterdir()] == ["a3.1.exit.run.0"]
    assert Path(spool.folder("a1"), EXIT).stat().st_mtime == NOW + 1


def test_markers_that_were_moved_before_are_found_again(spool: Spool) -> None:
    make(spool)
    touch(spool.events, EXIT)

    first, second = spool.collect(["a1"]), spool.collect(["a1"])

    assert first == second
    assert marker_names(second) == {"a1": [EXIT]}


def test_a_marker_that_was_moved_before_is_found_with_a_new_one(spool: Spool) -> None:
    """Two clients that follow a job may collect at the same moment, and each may move one of its markers."""
    make(spool)
    touch(spool.folder("a1"), "a1.1.signalled")
    touch(spool.events, EXIT)

    assert marker_names(spool.collect(["a1"])) == {"a1": [EXIT, "a1.1.signalled"]}


def test_collect_with_only_new_returns_only_jobs_with_new_markers(spool: Spool) -> None:
    for job_id in ("a1", "a2", "a3"):
        make(spool, job_id)
    touch(spool.events, EXIT)
    touch(spool.folder("a2"), "a2.1.exit.run.0")

    assert marker_names(spool.collect(["a1", "a2", "a3"], only_new=True)) == {"a1": [EXIT]}
    assert spool.collect(["a1", "a2", "a3"], only_new=True) == {}


def test_marker_of_a_job_whose_folder_is_not_visible_yet_is_kept(spool: Spool) -> None:
    """Another host made the folder, and the network file system shows it late."""
    touch(spool.events, EXIT)

    assert spool.collect(["a1"], only_new=True) == {}
    assert marker_names(spool.collect(["a1"])) == {"a1": []}

    make(spool)
    assert marker_names(spool.collect(["a1"], only_new=True)) == {"a1": [EXIT]}


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC], ids=["read-only", "full"])
def test_markers_that_cannot_be_moved_are_returned_nevertheless(
    spool: Spool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    """They are moved once the disk is writable again, and one warning reports the failure."""
    make(spool, "a1")
    touch(spool.events, "a1.1.active")
    touch(spool.events, EXIT)

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", in_this_thread(refuse, os.rename))
        found = [marker_names(spool.collect(["a1"], only_new=True)) for _ in range(3)]

    assert found == [{"a1": ["a1.1.active", EXIT]}] * 3
    assert [it.levelname for it in caplog.records].count("WARNING") == 1
    assert marker_names(spool.collect(["a1"])) == {"a1": ["a1.1.active", EXIT]}
    assert spool.new_markers({"a1"}) == []
    assert caplog.messages[-1] == f"{spool.root} can be written to again"


def test_a_marker_of_a_known_job_without_folder_makes_the_folder(spool: Spool) -> None:
    touch(spool.events, EXIT)

    found = spool.collect(
        ["a1"], only_new=True, enter=lambda job_id: spool.adopt(job_id, 1, ArrayMember("x", 1))
    )

    assert marker_names(found) == {"a1": [EXIT]}


def test_a_job_whose_marker_is_moved_says_which_element_it_is(spool: Spool) -> None:
    """Another process has made the folder, and was killed or waits before it could write that."""
    Path(spool.folder("a1")).mkdir()
    touch(spool.events, EXIT)

    spool.collect(["a1"], enter=lambda job_id: spool.adopt(job_id, 1, ArrayMember("x", 1)))

    assert read_link(spool.folder("a1"), 1) == ArrayMember("x", 1)


def test_markers_that_two_clients_move_at_once_are_all_in_the_folders(spool: Spool) -> None:
    job_ids = [f"j{n}" for n in range(50)]
    for job_id in job_ids:
        make(spool, job_id)
        touch(spool.events, f"{job_id}.1.exit.run.3")

    results = at_once(*[lambda: marker_names(spool.collect(job_ids))] * 4)

    assert results == [{job_id: [f"{job_id}.1.exit.run.3"] for job_id in job_ids}] * 4
    assert list(Path(spool.events).iterdir()) == []


def test_a_marker_that_another_client_moved_is_no_error(spool: Spool) -> None:
    make(spool)
    touch(spool.folder("a1"), EXIT)

    spool.consume(marker(EXIT))

    assert Path(spool.folder("a1"), EXIT).exists()


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EDQUOT])
def test_shortage_is_transient(number: int) -> None:
    assert is_transient(OSError(number, ""))


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOENT, errno.EROFS, errno.ENAMETOOLONG])
def test_permanent_errors_are_not_transient(number: int) -> None:
    assert not is_transient(OSError(number, ""))

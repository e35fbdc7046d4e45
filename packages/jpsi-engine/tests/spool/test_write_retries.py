"""Failed writes of ends: one warning, and retries until the write succeeds."""

from __future__ import annotations

import errno
import logging
import os
import threading

import pytest

from jpsi_engine.spool.write_retries import WriteRetries

READ_ONLY = OSError(errno.EROFS, os.strerror(errno.EROFS))


class Disk:
    """A spool that refuses writes while it is broken."""

    def __init__(self) -> None:
        self.error: OSError | None = READ_ONLY
        self.written: list[str] = []

    def write(self, name: str) -> None:
        if self.error is not None:
            raise self.error
        self.written.append(name)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def pending_writes(monkeypatch: pytest.MonkeyPatch) -> WriteRetries:
    """Return a publisher that retries when a test says so."""
    monkeypatch.setattr(WriteRetries, "_start", lambda self: True)
    return WriteRetries("/work")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [it.getMessage() for it in caplog.records if it.levelno >= logging.WARNING]


def test_a_write_that_succeeds_is_not_deferred(pending_writes: WriteRetries, disk: Disk) -> None:
    disk.error = None

    pending_writes.write("a", lambda: disk.write("a"))

    assert disk.written == ["a"]


def test_a_failed_write_is_retried_until_it_succeeds(pending_writes: WriteRetries, disk: Disk) -> None:
    for name in ("a", "b"):
        pending_writes.write(name, lambda name=name: disk.write(name))

    assert not pending_writes.retry()
    disk.error = None
    assert pending_writes.retry()
    assert pending_writes.retry()

    assert disk.written == ["a", "b"]


def test_failure_and_recovery_of_writes_are_logged_once_each(
    pending_writes: WriteRetries, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b"):
        pending_writes.write(name, lambda name=name: disk.write(name))
        pending_writes.failed(READ_ONLY)
        pending_writes.retry()
    messages = warnings(caplog)
    disk.error = None
    pending_writes.retry()

    assert len(messages) == 1
    assert "Read-only file system" in messages[0]
    assert warnings(caplog)[1:] == ["/work can be written to again"]


def test_a_write_that_succeeds_ends_the_failure_if_none_is_pending(
    pending_writes: WriteRetries, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    pending_writes.failed(READ_ONLY)
    pending_writes.succeeded()
    assert warnings(caplog)[1:] == ["/work can be written to again"]

    pending_writes.write("a", lambda: disk.write("a"))
    pending_writes.succeeded()

    assert len(warnings(caplog)) == 3, "the disk is full once more, and something waits for it"


def test_forked_child_retries_its_own_writes(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(threading.Thread, "start", lambda thread: started.append(thread.name))
    pending_writes = WriteRetries("/work")

    # as after a fork, no thread of an earlier write is alive
    for name in ("a", "b"):
        pending_writes.write(name, lambda name=name: disk.write(name))

    assert started == ["jpsi-write-retries"] * 2


def test_the_last_word_on_something_counts(pending_writes: WriteRetries, disk: Disk) -> None:
    pending_writes.write("a", lambda: disk.write("old"))
    pending_writes.write("a", lambda: disk.write("new"))
    disk.error = None

    pending_writes.retry()

    assert disk.written == ["new"]


def test_a_write_whose_folder_was_removed_is_not_retried(pending_writes: WriteRetries, disk: Disk) -> None:
    pending_writes.write("a", lambda: disk.write("a"))
    disk.error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    assert pending_writes.retry()
    assert disk.written == []

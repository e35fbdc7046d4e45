"""Failed writes of ends: one warning, and retries until the write succeeds."""

from __future__ import annotations

import errno
import logging
import os
import threading

import pytest

from jpsi_engine.spool.retry_writer import RetryWriter
from jpsi_testing.threads import in_this_thread

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
def retry_writer(monkeypatch: pytest.MonkeyPatch) -> RetryWriter:
    """Return a publisher that retries when a test says so."""
    monkeypatch.setattr(RetryWriter, "_start", lambda self: True)
    return RetryWriter("/work")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [it.getMessage() for it in caplog.records if it.levelno >= logging.WARNING]


def test_a_write_that_succeeds_is_not_deferred(retry_writer: RetryWriter, disk: Disk) -> None:
    disk.error = None

    retry_writer.write("a", lambda: disk.write("a"))

    assert disk.written == ["a"]


def test_a_failed_write_is_retried_until_it_succeeds(retry_writer: RetryWriter, disk: Disk) -> None:
    for name in ("a", "b"):
        retry_writer.write(name, lambda name=name: disk.write(name))

    assert not retry_writer.retry()
    disk.error = None
    assert retry_writer.retry()
    assert retry_writer.retry()

    assert disk.written == ["a", "b"]


def test_failure_and_recovery_of_writes_are_logged_once_each(
    retry_writer: RetryWriter, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b"):
        retry_writer.write(name, lambda name=name: disk.write(name))
        retry_writer.failed(READ_ONLY)
        retry_writer.retry()
    messages = warnings(caplog)
    disk.error = None
    retry_writer.retry()

    assert len(messages) == 1
    assert "Read-only file system" in messages[0]
    assert warnings(caplog)[1:] == ["/work can be written to again"]


def test_a_write_that_succeeds_ends_the_failure_if_none_is_pending(
    retry_writer: RetryWriter, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    retry_writer.failed(READ_ONLY)
    retry_writer.succeeded()
    assert warnings(caplog)[1:] == ["/work can be written to again"]

    retry_writer.write("a", lambda: disk.write("a"))
    retry_writer.succeeded()

    assert len(warnings(caplog)) == 3, "the disk is full once more, and something waits for it"


def test_forked_child_retries_its_own_writes(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    start = in_this_thread(lambda thread: started.append(thread.name), threading.Thread.start)
    monkeypatch.setattr(threading.Thread, "start", start)
    retry_writer = RetryWriter("/work")

    # as after a fork, no thread of an earlier write is alive
    for name in ("a", "b"):
        retry_writer.write(name, lambda name=name: disk.write(name))

    assert started == ["jpsi-retry-writer"] * 2


def test_the_last_write_of_a_file_counts(retry_writer: RetryWriter, disk: Disk) -> None:
    retry_writer.write("a", lambda: disk.write("old"))
    retry_writer.write("a", lambda: disk.write("new"))
    disk.error = None

    retry_writer.retry()

    assert disk.written == ["new"]


def test_a_write_whose_folder_was_removed_is_not_retried(retry_writer: RetryWriter, disk: Disk) -> None:
    retry_writer.write("a", lambda: disk.write("a"))
    disk.error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    assert retry_writer.retry()
    assert disk.written == []

"""Errors of files name the file and the cause, and say whether trying again can help."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from jpsi.contract.command import BytesResult
from jpsi.model.errors import SubmitException, TransferError, TransportError
from jpsi_engine.host.file_errors import (
    convert_os_errors,
    local_file_error,
    parse_os_error,
    remote_file_error,
)


def test_a_full_disk_is_reported_with_the_directory_and_the_free_space(tmp_path: Path) -> None:
    directory = tmp_path / "not there yet"

    with (
        pytest.raises(
            SubmitException, match=r"it failed: No space left on device: [\d.]+ MiB are free in "
        ) as raised,
        convert_os_errors("it failed", str(directory)),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")

    assert str(raised.value).endswith(f" MiB are free in {directory}; make room there")


def test_a_full_disk_that_cannot_be_looked_at_is_reported_without_the_free_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr("shutil.disk_usage", fail)

    with pytest.raises(SubmitException, match="No space left"), convert_os_errors("it failed", str(tmp_path)):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("message", "code", "transient"),
    [
        ("cat: write error: No space left on device", errno.ENOSPC, True),
        ("dd: closing output file '/x': Disk quota exceeded", errno.EDQUOT, True),
        ("sh: 3: cannot create /x: Permission denied", errno.EACCES, False),
        ("sh: 3: cannot open /x: No such file", errno.ENOENT, False),
        ("sh: 3: cannot create /x/y: Directory nonexistent", errno.ENOENT, False),
        ("/bin/sh: line 3: /x: cannot overwrite existing file exists", errno.EEXIST, False),
        ("1+0 records in\nIs a directory\nnumber 0", errno.EISDIR, False),
        ("mkdir: cannot create directory '/x': Read-only file system", errno.EROFS, False),
    ],
)
def test_messages_of_programs_are_mapped_to_errno(message: str, code: int, transient: bool) -> None:
    error = remote_file_error("/x", "written", BytesResult(returncode=1, stderr=message))

    assert isinstance(error, TransferError)
    assert isinstance(error.exception, OSError)
    assert (error.exception.errno, error.transient) == (code, transient)
    assert str(error).startswith("/x, where jobs run, cannot be written: ")


def test_an_unknown_message_is_in_the_error() -> None:
    error = remote_file_error("/x", "read", BytesResult(returncode=1, stderr="lustre:\n  gone"))

    assert parse_os_error("lustre: gone") is None
    assert str(error) == "/x, where jobs run, cannot be read: lustre: gone"


def test_a_timeout_is_transient() -> None:
    error = remote_file_error("/x", "read", BytesResult(returncode=-9, timed_out=True))

    assert isinstance(error, TransportError)
    assert error.transient
    assert error.may_have_run


def test_errors_of_this_machine_read_the_same() -> None:
    error = local_file_error("/x", "written", OSError(errno.ENOSPC, "No space left on device"))

    assert str(error) == "/x cannot be written: No space left on device"
    assert error.transient

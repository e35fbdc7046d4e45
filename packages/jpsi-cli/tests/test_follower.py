from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import jpsi
from jpsi_cli.output.follower import Follower
from jpsi_engine.transfer.local_files import LocalFiles


class Pipe:
    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.failures: list[OSError] = []

    def read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += os.read(self.reader, count - len(data))
        return data

    def read_all(self) -> bytes:
        os.close(self.writer)
        self.writer = -1
        with os.fdopen(os.dup(self.reader), "rb") as file:
            return file.read()

    def close(self) -> None:
        for fd in (self.reader, self.writer):
            if fd >= 0:
                os.close(fd)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


def _output(path: Path) -> jpsi.Output:
    return jpsi.Output(LocalFiles(), path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stdout"


def test_a_file_that_appears_and_grows_is_copied_as_it_grows(path: Path, pipe: Pipe) -> None:
    follower = Follower(_output(path), pipe.writer, pipe.failures.append)
    follower.start()

    with path.open("wb", buffering=0) as file:
        for data in (b"one\n", b"\0\xff\r\n", b"three"):
            file.write(data)
            assert pipe.read(len(data)) == data
        file.write(b" and the rest")
        follower.finish()

    assert pipe.read_all() == b" and the rest"
    assert follower.is_mid_line


def test_nothing_is_lost_or_repeated_when_the_end_comes_at_once(path: Path, pipe: Pipe) -> None:
    path.write_bytes(b"all of it\n")
    follower = Follower(_output(path), pipe.writer, pipe.failures.append)

    follower.start()
    follower.finish()

    assert pipe.read_all() == b"all of it\n"
    assert not follower.is_mid_line


def test_a_file_that_never_appears_is_no_output(path: Path, pipe: Pipe) -> None:
    follower = Follower(_output(path), pipe.writer, pipe.failures.append)

    follower.start()
    follower.finish()

    assert pipe.read_all() == b""
    assert follower.unreadable is None


def test_a_truncated_file_is_copied_from_its_beginning(path: Path, pipe: Pipe) -> None:
    """A batch system truncates it when it requeues a job."""
    path.write_bytes(b"the first run\n")
    follower = Follower(_output(path), pipe.writer, pipe.failures.append)
    follower.start()
    pipe.read(14)

    path.write_bytes(b"second\n")
    follower.finish()

    assert pipe.read_all() == b"second\n"


def test_a_read_error_is_reported_at_the_end(path: Path, pipe: Pipe) -> None:
    path.mkdir()
    follower = Follower(_output(path), pipe.writer, pipe.failures.append)

    follower.start()
    follower.finish()

    assert "Is a directory" in str(follower.unreadable)


def test_a_closed_reader_is_reported(path: Path, pipe: Pipe) -> None:
    path.write_bytes(b"unread\n")
    os.close(pipe.reader)
    pipe.reader = -1
    follower = Follower(_output(path), pipe.writer, pipe.failures.append)

    follower.start()
    follower.finish()

    assert [type(error) for error in pipe.failures] == [BrokenPipeError]
    assert follower.unreadable is None


def test_a_full_nonblocking_descriptor_is_waited_for(path: Path, pipe: Pipe) -> None:
    data = os.urandom(1 << 20)
    path.write_bytes(data)
    os.set_blocking(pipe.writer, False)
    follower = Follower(_output(path), pipe.writer, pipe.failures.append)

    follower.start()

    assert pipe.read(len(data)) == data
    follower.finish()
    assert pipe.failures == []


class RemoteFiles:
    """Files of a remote host; each read returns the next result of a list."""

    are_local = False

    def __init__(self, *results: jpsi.OutputPart | jpsi.JpsiError | None) -> None:
        self.results = list(results)
        self.offsets: list[int] = []

    def read(self, path: str, offset: int, most: int) -> jpsi.OutputPart | None:
        self.offsets.append(offset)
        result = self.results.pop(0) if len(self.results) > 1 else self.results[0]
        if isinstance(result, jpsi.JpsiError):
            raise result
        return result

    def put(self, source: str, target: str, progress: object = None) -> None: ...
    def get(self, source: str, target: str, progress: object = None) -> None: ...


CUT = jpsi.TransportError("the connection broke", transient=True)


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jpsi_cli.output.follower._PAUSES", {True: (0.0, 0.0), False: (0.0, 0.0)})


@pytest.mark.usefixtures("_quick")
def test_remote_output_is_read_from_its_last_offset(pipe: Pipe) -> None:
    remote = RemoteFiles(None, jpsi.OutputPart(b"one", 0, 3), CUT, jpsi.OutputPart(b"two", 3, 6), None)
    follower = Follower(jpsi.Output(remote, Path("/remote/stdout")), pipe.writer, pipe.failures.append)

    follower.start()

    assert pipe.read(6) == b"onetwo"
    follower.finish()
    assert remote.offsets[:5] == [0, 0, 3, 3, 6]
    assert follower.unreadable is None


@pytest.mark.usefixtures("_quick")
def test_the_end_of_remote_output_survives_an_outage(pipe: Pipe) -> None:
    remote = RemoteFiles(CUT, CUT, CUT, CUT, jpsi.OutputPart(b"late", 0, 4), jpsi.OutputPart(b"", 4, 4))
    follower = Follower(jpsi.Output(remote, Path("/remote/stdout")), pipe.writer, pipe.failures.append)

    follower.start()
    follower.finish()

    assert pipe.read_all() == b"late"
    assert follower.unreadable is None


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("transient", [True, False])
def test_unreachable_remote_output_is_reported(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch, transient: bool
) -> None:
    monkeypatch.setattr("jpsi_cli.output.follower._RETRY_SECONDS", 0.01)
    error = jpsi.TransferError("/remote/stdout cannot be read", transient=transient)
    follower = Follower(
        jpsi.Output(RemoteFiles(error), Path("/remote/stdout")), pipe.writer, pipe.failures.append
    )

    follower.start()
    follower.finish()

    assert follower.unreadable is error

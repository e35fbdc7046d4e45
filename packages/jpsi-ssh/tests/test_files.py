"""Transfers over the channels of commands, with a fake of ssh."""

from __future__ import annotations

import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import jpsi
from fake_ssh import FakeSsh, sessions
from jpsi.contract.job_files import JobFiles
from jpsi.plugin import BytesTransport, Command, TransportError
from jpsi_engine.transfer.job_files import open_job_files
from jpsi_ssh.transport import SshTransport


@pytest.fixture
def files(transport: SshTransport) -> JobFiles:
    """Return the files of the remote host."""
    return open_job_files(transport)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Make a file of several chunks."""
    path = tmp_path / "source"
    path.write_bytes(os.urandom(20_000_000))
    path.chmod(0o640)
    return path


def test_remote_files_are_accessible(transport: SshTransport) -> None:
    assert isinstance(transport, BytesTransport)
    assert not open_job_files(transport).are_local


def test_any_bytes_are_read_and_printed(transport: SshTransport) -> None:
    data = bytes(range(256)) * 1000 + b"\n0 end\n"

    result = transport.exchange(Command(["sh", "-c", "cat; echo err >&2; exit 3"]), data)

    assert (result.returncode, result.stdout, result.stderr) == (3, data, "err\n")


def test_a_file_survives_a_round_trip(files: JobFiles, source: Path, tmp_path: Path) -> None:
    files.put(str(source), str(tmp_path / "there"))
    files.get(str(tmp_path / "there"), str(tmp_path / "back"))

    assert (tmp_path / "back").read_bytes() == source.read_bytes()
    assert stat.S_IMODE((tmp_path / "back").stat().st_mode) == 0o640


@pytest.mark.parametrize("name", ["a b", "-rf", "new\nline", "q'\"$(x)!", "\udcff", "*"])
def test_any_names_are_kept(files: JobFiles, tmp_path: Path, name: str) -> None:
    tree = tmp_path / "tree" / name
    tree.mkdir(parents=True)
    (tree / name).write_text("x")
    (tree / "link").symlink_to(name)

    files.put(str(tmp_path / "tree"), str(tmp_path / "there"))
    files.get(str(tmp_path / "there"), str(tmp_path / "back"))

    assert (tmp_path / "back" / name / "link").read_text() == "x"


# A remote program that cuts the connection in the middle of its work when the test requests it.
_CUTTING = """#!/bin/sh
if rm "$0.cut" 2>/dev/null; then
    {program} "$@" | head -c 100000
    kill -9 0
fi
exec {program} "$@"
"""


@pytest.mark.parametrize(("direction", "name"), [("put", "cat"), ("get", "dd")])
def test_a_transfer_resumes_after_a_lost_connection(
    ssh: FakeSsh, files: JobFiles, source: Path, tmp_path: Path, direction: str, name: str
) -> None:
    cutting, target = ssh.folder / "bin" / name, tmp_path / "target"
    cutting.parent.mkdir()
    cutting.write_text(_CUTTING.format(program=shutil.which(name)))
    cutting.chmod(0o755)
    ssh.login(f"PATH={cutting.parent}:$PATH; export PATH")
    move = files.put if direction == "put" else files.get
    received: list[int] = []

    def cut(done: int, _: int) -> None:
        if done > 3_000_000 and not received:
            received.append(done)
            cutting.with_suffix(".cut").touch()

    with pytest.raises(TransportError, match="the connection to cluster broke") as raised:
        move(str(source), str(target), cut)
    existed = target.exists()
    again: list[int] = []
    move(str(source), str(target), lambda done, _: again.append(done))

    assert raised.value.transient
    assert not existed
    assert received[0] <= again[1] < 20_000_000
    assert target.read_bytes() == source.read_bytes()
    assert not list(tmp_path.glob(".jpsi-*"))


def test_commands_run_during_transfers(
    ssh: FakeSsh, files: JobFiles, source: Path, runtime: Path, transport: SshTransport, tmp_path: Path
) -> None:
    ssh.allow(3)
    with ThreadPoolExecutor(8) as pool:
        moved = [pool.submit(files.put, str(source), str(tmp_path / f"there{n}")) for n in range(4)]
        results = list(pool.map(lambda n: transport.run(Command(["echo", str(n)])).stdout, range(40)))
        for it in moved:
            it.result()

    assert results == [f"{n}\n" for n in range(40)]
    assert len(sessions(runtime)) == 2
    assert all((tmp_path / f"there{n}").stat().st_size == 20_000_000 for n in range(4))


def test_a_full_remote_disk_is_a_transient_error(
    ssh: FakeSsh, files: JobFiles, source: Path, tmp_path: Path
) -> None:
    ssh.login("TMPDIR=/proc/none; export TMPDIR")

    with pytest.raises(TransportError, match=r"has no disk space for the input of ") as raised:
        files.put(str(source), str(tmp_path / "there"))

    assert raised.value.transient
    assert not (tmp_path / "there").exists()


def test_a_growing_remote_file_is_followed(files: JobFiles, tmp_path: Path) -> None:
    path = tmp_path / "out"
    nothing = files.read(str(path), 0, 100)
    path.write_bytes(b"one\n\xff")
    first = files.read(str(path), 0, 100)
    with path.open("ab") as file:
        file.write(b"two\n")

    assert nothing is None
    assert first is not None
    assert first.data == b"one\n\xff"
    second = files.read(str(path), first.end, 100)
    assert second is not None
    assert (second.data, second.offset, second.size) == (b"two\n", 5, 9)


def test_output_of_a_job_is_read_over_the_connection(
    ssh: FakeSsh, runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with jpsi.JobExecutor("local", url="ssh://cluster") as executor:
        job = jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", "echo out; echo err >&2"]))
        executor.submit(job)
        job.wait(60)

        out, err = job.output(), job.output("stderr")

        assert out is not None
        assert err is not None
        assert not out.is_local
        assert out.read() == jpsi.OutputPart(b"out\n", 0, 4)
        assert err.read(1) == jpsi.OutputPart(b"rr\n", 1, 4)

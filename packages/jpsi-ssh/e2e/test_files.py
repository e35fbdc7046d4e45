"""Transfers to a remote host and back over a real sshd."""

from __future__ import annotations

import hashlib
import itertools
import os
import secrets
import signal
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import jpsi
from conftest import SMALL, random_file, servers
from jpsi import TransferError
from jpsi.plugin import Command, TransportError
from jpsi_engine.transfer.job_files import open_job_files
from jpsi_ssh.transport import SshTransport
from jpsi_testing.waiting import eventually

# Tests cut connections, and count servers.
pytestmark = pytest.mark.alone

_GIGABYTE = 1 << 30


def _sh(text: str) -> Command:
    return Command(["sh", "-c", text])


@pytest.fixture
def place(transport: SshTransport) -> Iterator[str]:
    """Yield a remote directory whose name needs quoting."""
    path = f"/tmp/jpsi-e2e {secrets.token_hex(4)} $x\n'"
    yield path
    transport.run(Command(["chmod", "-R", "u+rwx", path]))
    transport.run(Command(["rm", "-rf", path]))


@pytest.fixture
def remote_directory(cluster: SshTransport) -> Iterator[str]:
    """Yield a remote directory for the user that runs the tests."""
    path = f"/tmp/jpsi-e2e-{secrets.token_hex(4)}"
    yield path
    cluster.run(Command(["rm", "-rf", path]))


def _contents(root: Path) -> dict[str, object]:
    return {
        str(path.relative_to(root)): path.readlink()
        if path.is_symlink()
        else (stat.S_IMODE(path.stat().st_mode), path.read_bytes() if path.is_file() else None)
        for path in root.rglob("*")
    }


def test_a_file_tree_survives_a_round_trip_with_any_login_shell(
    transport: SshTransport, place: str, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    for name in ("a b", "new\nline", "-rf", "q'\"$(x)!", "\udcff", "*"):
        (tree / name).mkdir(parents=True)
        (tree / name / name).write_bytes(os.urandom(1000))
        (tree / name / "link").symlink_to(name)
    (tree / "program").write_text("#!/bin/sh\n")
    (tree / "program").chmod(0o750)
    (tree / "empty").mkdir(mode=0o500)
    random_file(tree / "large", 5_000_000)

    open_job_files(transport).put(str(tree), place)
    open_job_files(transport).get(place, str(tmp_path / "back"))

    assert _contents(tmp_path / "back") == _contents(tree)


@pytest.mark.parametrize("direction", ["put", "get"])
def test_a_lost_connection_during_a_transfer_repeats_at_most_one_chunk(
    cluster: SshTransport, remote_directory: str, tmp_path: Path, direction: str
) -> None:
    source, before = tmp_path / "source", servers()
    digest = random_file(source, 100_000_000)
    files, there = open_job_files(cluster), f"{remote_directory}/file"
    if direction == "get":
        files.put(str(source), there)
    cut: list[int] = []
    steps: list[int] = []

    def progress(done: int, _: int) -> None:
        steps.append(done)
        if done > 30_000_000 * (len(cut) + 1):
            ours = set(servers()) - set(before) - set(cut)
            cut.extend(ours)
            for pid in ours:
                os.kill(pid, signal.SIGKILL)

    def move() -> bool:
        try:
            if direction == "put":
                files.put(str(source), there, progress)
            else:
                files.get(there, str(tmp_path / "back"), progress)
        except TransportError as e:
            if not e.transient:
                raise
            return False
        return True

    assert eventually(move)

    assert len(cut) >= 2
    # a transfer that begins again reports 0
    assert all(later >= earlier - (1 << 24) for earlier, later in itertools.pairwise(filter(None, steps)))
    assert cluster.run(Command(["sha256sum", there])).stdout.split()[0] == digest
    assert cluster.run(Command(["ls", "-A", remote_directory])).stdout == "file\n"
    if direction == "get":
        assert (tmp_path / "back").read_bytes() == source.read_bytes()


def test_two_hundred_commands_run_during_transfers(
    cluster: SshTransport, remote_directory: str, tmp_path: Path
) -> None:
    before = servers()
    digests = [random_file(tmp_path / f"{n}", 20_000_000) for n in range(2)]
    lines = iter(cluster.open(_sh("echo 1; sleep 1000; :")))
    assert next(lines) == "1"

    with ThreadPoolExecutor(202) as pool:
        files = open_job_files(cluster)
        moved = [pool.submit(files.put, str(tmp_path / f"{n}"), f"{remote_directory}/{n}") for n in range(2)]
        results = list(pool.map(lambda number: cluster.run(_sh(f"echo {number}")).stdout, range(200)))
        for it in moved:
            it.result()

    assert results == [f"{number}\n" for number in range(200)]
    assert len(servers()) - len(before) == 1
    lines.close()
    sums = cluster.run(_sh(f"sha256sum {remote_directory}/*")).stdout.splitlines()
    assert [line.split()[0] for line in sums] == digests


@pytest.mark.skipif(not SMALL.is_mount(), reason="ci/sshd/up could not make a small file system")
def test_a_transfer_stopped_by_a_full_disk_is_resumed(cluster: SshTransport, tmp_path: Path) -> None:
    files, target = open_job_files(cluster), f"{SMALL}/{secrets.token_hex(4)}"
    digest = random_file(tmp_path / "source", 3_000_000)
    cluster.run(_sh(f"head -c 2500000 /dev/zero >{target}.other"))

    with pytest.raises(TransferError, match=r"cannot be written: No space left on device") as raised:
        files.put(str(tmp_path / "source"), target)
    found = cluster.run(Command(["ls", target])).returncode
    cluster.run(Command(["rm", f"{target}.other"]))
    files.put(str(tmp_path / "source"), target)

    assert raised.value.transient
    assert found != 0
    assert cluster.run(Command(["sha256sum", target])).stdout.split()[0] == digest
    cluster.run(Command(["rm", target]))


def test_a_remote_file_is_read_while_it_is_written(cluster: SshTransport, remote_directory: str) -> None:
    files, path = open_job_files(cluster), f"{remote_directory}/out"
    assert files.read(path, 0, 100) is None
    cluster.run(
        _sh(
            f"mkdir {remote_directory}; for n in 1 2 3; do echo $n; sleep 0.3; done >{path} 2>&1 </dev/null &"
        )
    )
    received = b""

    def has_come() -> bool:
        nonlocal received
        part = files.read(path, len(received), 100)
        received += b"" if part is None else part.data
        return received == b"1\n2\n3\n"

    assert eventually(has_come)
    assert files.read(path, -2, 100) == jpsi.OutputPart(b"3\n", 4, 6)


@pytest.mark.long
def test_a_gigabyte_survives_a_round_trip(
    cluster: SshTransport, remote_directory: str, tmp_path: Path
) -> None:
    files, target = open_job_files(cluster), f"{remote_directory}/file"
    digest = random_file(tmp_path / "source", _GIGABYTE)

    files.put(str(tmp_path / "source"), target)
    assert cluster.run(Command(["sha256sum", target])).stdout.split()[0] == digest
    files.get(target, str(tmp_path / "back"))

    with (tmp_path / "back").open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == digest
    for path in (tmp_path / "source", tmp_path / "back"):
        path.unlink()

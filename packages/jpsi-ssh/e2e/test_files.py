"""Files go to another machine and come back, by a real sshd."""

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

# Lines are cut, and servers counted.
pytestmark = pytest.mark.alone

_GIGABYTE = 1 << 30


def _sh(text: str) -> Command:
    return Command(["sh", "-c", text])


@pytest.fixture
def place(transport: SshTransport) -> Iterator[str]:
    """A directory over there, with a name that needs care."""
    path = f"/tmp/jpsi-e2e {secrets.token_hex(4)} $x\n'"
    yield path
    transport.run(Command(["chmod", "-R", "u+rwx", path]))
    transport.run(Command(["rm", "-rf", path]))


@pytest.fixture
def far_place(far: SshTransport) -> Iterator[str]:
    """A directory over there, for the user that runs the tests."""
    path = f"/tmp/jpsi-e2e-{secrets.token_hex(4)}"
    yield path
    far.run(Command(["rm", "-rf", path]))


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
    far: SshTransport, far_place: str, tmp_path: Path, direction: str
) -> None:
    source, before = tmp_path / "source", servers()
    digest = random_file(source, 100_000_000)
    files, there = open_job_files(far), f"{far_place}/file"
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
    # whoever begins again says so with 0
    assert all(later >= earlier - (1 << 24) for earlier, later in itertools.pairwise(filter(None, steps)))
    assert far.run(Command(["sha256sum", there])).stdout.split()[0] == digest
    assert far.run(Command(["ls", "-A", far_place])).stdout == "file\n"
    if direction == "get":
        assert (tmp_path / "back").read_bytes() == source.read_bytes()


def test_two_hundred_commands_run_during_transfers(far: SshTransport, far_place: str, tmp_path: Path) -> None:
    before = servers()
    digests = [random_file(tmp_path / f"{n}", 20_000_000) for n in range(2)]
    lines = iter(far.open(_sh("echo 1; sleep 1000; :")))
    assert next(lines) == "1"

    with ThreadPoolExecutor(202) as pool:
        files = open_job_files(far)
        moved = [pool.submit(files.put, str(tmp_path / f"{n}"), f"{far_place}/{n}") for n in range(2)]
        results = list(pool.map(lambda number: far.run(_sh(f"echo {number}")).stdout, range(200)))
        for it in moved:
            it.result()

    assert results == [f"{number}\n" for number in range(200)]
    assert len(servers()) - len(before) == 1
    lines.close()
    sums = far.run(_sh(f"sha256sum {far_place}/*")).stdout.splitlines()
    assert [line.split()[0] for line in sums] == digests


@pytest.mark.skipif(not SMALL.is_mount(), reason="ci/sshd/up could not make a small file system")
def test_a_transfer_stopped_by_a_full_disk_is_resumed(far: SshTransport, tmp_path: Path) -> None:
    files, target = open_job_files(far), f"{SMALL}/{secrets.token_hex(4)}"
    digest = random_file(tmp_path / "source", 3_000_000)
    far.run(_sh(f"head -c 2500000 /dev/zero >{target}.other"))

    with pytest.raises(TransferError, match=r"cannot be written: No space left on device") as raised:
        files.put(str(tmp_path / "source"), target)
    found = far.run(Command(["ls", target])).returncode
    far.run(Command(["rm", f"{target}.other"]))
    files.put(str(tmp_path / "source"), target)

    assert raised.value.transient
    assert found != 0
    assert far.run(Command(["sha256sum", target])).stdout.split()[0] == digest
    far.run(Command(["rm", target]))


def test_a_remote_file_is_read_while_it_is_written(far: SshTransport, far_place: str) -> None:
    files, path = open_job_files(far), f"{far_place}/out"
    assert files.read(path, 0, 100) is None
    far.run(_sh(f"mkdir {far_place}; for n in 1 2 3; do echo $n; sleep 0.3; done >{path} 2>&1 </dev/null &"))
    seen = b""

    def has_come() -> bool:
        nonlocal seen
        part = files.read(path, len(seen), 100)
        seen += b"" if part is None else part.data
        return seen == b"1\n2\n3\n"

    assert eventually(has_come)
    assert files.read(path, -2, 100) == jpsi.OutputPart(b"3\n", 4, 6)


@pytest.mark.long
def test_a_gigabyte_survives_a_round_trip(far: SshTransport, far_place: str, tmp_path: Path) -> None:
    files, target = open_job_files(far), f"{far_place}/file"
    digest = random_file(tmp_path / "source", _GIGABYTE)

    files.put(str(tmp_path / "source"), target)
    assert far.run(Command(["sha256sum", target])).stdout.split()[0] == digest
    files.get(target, str(tmp_path / "back"))

    with (tmp_path / "back").open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == digest
    for path in (tmp_path / "source", tmp_path / "back"):
        path.unlink()

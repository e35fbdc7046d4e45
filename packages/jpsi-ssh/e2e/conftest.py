"""A real sshd in front of a real Slurm; `nox -s e2e_ssh` brings them up."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi_ssh.address import Address
from jpsi_ssh.transport import SshTransport
from jpsi_testing import long_option
from jpsi_testing.long_option import pytest_addoption, pytest_configure

# pytest finds them here
__all__ = ["pytest_addoption", "pytest_configure"]

#: A file system of a few megabytes that ci/sshd/up has made.
SMALL = Path("/var/lib/jpsi-ci-sshd/small")
_KEY = Path("~/.ssh/jpsi-client")
# Hosts that ci/sshd/up configures; both are this machine.
_REACHED = ("far", "far-csh")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, and everything for whom ci/sshd/up has not made an entry."""
    is_ready = _KEY.expanduser().exists()
    for item in items:
        if not is_ready:
            item.add_marker(pytest.mark.skip(reason="ci/sshd/up was not run for this user"))
    long_option.pytest_collection_modifyitems(config, items)


def servers() -> list[int]:
    """The processes of sshd that serve connections of this user."""
    listed = subprocess.run(
        ["ps", "-u", str(os.geteuid()), "-o", "pid=,args="], capture_output=True, text=True, check=True
    )
    lines = (line.split(None, 1) for line in listed.stdout.splitlines())
    return [int(pid) for pid, args in lines if args.startswith("sshd:")]


def random_file(path: Path, size: int) -> str:
    """Make a file; returns its checksum."""
    block, digest = os.urandom(1 << 24), hashlib.sha256()
    with path.open("wb") as file:
        for at in range(0, size, len(block)):
            piece = at.to_bytes(8) + block[8 : min(len(block), size - at)]
            file.write(piece)
            digest.update(piece)
    return digest.hexdigest()


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where connections are shared: a test begins with none, and leaves none."""
    # a socket has no room for the long names of pytest
    folder = Path(tempfile.mkdtemp(prefix="jpsi-e2e-", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    # whoever follows jobs of an earlier test that have not ended connects anew, and does it by itself
    monkeypatch.setattr("jpsi_ssh.transport._connections", weakref.WeakValueDictionary())
    yield folder
    for socket in folder.glob("jpsi-ssh/*.?"):
        ending = ["ssh", "-O", "exit", "-S", str(socket), "far"]
        subprocess.run(ending, capture_output=True, check=False)
    # whoever follows jobs of this test that have not ended may be connecting just now
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=_REACHED)
def transport(request: pytest.FixtureRequest, runtime: Path) -> Iterator[SshTransport]:
    """A transport to each of the hosts that let one in."""
    transport = SshTransport(Address(request.param))
    yield transport
    transport.close()


@pytest.fixture
def far(runtime: Path) -> Iterator[SshTransport]:
    """A transport to a host whose processes are the test's own."""
    transport = SshTransport(Address("far"))
    yield transport
    transport.close()

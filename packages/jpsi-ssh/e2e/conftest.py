"""A real sshd in front of a real Slurm; `nox -s e2e_ssh` starts them."""

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
# Host names that ci/sshd/up configures; both are this host.
_REACHED = ("cluster", "cluster-csh")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip long tests, and all tests without the hosts that ci/sshd/up configures."""
    is_ready = _KEY.expanduser().exists()
    for item in items:
        if not is_ready:
            item.add_marker(pytest.mark.skip(reason="ci/sshd/up was not run for this user"))
    long_option.pytest_collection_modifyitems(config, items)


def servers() -> list[int]:
    """Return the processes of sshd that serve connections of this user."""
    listed = subprocess.run(
        ["ps", "-u", str(os.geteuid()), "-o", "pid=,args="], capture_output=True, text=True, check=True
    )
    lines = (line.split(None, 1) for line in listed.stdout.splitlines())
    return [int(pid) for pid, args in lines if args.startswith("sshd:")]


def random_file(path: Path, size: int) -> str:
    """Make a file, and return its checksum."""
    block, digest = os.urandom(1 << 24), hashlib.sha256()
    with path.open("wb") as file:
        for at in range(0, size, len(block)):
            piece = at.to_bytes(8) + block[8 : min(len(block), size - at)]
            file.write(piece)
            digest.update(piece)
    return digest.hexdigest()


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the directory of shared connections: a test begins with none, and leaves none."""
    # a socket has no room for the long names of pytest
    folder = Path(tempfile.mkdtemp(prefix="jpsi-e2e-", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    # executors of earlier tests that still follow jobs reconnect by themselves
    monkeypatch.setattr("jpsi_ssh.transport._connections", weakref.WeakValueDictionary())
    yield folder
    for socket in folder.glob("jpsi-ssh/*.?"):
        ending = ["ssh", "-O", "exit", "-S", str(socket), "cluster"]
        subprocess.run(ending, capture_output=True, check=False)
    # an executor that still follows jobs of this test may be connecting now
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=_REACHED)
def transport(request: pytest.FixtureRequest, runtime: Path) -> Iterator[SshTransport]:
    """Yield a transport to each of the hosts that accept the login."""
    transport = SshTransport(Address(request.param))
    yield transport
    transport.close()


@pytest.fixture
def cluster(runtime: Path) -> Iterator[SshTransport]:
    """Yield a transport to a host on which the user of the tests runs the processes."""
    transport = SshTransport(Address("cluster"))
    yield transport
    transport.close()

"""Fixtures of the tests: a fake of ssh, and connections of each test."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fake_ssh import FakeSsh
from jpsi_ssh.address import Address
from jpsi_ssh.transport import SshTransport


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of shared connections, which holds only those of the test."""
    folder = tmp_path_factory.mktemp("run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.fixture
def ssh(tmp_path_factory: pytest.TempPathFactory, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSsh:
    """The stand-in, first on PATH."""
    monkeypatch.setattr("jpsi_ssh.transport._connections", weakref.WeakValueDictionary())
    fake = FakeSsh(tmp_path_factory.mktemp("ssh"))
    monkeypatch.setenv("PATH", str(fake.folder), prepend=":")
    return fake


@pytest.fixture
def transport(ssh: FakeSsh) -> Iterator[SshTransport]:
    """Yield a transport to a host that only this test uses."""
    transport = SshTransport(Address("cluster"))
    yield transport
    transport.close()


@pytest.fixture
def in_child() -> Callable[[Callable[[], int]], int]:
    """Return a function that calls another in a forked child, and returns its result from the exit code."""

    def run(work: Callable[[], int]) -> int:
        pid = os.fork()
        if pid == 0:
            code = 99
            try:
                code = work()
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    return run

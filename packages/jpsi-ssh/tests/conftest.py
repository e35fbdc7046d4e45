"""What the tests share: a stand-in for ssh, and connections of a test's own."""

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
    """Where connections are shared: nobody else's are met, and none is left."""
    folder = tmp_path_factory.mktemp("run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.fixture
def ssh(tmp_path_factory: pytest.TempPathFactory, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSsh:
    """The stand-in, first on PATH."""
    monkeypatch.setattr("jpsi_ssh.transport._connections", weakref.WeakValueDictionary())
    stand_in = FakeSsh(tmp_path_factory.mktemp("ssh"))
    monkeypatch.setenv("PATH", str(stand_in.folder), prepend=":")
    return stand_in


@pytest.fixture
def transport(ssh: FakeSsh) -> Iterator[SshTransport]:
    """A transport to a machine of the test's own."""
    transport = SshTransport(Address("far"))
    yield transport
    transport.close()


@pytest.fixture
def in_child() -> Callable[[Callable[[], int]], int]:
    """Calls something in a forked child, whose exit code is what it returns."""

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

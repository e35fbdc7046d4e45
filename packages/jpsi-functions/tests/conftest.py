"""Fixtures of the tests of jpsi-functions."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fake_ssh import FakeSsh
from jpsi_functions import FunctionExecutor
from jpsi_testing.fake import on_path

# A program that submits calls, and says so.
_PROGRAM = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import functions_to_call as calls
from jpsi_functions import FunctionExecutor

executor = FunctionExecutor({name!r}, url={url!r}, python=sys.executable, max_workers={workers})
{work}
print("submitted", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))


@pytest.fixture
def executor() -> Iterator[FunctionExecutor]:
    """Provide an executor of this machine, which is shut down in the end."""
    with FunctionExecutor("local", max_workers=4) as executor:
        yield executor


@pytest.fixture
def slurm() -> Iterator[None]:
    """Put the commands of a fake Slurm on PATH."""
    with on_path("slurm"):
        yield


@pytest.fixture
def login(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home directory of a host behind `ssh://cluster`."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("jpsi_ssh.transport._connections", weakref.WeakValueDictionary())
    ssh = FakeSsh(tmp_path_factory.mktemp("ssh"))
    monkeypatch.setenv("PATH", str(ssh.folder), prepend=":")
    home = tmp_path / "there"
    home.mkdir()
    ssh.login(f"cd {shlex.quote(str(home))}; HOME=$PWD; unset XDG_STATE_HOME; umask 002\n")
    return home


@pytest.fixture
def killed(tmp_path: Path) -> Callable[..., None]:
    """Provide a function that runs a program that submits calls, and kills it."""

    def run(
        work: str,
        *,
        after: Callable[[], bool],
        name: str = "local",
        url: str | None = None,
        workers: int | None = None,
    ) -> None:
        tests = str(Path(__file__).parent)
        program = _PROGRAM.format(tests=tests, name=name, url=url, workers=workers, work=work)
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
        )
        with process:
            assert process.stdout is not None
            process.stdout.readline()
            while not after() and process.poll() is None:
                time.sleep(0.01)
            process.kill()

    return run

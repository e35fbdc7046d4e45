"""Waiting for a process: until the timeout, or until it ends."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from typing import NoReturn

import pytest

from jpsi_pilot.node.sessions import wait_for_exit

PATIENCE = 30.0


def raise_no_descriptors(_: int) -> NoReturn:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@pytest.fixture(params=["by its pidfd", "where there are none"], autouse=True)
def _with_and_without_pidfd(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "by its pidfd":
        monkeypatch.setattr(os, "pidfd_open", raise_no_descriptors, raising=False)


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process that runs until its standard input ends."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as it:
        yield it


def test_a_process_that_runs_has_not_ended_when_the_time_is_up(process: subprocess.Popen[bytes]) -> None:
    assert not wait_for_exit(process, 0.01)
    assert process.poll() is None


def test_an_exit_is_noticed_and_its_code_can_be_collected(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()

    assert wait_for_exit(process, PATIENCE)
    assert process.wait() == 0


def test_a_timeout_longer_than_that_of_poll_is_split(process: subprocess.Popen[bytes]) -> None:
    process.kill()

    assert wait_for_exit(process, 100 * 86400.0)
    assert process.wait() == -9

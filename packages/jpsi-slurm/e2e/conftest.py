"""A real Slurm, and the ways in which it can fail; `nox -s e2e_slurm` brings it up."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from real_slurm import Control, command, unfinished

import jpsi
from jpsi_slurm import SlurmConfig
from jpsi_testing import long_option
from jpsi_testing.long_option import is_long, pytest_addoption  # noqa: F401  pytest finds them here

# How ci/slurm/up sets Slurm up unless it is told otherwise: the verb of ci/slurm/control for it.
_PLAIN = "up plain 300"


def pytest_configure(config: pytest.Config) -> None:
    long_option.pytest_configure(config)
    config.addinivalue_line(
        "markers",
        "slurm(accounting=False, min_job_age=300): how Slurm is to be set up: whether sacct works, and how "
        "many seconds a finished job is remembered",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, and change the set-up of Slurm rarely, and never beside other tests."""
    for item in items:
        if _set_up(item) != _PLAIN or "control" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.alone)
    long_option.pytest_collection_modifyitems(config, items)
    items.sort(key=lambda item: (_set_up(item) != _PLAIN, _set_up(item)))


def _set_up(item: pytest.Item) -> str:
    """The verb for the set-up that a test wants."""
    marker = item.get_closest_marker("slurm")
    if marker is None:
        return _PLAIN
    mode = "accounting" if marker.kwargs.get("accounting") else "plain"
    return f"up {mode} {marker.kwargs.get('min_job_age', 300)}"


@pytest.fixture(scope="session")
def set_up() -> Iterator[list[str]]:
    """The verb for the set-up that Slurm has; in the end it is plain again."""
    now = [_PLAIN]
    yield now
    if now != [_PLAIN]:
        _do(_PLAIN)


@pytest.fixture(autouse=True)
def _as_wanted(request: pytest.FixtureRequest, set_up: list[str]) -> None:
    """Slurm is set up as the test's marker wants it."""
    wanted = _set_up(request.node)
    if [wanted] != set_up:
        _do(wanted)
        set_up[:] = [wanted]


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """What a test leaves behind, such as one that failed, does not run beside the next that must be alone."""
    _clear()
    yield
    _clear()


def _clear() -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ and (left := unfinished()):
        command("scancel", *left)


@pytest.fixture
def config(tmp_path: Path) -> SlurmConfig:
    return SlurmConfig(
        work_directory=tmp_path / "work", grace=timedelta(seconds=5), longest_interval=timedelta(seconds=5)
    )


@pytest.fixture
def executor(config: SlurmConfig) -> Iterator[jpsi.JobExecutor]:
    with jpsi.JobExecutor.get_instance("slurm", config=config) as executor:
        yield executor


@pytest.fixture
def control() -> Iterator[Control]:
    """Stops and starts parts of Slurm; whatever a test did is mended after it."""
    _socket()
    yield _do
    _do("up")


def _do(verb: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(_socket())
        client.sendall(verb.encode() + b"\n")
        assert client.makefile().readline().strip() == "0", verb


def _socket() -> str:
    path = os.environ.get("JPSI_CI_CONTROL")
    if path is None:
        pytest.skip("nobody is there who may change Slurm")
    return path

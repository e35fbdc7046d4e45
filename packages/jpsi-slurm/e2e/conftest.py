"""A real Slurm, and the ways in which it can fail; `nox -s e2e_slurm` starts it."""

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

# The verb of ci/slurm/control for the default set-up of ci/slurm/up.
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
    """Deselect long tests; group the others by set-up, which changes while no other test runs."""
    for item in items:
        if _set_up(item) != _PLAIN or "control" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.alone)
    long_option.pytest_collection_modifyitems(config, items)
    items.sort(key=lambda item: (_set_up(item) != _PLAIN, _set_up(item)))


def _set_up(item: pytest.Item) -> str:
    """Return the verb for the set-up that a test's marker requests."""
    marker = item.get_closest_marker("slurm")
    if marker is None:
        return _PLAIN
    mode = "accounting" if marker.kwargs.get("accounting") else "plain"
    return f"up {mode} {marker.kwargs.get('min_job_age', 300)}"


@pytest.fixture(scope="session")
def set_up() -> Iterator[list[str]]:
    """Yield the verb for Slurm's current set-up; restore the default in the end."""
    now = [_PLAIN]
    yield now
    if now != [_PLAIN]:
        _do(_PLAIN)


@pytest.fixture(autouse=True)
def _require_set_up(request: pytest.FixtureRequest, set_up: list[str]) -> None:
    """Set Slurm up as the test's marker requests."""
    verb = _set_up(request.node)
    if [verb] != set_up:
        _do(verb)
        set_up[:] = [verb]


@pytest.fixture(autouse=True)
def _cancel_leftovers() -> Iterator[None]:
    """Cancel jobs that a test left behind, before the next test that must run alone."""
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
    """Yield a function that stops and starts parts of Slurm; start all again after the test."""
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
        pytest.skip("no process that may change Slurm runs")
    return path

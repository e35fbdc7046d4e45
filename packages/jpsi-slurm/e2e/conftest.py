"""A real Slurm, and the ways in which it can fail; `nox -s e2e_slurm` brings it up."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi
from jpsi_slurm import SlurmConfig


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="everything, and as often as issues demand it")


@pytest.fixture(scope="session")
def is_long(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--long"))


@pytest.fixture
def config(tmp_path: Path) -> SlurmConfig:
    return SlurmConfig(
        work_directory=tmp_path / "work", grace=timedelta(seconds=5), longest_interval=timedelta(seconds=5)
    )


@pytest.fixture
def executor(config: SlurmConfig) -> Iterator[jpsi.JobExecutor]:
    with jpsi.JobExecutor.get_instance("slurm", config=config) as executor:
        yield executor


Control = Callable[[str], None]


@pytest.fixture
def control() -> Iterator[Control]:
    """Stops and starts parts of Slurm; whatever a test did is mended after it."""
    path = os.environ.get("JPSI_CI_CONTROL")
    if path is None:
        pytest.skip("nobody is there who may stop Slurm")

    def do(verb: str) -> None:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            client.sendall(verb.encode() + b"\n")
            assert client.makefile().readline().strip() == "0", verb

    yield do
    do("up")

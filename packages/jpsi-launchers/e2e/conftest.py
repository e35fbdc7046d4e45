"""Real MPIs inside a real Slurm of two nodes; ci/slurm and ci/mpi bring them up."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi
from jpsi.plugin import BatchConfig


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="everything; otherwise each thing once")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes long; runs with --long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--long"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="takes long; --long runs it"))


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[jpsi.JobExecutor]:
    config = BatchConfig(
        work_directory=tmp_path / 'the job\'s "work"',
        grace=timedelta(seconds=5),
        longest_interval=timedelta(seconds=5),
    )
    with jpsi.JobExecutor.get_instance("slurm", config=config) as executor:
        yield executor

"""Real MPIs inside a real Slurm of two nodes; ci/slurm and ci/mpi start them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi
from jpsi.plugin import BatchConfig
from jpsi_testing.long_option import pytest_addoption, pytest_collection_modifyitems, pytest_configure

# pytest finds them here
__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[jpsi.JobExecutor]:
    config = BatchConfig(
        work_directory=tmp_path / 'the job\'s "work"',
        grace=timedelta(seconds=5),
        longest_interval=timedelta(seconds=5),
    )
    with jpsi.JobExecutor.get_instance("slurm", config=config) as executor:
        yield executor

"""Snakemake's own tests of executors, unchanged, on this machine and on a fake Slurm."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from snakemake.common.tests import TestWorkflowsLocalStorageBase

from jpsi_testing.fake import on_path
from snakemake_executor_plugin_jpsi import Executor, ExecutorSettings


class _WorkflowCases(TestWorkflowsLocalStorageBase):
    """Snakemake's tests of one executor of jpsi."""

    executor = ""

    def get_executor(self) -> str:
        return "jpsi"

    def get_executor_settings(self) -> ExecutorSettings:
        return ExecutorSettings(executor=self.executor)


class TestWorkflowsOnThisMachine(_WorkflowCases):
    __test__ = True
    executor = "local"


class TestWorkflowsOnSlurm(_WorkflowCases):
    __test__ = True
    executor = "slurm"

    @pytest.fixture(autouse=True)
    def _slurm(self) -> Iterator[None]:
        with on_path("slurm"):
            yield


@pytest.mark.parametrize("of_snakemake", [0, 3600])
def test_the_interval_of_checks_does_not_depend_on_that_of_snakemake(
    of_snakemake: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests above set it to 0: a loop without a pause would use a whole processor."""
    intervals = []

    async def sleep(seconds: float) -> None:
        intervals.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    settings = SimpleNamespace(seconds_between_status_checks=of_snakemake)
    workflow = SimpleNamespace(remote_execution_settings=settings)

    asyncio.run(Executor.sleep(cast("Executor", SimpleNamespace(workflow=workflow))))

    assert intervals == [0.2]

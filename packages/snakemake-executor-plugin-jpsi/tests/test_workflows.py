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


def test_checks_have_an_interval_whatever_that_of_snakemake_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the tests above is zero, for which a loop without a pause would take a processor."""
    intervals = []

    async def sleep(seconds: float) -> None:
        intervals.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    settings = SimpleNamespace(seconds_between_status_checks=0)

    asyncio.run(Executor.sleep(cast("Executor", SimpleNamespace(workflow=settings))))

    assert [it > 0 for it in intervals] == [True]

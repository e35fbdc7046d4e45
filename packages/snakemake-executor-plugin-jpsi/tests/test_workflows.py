"""Snakemake's own tests of executors, unchanged, on this machine and on a fake Slurm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from snakemake.common.tests import TestWorkflowsLocalStorageBase

from jpsi_testing.fake import on_path
from snakemake_executor_plugin_jpsi import ExecutorSettings


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

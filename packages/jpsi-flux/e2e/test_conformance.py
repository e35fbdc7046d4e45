"""Conformance of the executor `flux` on the Flux whose commands are on PATH."""

from __future__ import annotations

import subprocess

import pytest

from jpsi_flux import FluxConfig
from jpsi_testing import ExecutorConformance
from jpsi_testing.fake import FakeScheduler


class TestFlux(ExecutorConformance):
    """Every test of the class that needs no injected fault."""

    executor_name = "flux"
    config_class = FluxConfig
    unknown_id = "99999999999"
    directives = ("#flux: --job-name=evil", "# flux: -N1000", "#FLUX: --queue=nowhere")

    @pytest.fixture
    def node_cores(self, cores: list[int]) -> list[int]:
        """Return the cores of each node, so that no test waits for nodes that are not there."""
        return cores

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        """Cancel a job with `flux cancel`."""
        subprocess.run(["flux", "cancel", native_id], check=True)

"""The executor `flux` keeps the contract on whatever Flux the commands on PATH belong to."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from jpsi_flux import FluxConfig
from jpsi_testing import ExecutorConformance
from jpsi_testing.fake import FakeScheduler


def _why_not() -> str:
    """Why there is no Flux to be tested with; empty if there is one."""
    if shutil.which("flux") is None:
        return "there is no flux on PATH"
    asked = subprocess.run(
        ["flux", "jobs", "--json"], capture_output=True, text=True, check=False, timeout=60, encoding="utf-8"
    )
    return "" if asked.returncode == 0 else f"no Flux instance answers: {asked.stderr.strip()}"


@pytest.fixture(scope="module", autouse=True)
def _instance() -> None:
    """Skip the tests where there is no instance; `flux start pytest ...` makes one for them."""
    if why := _why_not():
        pytest.skip(why)


class TestFlux(ExecutorConformance):
    """Every test of the class that needs no fault made to order."""

    executor_name = "flux"
    config_class = FluxConfig
    unknown_id = "99999999999"
    directives = ("#flux: --job-name=evil", "# flux: -N1000", "#FLUX: --queue=nowhere")

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        """Cancel a job with `flux cancel`."""
        subprocess.run(["flux", "cancel", native_id], check=True)

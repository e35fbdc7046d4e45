"""Conformance of the executor `flux` on the Flux whose commands are on PATH."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from jpsi_flux import FluxConfig
from jpsi_testing import ExecutorConformance
from jpsi_testing.fake import FakeScheduler


def _why_not() -> str:
    """Return the reason why there is no Flux to test with; "" if there is one."""
    if shutil.which("flux") is None:
        return "there is no flux on PATH"
    uptime = subprocess.run(
        ["flux", "jobs", "--json"], capture_output=True, text=True, check=False, timeout=60, encoding="utf-8"
    )
    return "" if uptime.returncode == 0 else f"no Flux instance answers: {uptime.stderr.strip()}"


@pytest.fixture(scope="module", autouse=True)
def _require_instance() -> None:
    """Skip the tests without an instance; `flux start pytest ...` starts one for them."""
    if why := _why_not():
        pytest.skip(why)


class TestFlux(ExecutorConformance):
    """Every test of the class that needs no injected fault."""

    executor_name = "flux"
    config_class = FluxConfig
    unknown_id = "99999999999"
    directives = ("#flux: --job-name=evil", "# flux: -N1000", "#FLUX: --queue=nowhere")

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        """Cancel a job with `flux cancel`."""
        subprocess.run(["flux", "cancel", native_id], check=True)

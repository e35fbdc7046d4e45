"""Conformance of the executor `flux`, over the fake Flux."""

from __future__ import annotations

from jpsi_flux import hooks
from jpsi_flux.config import FluxConfig
from jpsi_testing import ExecutorConformance
from jpsi_testing.fake import FakeScheduler


class TestFlux(ExecutorConformance):
    executor_name = "flux"
    fake_system = "flux"
    submit_command = "flux"
    config_class = FluxConfig
    plugin = hooks
    unknown_id = "99999999999"
    directives = ("#flux: --job-name=evil", "# flux: -N1000", "#FLUX: --queue=nowhere")

    def submissions(self, fake: FakeScheduler) -> int:
        return sum(call.invocation.argv[1] in {"submit", "bulksubmit"} for call in fake.log.of("flux"))

"""Conformance of the executor `oar`, over the fake OAR."""

from __future__ import annotations

from jpsi_oar import hooks
from jpsi_oar.config import OarConfig
from jpsi_testing import ExecutorConformance


class TestOar(ExecutorConformance):
    executor_name = "oar"
    fake_system = "oar"
    submit_command = "oarsub"
    config_class = OarConfig
    plugin = hooks
    directives = ("#OAR --hold", "#OAR -q nosuch")

"""What every backend passes, over the fake PBS and the fake Torque."""

from __future__ import annotations

from jpsi.testing import ExecutorConformance
from jpsi_pbs import PbsConfig, openpbs, torque
from jpsi_pbs.names import legal_name


class TestPbs(ExecutorConformance):
    executor_name = "pbs"
    dialect = "pbs"
    submit_command = "qsub"
    config_class = PbsConfig
    plugin = openpbs.hooks
    directives = ("#PBS -N evil", "#PBS -q nowhere", " #PBS -h")

    def native_name(self, name: str) -> str:
        return legal_name(name)


class TestTorque(TestPbs):
    executor_name = "torque"
    dialect = "torque"
    plugin = torque.hooks

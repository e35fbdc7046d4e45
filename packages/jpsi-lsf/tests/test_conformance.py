"""What every backend passes, over the fake LSF 10.1 and the fake volclava 2.2."""

from __future__ import annotations

from typing import ClassVar

from jpsi.testing import ExecutorConformance
from jpsi_lsf import hooks
from jpsi_lsf.config import LsfConfig
from jpsi_lsf.script import legal_name


class TestLsf(ExecutorConformance):
    executor_name = "lsf"
    dialect = "lsf"
    submit_command = "bsub"
    config_class = LsfConfig
    plugin = hooks
    directives = ("#BSUB -J evil", "#BSUB -q nowhere")

    def native_name(self, name: str) -> str:
        return legal_name(name)


class TestVolclava(TestLsf):
    dialect = "volclava"
    #: As the README says for volclava.
    settings: ClassVar = {"memory_unit": "MB", "cores_as_slots": True, "orphan_termination": False}

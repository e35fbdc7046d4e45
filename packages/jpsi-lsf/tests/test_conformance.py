"""What every backend passes, over the fake LSF 10.1 and the fake volclava 2.2."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from jpsi.testing import ExecutorConformance
from jpsi_lsf import hooks
from jpsi_lsf.config import LsfConfig

_DIRECTIVES = ("#BSUB -J evil", "#BSUB -q nowhere")


class TestLsf(ExecutorConformance):
    executor_name = "lsf"
    dialect = "lsf"
    submit_command = "bsub"
    config_class = LsfConfig
    plugin = hooks
    directives = _DIRECTIVES


class TestVolclava(ExecutorConformance):
    executor_name = "lsf"
    dialect = "volclava"
    submit_command = "bsub"
    config_class = LsfConfig
    plugin = hooks
    directives = _DIRECTIVES

    @pytest.fixture
    def config(self, work_directory: Path) -> LsfConfig:
        """As the README says for volclava; quick enough for tests."""
        return LsfConfig(
            work_directory=work_directory,
            memory_unit="MB",
            cores_as_slots=True,
            orphan_termination=False,
            kill_delay=timedelta(seconds=0.5),
            command_timeout=timedelta(seconds=3),
            shortest_interval=timedelta(seconds=0.1),
            longest_interval=timedelta(seconds=0.3),
            grace=timedelta(seconds=1),
        )

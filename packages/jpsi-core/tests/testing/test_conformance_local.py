"""The executor `local` and the launcher `single` conform, as far as it concerns them."""

from __future__ import annotations

import jpsi
from jpsi.builtin import single
from jpsi.testing import LauncherConformance
from jpsi.testing.conformance_hostile import HostileTests
from jpsi.testing.conformance_nodes import NodeTests
from jpsi.testing.conformance_recovery import RecoveryTests
from jpsi.testing.conformance_runs import RunTests
from jpsi.testing.conformance_staging import StagingTests


class TestLocal(RunTests, StagingTests, NodeTests, HostileTests, RecoveryTests):
    """Without what only batch systems do, and what `test_local` asks for in more detail."""

    executor_name = "local"
    config_class = jpsi.ExecutorConfig


class TestSingle(LauncherConformance):
    launcher_name = "single"
    plugin = single

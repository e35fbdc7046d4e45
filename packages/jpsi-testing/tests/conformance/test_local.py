"""The executor `local` and the launcher `single` pass the conformance tests that apply to them."""

from __future__ import annotations

import jpsi
from jpsi_engine.builtin import single
from jpsi_testing import LauncherConformance
from jpsi_testing.conformance.hostile_text import HostileTests
from jpsi_testing.conformance.nodes import NodeTests
from jpsi_testing.conformance.recovery import RecoveryTests
from jpsi_testing.conformance.runs import RunTests
from jpsi_testing.conformance.staging import StagingTests


class TestLocal(RunTests, StagingTests, NodeTests, HostileTests, RecoveryTests):
    """The tests without those for batch systems, and without those that `test_local` has in more detail."""

    executor_name = "local"
    config_class = jpsi.ExecutorConfig


class TestSingle(LauncherConformance):
    launcher_name = "single"
    plugin = single

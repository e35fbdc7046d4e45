"""The conformance tests that every launcher passes."""

from __future__ import annotations

from jpsi_testing.conformance.launcher_jobs import JobTests
from jpsi_testing.conformance.launcher_lines import LineTests
from jpsi_testing.conformance.launcher_signals import SignalTests


class LauncherConformance(LineTests, SignalTests, JobTests):
    """All conformance tests of a launcher; its test class inherits them and sets class attributes.

    class TestMpirun(LauncherConformance):
        launcher_name = "mpirun"
        program = "mpirun"
        max_processes = 3
    """

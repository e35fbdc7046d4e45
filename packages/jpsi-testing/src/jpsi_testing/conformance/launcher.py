"""The tests that every launcher passes."""

from __future__ import annotations

from jpsi_testing.conformance.launcher_jobs import JobTests
from jpsi_testing.conformance.launcher_lines import LineTests
from jpsi_testing.conformance.launcher_signals import SignalTests


class LauncherConformance(LineTests, SignalTests, JobTests):
    """Inherit it in a launcher's tests, and say what is to be tested.

    class TestMpirun(LauncherConformance):
        launcher_name = "mpirun"
        program = "mpirun"
        max_processes = 3
    """

"""The tests that every launcher passes."""

from __future__ import annotations

from jpsi.testing.conformance_launch_jobs import JobTests
from jpsi.testing.conformance_launch_lines import LineTests
from jpsi.testing.conformance_launch_signals import SignalTests


class LauncherConformance(LineTests, SignalTests, JobTests):
    """Inherit it in a launcher's tests, and say what is to be tested.

    class TestMpirun(LauncherConformance):
        launcher_name = "mpirun"
        program = "mpirun"
        max_processes = 3
    """

"""The toy backend conforms, on the plugin path and over its fake batch system."""

from __future__ import annotations

from pathlib import Path

import pytest

from jpsi_testing import ExecutorConformance, PluginDirectory, toy


class TestToy(ExecutorConformance):
    executor_name = "toy"
    fake_system = "toy"
    submit_command = "tsubmit"
    plugin = toy
    names_unknown_jobs = False
    directives = ("#TOY slots=1000", "#TOY name=evil")

    @pytest.fixture(autouse=True)
    def installed(self, plugin_directory: PluginDirectory) -> None:
        plugin_directory.add(
            "jpsi-toy",
            "0.1",
            entry_points={"jpsi.executors": {"toy": "jpsi_toy"}},
            files={"jpsi_toy.py": Path(toy.__file__).read_text()},
        )

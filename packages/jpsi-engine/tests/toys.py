"""The toy batch system, as an installed plugin, with a configuration for tests that wait for few things."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from jpsi.plugin import BatchConfig
from jpsi_testing import PluginDirectory, toy

#: The configuration of an executor whose queries and grace periods are short.
QUICK = BatchConfig(
    shortest_interval=timedelta(seconds=0.1),
    longest_interval=timedelta(seconds=0.3),
    grace=timedelta(seconds=0.5),
)


def install_toy(plugin_directory: PluginDirectory) -> None:
    """Install the executor `toy`."""
    plugin_directory.add(
        "jpsi-toy",
        "0.1",
        entry_points={"jpsi.executors": {"toy": "jpsi_toy"}},
        files={"jpsi_toy.py": Path(toy.__file__).read_text()},
    )

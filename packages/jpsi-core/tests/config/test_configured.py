from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import jpsi

SITE = """
default_executor: Cluster
plugin_path: [/opt/site]
executors:
  Slurm: {version: ">= 0.1", config: {grace: 90, command_timeout: 1m}, defaults: {queue_name: main}}
targets:
  cluster: {executor: slurm}
"""
USER = """
executors:
  slurm: {config: {grace: 30}, defaults: {duration: 1h}}
targets:
  Cluster: {url: "ssh://there", defaults: {account: mine}}
"""


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    path = folder / "config.yaml"
    path.write_text(text)
    return path


def test_without_files_nothing_is_configured() -> None:
    assert jpsi.configuration() == jpsi.Configuration(
        files=[], default_executor=None, plugin_path=[], executors={}, targets={}
    )


def test_the_merged_content_of_the_files_is_reported(tmp_path: Path) -> None:
    site, user = write(tmp_path / "site-config/jpsi", SITE), write(tmp_path / "config/jpsi", USER)

    found = jpsi.configuration()

    assert found.files == [user, site]
    assert (found.default_executor, found.plugin_path) == ("Cluster", [Path("/opt/site")])
    assert found.executors == {
        "slurm": jpsi.Configured(
            executor=None,
            url=None,
            version=">= 0.1",
            config={"grace": 30, "command_timeout": "1m"},
            defaults={"duration": timedelta(hours=1), "queue_name": "main"},
        )
    }
    assert found.targets == {
        "cluster": jpsi.Configured(
            executor="slurm", url="ssh://there", version=None, config={}, defaults={"project_name": "mine"}
        )
    }


def test_a_wrong_value_is_named(tmp_path: Path) -> None:
    write(tmp_path / "config/jpsi", "executor: {}\n")

    with pytest.raises(jpsi.ConfigError, match="executor"):
        jpsi.configuration()

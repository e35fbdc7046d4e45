"""The page about clusters behind SSH does what it says, by a stand-in for ssh and with a fake of Slurm."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from jpsi.fakes import on_path
from pages import Reader
from stand_in import StandIn

PAGE = Path(__file__).parents[3] / "docs/guide/remote.md"


def test_who_follows_the_page_sees_what_it_shows(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader has no batch system: its commands are where ssh leads to, with another home directory."""
    monkeypatch.setenv("TMPDIR", str(runtime))
    home = tmp_path / "there"
    home.mkdir()
    here = tmp_path / "here"
    here.mkdir()
    reader = Reader(here)
    ssh = StandIn(here / "bin")
    ssh.know("login.example")

    with on_path("slurm"):
        path = shlex.quote(os.environ["PATH"])
        ssh.login(f"cd {shlex.quote(str(home))}; export HOME=$PWD PATH={path}; unset XDG_STATE_HOME\n")
        reader.follow(PAGE.read_text())

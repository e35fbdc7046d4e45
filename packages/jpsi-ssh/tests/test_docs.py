"""The page about clusters behind SSH, with a fake of ssh and a fake of Slurm."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_ssh import FakeSsh
from jpsi_testing.fake import on_path
from pages import Reader

PAGE = Path(__file__).parents[3] / "docs/guide/remote.md"
README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def reader(tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """Yield a reader whose batch system is on the remote host, with another home directory."""
    monkeypatch.setenv("TMPDIR", str(runtime))
    home = tmp_path / "there"
    home.mkdir()
    here = tmp_path / "here"
    here.mkdir()
    reader = Reader(here)
    ssh = FakeSsh(here / "bin")
    ssh.know("login.example")

    with on_path("slurm"):
        path = shlex.quote(os.environ["PATH"])
        ssh.login(f"cd {shlex.quote(str(home))}; export HOME=$PWD PATH={path}; unset XDG_STATE_HOME\n")
        yield reader


def test_commands_of_the_page_print_what_it_shows(reader: Reader) -> None:
    reader.follow(PAGE.read_text())


def test_the_program_of_the_readme_ends_well(reader: Reader) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    file = f"```{{code-block}} python\n:caption: readme.py\n\n{program}```\n"

    reader.follow(f"{file}```console\n$ python readme.py\nCOMPLETED, exit code 0\n```\n")

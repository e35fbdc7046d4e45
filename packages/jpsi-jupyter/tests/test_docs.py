"""The guide's page about Jupyter, followed as written."""

from __future__ import annotations

import sys
from pathlib import Path

from jpsi.plugin import line
from pages import Reader

PAGE = Path(__file__).parents[3] / "docs/guide/jupyter.md"


def test_the_page_about_jupyter_can_be_followed(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    command = tmp_path / "bin/jupyter"
    program = line(sys.executable, "-m", "jupyter_client.runapp")
    command.write_text(f'#!/bin/sh\n[ "$1" = run ] && shift && exec {program} "$@"\n', encoding="utf-8")
    command.chmod(0o755)

    reader.follow(PAGE.read_text(encoding="utf-8"))

"""The guide's page about Snakemake, followed as written."""

from __future__ import annotations

import sys
from pathlib import Path

from jpsi.plugin import line
from pages import Reader

PAGE = Path(__file__).parents[3] / "docs/guide/snakemake.md"


def test_the_page_about_snakemake_can_be_followed(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    command = tmp_path / "bin/snakemake"
    command.write_text(f'#!/bin/sh\nexec {line(sys.executable)} -m snakemake "$@"\n', encoding="utf-8")
    command.chmod(0o755)

    reader.follow(PAGE.read_text(encoding="utf-8"))

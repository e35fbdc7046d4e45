"""The first steps, and the page about the command line, followed as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages import Reader

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("page", ["index.md", "start.md", "guide/cli.md"])
def test_commands_of_the_page_print_the_documented_output(tmp_path: Path, page: str) -> None:
    root = tmp_path / "reader"
    root.mkdir()
    Reader(root).follow((DOCS / page).read_text())

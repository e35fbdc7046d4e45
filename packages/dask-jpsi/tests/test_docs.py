"""The guide's page about Dask, followed as written."""

from __future__ import annotations

from pathlib import Path

from pages import Reader

PAGE = Path(__file__).parents[3] / "docs/guide/dask.md"


def test_the_page_about_dask_can_be_followed(tmp_path: Path) -> None:
    Reader(tmp_path).follow(PAGE.read_text(encoding="utf-8"))

"""The guide's page about Dask, followed as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages import Reader

PAGE = Path(__file__).parents[3] / "docs/guide/dask.md"


def test_the_page_about_dask_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Dask logs, or not, how its connections close: that depends on which side closes first
    monkeypatch.setenv("DASK_LOGGING__DISTRIBUTED", "critical")
    reader = Reader(tmp_path)
    # another cluster on this machine may have the port of Dask's web page, of which Dask warns
    ignore = 'import warnings; warnings.filterwarnings("ignore", "Port 8787 is already in use")\n'
    (tmp_path / "site/sitecustomize.py").write_text(ignore)
    reader.follow(PAGE.read_text(encoding="utf-8"))

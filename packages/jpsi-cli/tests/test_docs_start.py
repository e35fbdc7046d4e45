"""The first steps do what they say."""

from __future__ import annotations

from pathlib import Path

from pages import Reader

START = Path(__file__).parents[3] / "docs/start.md"


def test_who_follows_the_first_steps_sees_what_they_show(tmp_path: Path) -> None:
    root = tmp_path / "reader"
    root.mkdir()
    Reader(root).follow(START.read_text())

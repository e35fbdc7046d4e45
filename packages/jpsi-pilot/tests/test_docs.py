"""The pages about pilots, followed as written."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from jpsi_pilot.engines import GROUP
from pages import File, Reader, steps
from pilot_support import end_agent

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.clause("layer-nested")
def test_the_page_can_be_followed_and_prints_the_documented_output(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    try:
        reader.follow((DOCS / "guide/pilots.md").read_text())
    finally:
        for lock in tmp_path.rglob("agent.lock"):
            end_agent(lock.parent)


def test_the_page_for_authors_of_engines_names_their_entry_point_group() -> None:
    (file,) = steps((DOCS / "plugins/pilot-engine.md").read_text())
    assert isinstance(file, File)

    (group,) = tomllib.loads(file.text)["project"]["entry-points"]
    assert group == GROUP

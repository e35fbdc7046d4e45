"""The page about psij-python's tests names each of them once, and tests of ours that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = (TESTS.parents[2] / "docs/reference/psij-tests.md").read_text(encoding="utf-8")


def test_each_test_of_psij_python_is_named_once() -> None:
    theirs = re.findall(r"`(test_\w+)`", PAGE.partition("|---|")[2].partition("\n\n")[0])

    assert len(theirs) == len(set(theirs)) == 61


def test_each_test_of_ours_exists() -> None:
    ours = set(re.findall(r"`(\w+\.py)::(\w+)`", PAGE))

    assert ours
    for file, name in ours:
        assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")

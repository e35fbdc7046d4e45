"""The page of guarantees names tests, and each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_PLACES = (
    "packages/*/tests/**/*.py",
    "packages/*/e2e/**/*.py",
    "packages/jpsi-testing/src/jpsi_testing/conformance/*.py",
    "chaos/**/*.py",
)
# A name in brackets, as the page has it.
_NAMED = re.compile(r"`(test_\w+)`")
_DEFINED = re.compile(r"^ *def (test_\w+)\(", re.MULTILINE)


def named_tests(page: str) -> list[str]:
    return _NAMED.findall(page)


def known_tests(root: Path) -> set[str]:
    files = (path for place in _PLACES for path in root.glob(place))
    return {name for path in files for name in _DEFINED.findall(path.read_text(encoding="utf-8"))}


def lines_without_a_test(page: str) -> list[str]:
    """Return the guarantees, without the assumptions, that name no test and link to no page."""
    guaranteed = page.split("## What is assumed", maxsplit=1)[0]
    items = re.split(r"^- ", guaranteed, flags=re.MULTILINE)[1:]
    return [it.splitlines()[0] for it in items if not named_tests(it) and "](" not in it]


@pytest.fixture(scope="module")
def page() -> str:
    return (ROOT / "docs/guide/guarantees.md").read_text(encoding="utf-8")


def test_every_test_that_the_page_names_is_there(page: str) -> None:
    assert set(named_tests(page)) - known_tests(ROOT) == set()


def test_every_guarantee_names_a_test(page: str) -> None:
    assert lines_without_a_test(page) == []


def test_a_guarantee_without_a_test_is_reported() -> None:
    text = "# T\n\n- It holds\n  (`test_x`).\n- It is said.\n\n## What is assumed\n\n- This.\n"

    assert lines_without_a_test(text) == ["It is said."]

"""The first steps, and the page about the command line, followed as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pages import Reader

DOCS = Path(__file__).parents[3] / "docs"


def test_the_readme_and_the_first_steps_can_be_followed_one_after_the_other(tmp_path: Path) -> None:
    (command,) = re.findall(r"(?m)^jpsi run .*$", (DOCS.parent / "README.md").read_text())
    readme = f"```console\n$ {command}\nhello from ...\n```\n"
    root = tmp_path / "reader"
    root.mkdir()

    Reader(root).follow(readme + (DOCS / "start.md").read_text())


@pytest.mark.parametrize("page", ["index.md", "guide/cli.md", "guide/containers.md"])
def test_commands_of_the_page_print_the_documented_output(tmp_path: Path, page: str) -> None:
    root = tmp_path / "reader"
    root.mkdir()

    Reader(root).follow((DOCS / page).read_text())


def test_names_of_jobs_differ_between_the_pages_that_follow_each_other() -> None:
    pages = [(DOCS / it).read_text() for it in ("../README.md", "start.md", "guide/cli.md")]
    names = [name for page in pages for name in re.findall(r"(?:run|submit) [^\n]*--name (\w+)", page)]

    assert len(names) == len({*names}) > 4

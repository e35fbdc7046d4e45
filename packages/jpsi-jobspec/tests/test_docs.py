"""The guide's page about workflows, and the document of the README, followed as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobspec_support import loaded
from pages import Reader

ROOT = Path(__file__).parents[3]


def test_the_page_about_workflows_can_be_followed(tmp_path: Path) -> None:
    Reader(tmp_path).follow((ROOT / "docs/guide/workflows.md").read_text())

    # the picture on the page is the reader's output
    (made,) = tmp_path.rglob("training.svg")
    assert made.read_text() == (ROOT / "docs/guide/workflow.svg").read_text()


@pytest.mark.parametrize("page", ["packages/jpsi-jobspec/README.md", "docs/guide/workflows.md"])
def test_documents_in_the_documentation_are_valid(page: str) -> None:
    text = (ROOT / page).read_text()
    documents = re.findall(r"(?ms)^```[^\n]*yaml\n(?::caption:[^\n]*\n\n)?(.*?)^```$", text)

    assert documents
    assert [loaded(it, is_strict=True)[1] for it in documents] == [[]] * len(documents)


def test_every_code_is_on_the_page_of_rules() -> None:
    page = (ROOT / "docs/reference/workflow-rules.md").read_text()
    sources = (ROOT / "packages/jpsi-jobspec/src/jpsi_jobspec").rglob("*.py")

    used = {code for it in sources for code in re.findall(r'"(JS[0-9]{3})"', it.read_text())}
    assert re.findall(r"(?m)^\| (JS[0-9]{3}) \|", page) == sorted(used)


def test_each_ruling_names_existing_tests() -> None:
    page = (ROOT / "docs/reference/workflow-rules.md").read_text()
    folder = ROOT / "packages/jpsi-jobspec/tests"

    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", page)

    assert len(named) > 30
    assert [it for it in named if f"\ndef {it[1]}(" not in (folder / it[0]).read_text()] == []

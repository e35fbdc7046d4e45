"""The pages for authors of plugins, and those of the guide, do what they say."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

import jpsi
from pages import PageError, Reader, steps

DOCS = Path(__file__).parents[3] / "docs"
#: What is about another package, such as jpsi-cli, is followed by the tests of that.
OF_OTHERS = {
    *(
        f"guide/{name}.md"
        for name in (
            *("cli", "dask", "functions", "jupyter", "parsl", "pilots", "remote", "requests", "snakemake"),
            *("speak", "workflows"),
        )
    ),
    "plugins/pilot-engine.md",
}
# The one that takes longest comes first; its tests, the whole conformance class, mostly wait.
LONGEST = "plugins/executor.md"
PAGES = (
    LONGEST,
    "plugins/testing.md",
    "plugins/backend-hooks.md",
    "plugins/index.md",
    "plugins/launcher.md",
    "plugins/override.md",
    "plugins/transport.md",
    *sorted({f"guide/{it.name}" for it in DOCS.glob("guide/*.md")} - OF_OTHERS),
)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_print_what_it_shows(page: str, tmp_path: Path) -> None:
    Reader(tmp_path, at_a_time=3 if page == LONGEST else 0).follow((DOCS / page).read_text())


def test_every_page_for_authors_is_followed() -> None:
    assert {f"plugins/{path.name}" for path in DOCS.glob("plugins/*.md")} < {*PAGES, *OF_OTHERS}


#: The first steps are followed by the tests of jpsi-cli.
FOLLOWED = {*PAGES, *OF_OTHERS, "index.md", "start.md"}
# What Sphinx makes text of; the programs in examples/ have tests of their own.
_MADE = re.compile(r"^```+\{(?:eval-rst|literalinclude)\}.*?^```+$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", sorted({str(it.relative_to(DOCS)) for it in DOCS.rglob("*.md")} - FOLLOWED))
def test_no_other_page_has_blocks_that_tests_could_run(page: str) -> None:
    assert steps(_MADE.sub("", (DOCS / page).read_text())) == []


@pytest.mark.parametrize("page", sorted(str(it.relative_to(DOCS)) for it in DOCS.rglob("*.md")))
def test_every_page_says_at_its_top_who_it_is_for(page: str) -> None:
    assert re.match(r"# .+\n\n\*For: [^*]+\.\*\n\n", (DOCS / page).read_text())


def test_the_sidebar_has_at_most_seven_groups() -> None:
    _, _, entries = (DOCS / "index.md").read_text().partition(":maxdepth: 2\n\n")

    assert 0 < len(entries.removesuffix("```\n").split("\n")) - 1 <= 7


def test_the_page_about_documents_has_a_place_for_every_field() -> None:
    text = (DOCS / "guide/documents.md").read_text()
    fields = [
        it
        for of in (jpsi.JobSpec, jpsi.JobAttributes, jpsi.ResourceSpecV1, jpsi.HeterogeneousResources)
        for it in attrs.fields(of)
    ]

    names = {field.name for field in fields} - {"attributes", "resources"}

    assert [name for name in names if not re.search(rf"`(attributes\.)?{name}`", text)] == []


FILE = "```{code-block} python\n:caption: a.py\n\nprint('hello')\n```\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{FILE}```console\n$ python a.py\nhallo\n```\n", "line 7: `python a.py` ended with 0"),
        (f"{FILE}```console\n$ python a.py\n```\n", "printed\nhello"),
        (f"{FILE}```console\n$ python b.py\n...\n```\n", "ended with 2"),
        ("```console\n$ true\n$ false\n```\n", "line 3: `false` ended with 1"),
        ("```python\nprint('hello')\n```\n", "line 1: no test runs a block of python"),
        ("text\n```{code-block} python\nprint('hello')\n```\n", "line 2: the caption"),
        ("```console\nhello\n```\n", "begins with a command"),
        ("```console\n$ sbatch x\n```\n", "sbatch: not faked by the page"),
    ],
    ids=[
        "output",
        "more output",
        "code",
        "which command",
        "not run",
        "no caption",
        "no command",
        "real cluster",
    ],
)
def test_a_wrong_page_is_an_error(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(PageError) as caught:
        Reader(tmp_path).follow(text)

    assert expected in str(caught.value)


def test_a_page_that_is_right_is_not(tmp_path: Path) -> None:
    text = "```console\n$ mkdir x && cd x\n$ export A=1\n```\n" + FILE
    text += "```console\n$ python a.py; pwd; echo \\\n> $A\nhello\n/home/...\n1\n"
    text += "$ cat ~/x/a.py\nprint(...)\n```\n"

    Reader(tmp_path).follow(text)

    assert len(steps(text)) == 5

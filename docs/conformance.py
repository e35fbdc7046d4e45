"""Writes conformance.md: each clause of conformance.yaml with the tests whose marker says that they prove it.

    python docs/conformance.py [--check]

With `--check` nothing is written, and a page that is not what the tests say is an error. So is, either way, a
clause without a test and without a reason for that, and a test of a clause that there is not.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).parent
ROOT = DOCS.parent
PAGE = DOCS / "conformance.md"
TABLE = DOCS / "conformance.yaml"
#: Where tests are: those of a package, and those that every backend or launcher inherits.
TESTS = "packages/*/tests/**/test_*.py"
INHERITED = "packages/jpsi-core/src/jpsi/testing/*.py"

INTRODUCTION = """\
# Conformance and deviations

jpsi implements the [J/PSI specification](https://exaworks.org/job-api-spec/specification) and the
architecture of PSI/J for Python; and, in [jpsi-records](guide/requests.md), a draft of requests. Here is
what they demand, in our words, with the tests that prove it. A test names the clauses that it proves, and
this page is made from the tests. It is not built if a clause has none.

In front of a test stands its package. All *backends* and *launchers* inherit theirs from `jpsi.testing`, and
so do those that [others write](plugins/testing.md).
"""


def main() -> int:
    """Write the page, or compare it."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    found = mistakes()
    print("".join(f"{mistake}\n" for mistake in found), end="")
    return 1 if found else 0


def page() -> str:
    """The text of the page."""
    documents, proofs = table(), tests_by_clause()
    return "\n".join([INTRODUCTION, *deviations(clauses(documents), proofs), *sections(documents, proofs)])


def mistakes() -> list[str]:
    """Why the page is not to be believed."""
    found = list(wrong(clauses(table()), tests_by_clause()))
    if PAGE.read_text(encoding="utf-8") != page():
        found.append("docs/conformance.md is not what the tests say; run `python docs/conformance.py`")
    return found


def table() -> list[dict[str, Any]]:
    """What conformance.yaml holds."""
    documents: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return documents


def clauses(documents: list[dict[str, Any]]) -> list[dict[str, str]]:
    """All of them."""
    return [it for document in documents for section in document["sections"] for it in section["clauses"]]


def wrong(known: list[dict[str, str]], proofs: Mapping[str, list[str]]) -> Iterator[str]:
    """What keeps the page from being built."""
    ids = [clause["id"] for clause in known]
    yield from (f"there are two clauses {name!r}" for name in sorted({it for it in ids if ids.count(it) > 1}))
    yield from (
        f"no test proves the clause {clause['id']!r}, and it does not say why"
        for clause in known
        if clause["id"] not in proofs and "untested" not in clause
    )
    yield from (
        f"{', '.join(tests)}: there is no clause {name!r}"
        for name, tests in proofs.items()
        if name not in ids
    )


def deviations(known: list[dict[str, str]], proofs: Mapping[str, list[str]]) -> Iterator[str]:
    """The table of what jpsi does otherwise, on purpose."""
    yield "## Deviations\n"
    yield "| What is demanded | What jpsi does, and why | Tests |\n|---|---|---|"
    for clause in known:
        if "deviates" in clause:
            yield f"| {clause['says']} | {clause['deviates']} | {cell(clause, proofs)} |"
    yield ""


def sections(documents: list[dict[str, Any]], proofs: Mapping[str, list[str]]) -> Iterator[str]:
    """All clauses, a table for each section."""
    for document in documents:
        yield f"## {document['title']}\n"
        for section in document["sections"]:
            yield f"### {section['title']}\n"
            yield "| Clause | | Tests |\n|---|---|---|"
            for clause in section["clauses"]:
                mark = " *Deviates, see above.*" if "deviates" in clause else ""
                word = "" if clause["word"] == "text" else clause["word"]
                yield f"| {clause['says']}{mark} | {word} | {cell(clause, proofs)} |"
            yield ""


def cell(clause: dict[str, str], proofs: Mapping[str, list[str]]) -> str:
    """The tests of a clause, as a table has them."""
    return "<br>".join(proofs.get(clause["id"], [clause.get("untested", "none")]))


def tests_by_clause() -> dict[str, list[str]]:
    """What tests are called, by the clause that they prove, in the order of the files."""
    found = defaultdict(list)
    for path in sorted([*ROOT.glob(TESTS), *ROOT.glob(INHERITED)]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for name in clauses_of(node):
                    found[name].append(called(path, node.name))
    return dict(found)


def clauses_of(function: ast.FunctionDef) -> Iterator[str]:
    """The ids in the marker of a test, if it has one."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.clause":
            yield from (ast.literal_eval(argument) for argument in decorator.args)


def called(path: Path, test: str) -> str:
    """What the page calls a test."""
    if path.match(INHERITED):
        whose = "launchers" if "_launch_" in path.name else "backends"
        return f"*{whose}*: `{test}`"
    package, _, *below = path.relative_to(ROOT / "packages").parts
    return f"{package.removeprefix('jpsi-')}: `{'/'.join(below)}::{test}`"


if __name__ == "__main__":
    sys.exit(main())

"""Writes conformance.md: each clause of conformance.yaml with the tests whose marker says that they prove it.

    python docs/conformance.py [--check]

With `--check` nothing is written, and a page that is not what the tests say is an error. So is, either way, a
clause without a test and without a reason for that, a test of a clause that there is not, and a test that
is never run.
"""

from __future__ import annotations

import ast
import re
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
INHERITED = "packages/jpsi-testing/src/jpsi_testing/conformance/*.py"
#: The classes that backends and launchers inherit; theirs are the tests of all that they inherit themselves.
INHERITING = ("ExecutorConformance", "LauncherConformance")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef

INTRODUCTION = """\
# Conformance and deviations

*For: people who compare jpsi with the specification.*

jpsi implements the [J/PSI specification](https://exaworks.org/job-api-spec/specification) and the
architecture of PSI/J for Python; in [jpsi-jobspec](guide/workflows.md), JobSpec, the Next Generation; and in
[jpsi-records](guide/requests.md), a draft of requests. Here is what they demand, in our words, with the
tests that prove it. A test names the clauses that it proves, and this page is made from the tests. It is
not built if a clause has none, or one that is never run. What jpsi does where a workflow leaves something
open stands with
[the rules for workflows](reference/workflow-rules.md).

In front of a test stands its package. All *backends* and *launchers* inherit theirs from `jpsi_testing`, and
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
    found = [*wrong(clauses(table()), tests_by_clause()), *never_run()]
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
            yield f"| {in_cell(clause['says'])} | {in_cell(clause['deviates'])} | {cell(clause, proofs)} |"
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
                yield f"| {in_cell(clause['says'])}{mark} | {word} | {cell(clause, proofs)} |"
            yield ""


def in_cell(text: str) -> str:
    """Write text so that none of it ends the cell of a table, such as `a|b`."""
    return text.replace("|", r"\|")


def cell(clause: dict[str, str], proofs: Mapping[str, list[str]]) -> str:
    """The tests of a clause, as a table has them."""
    return "<br>".join(proofs.get(clause["id"], [clause.get("untested", "none")]))


def tests_by_clause() -> dict[str, list[str]]:
    """What tests are called, by the clause that they prove, in the order of the files."""
    found = defaultdict(list)
    for path, _, function in marked():
        for name in clauses_of(function):
            found[name].append(called(path, function.name))
    return dict(found)


def never_run() -> Iterator[str]:
    """Name the tests of clauses that pytest would not run, and say why."""
    inherited = set(inherited_classes())
    for path, around, function in marked():
        if why := why_not_run(path, around, function, inherited):
            yield f"{called(path, function.name)} is never run: {why}"


def marked() -> Iterator[tuple[Path, tuple[Definition, ...], Function]]:
    """Yield each function that says which clauses it proves, with its file and what it stands in."""
    for path in sorted([*ROOT.glob(TESTS), *ROOT.glob(INHERITED)]):
        for around, function in functions(ast.parse(path.read_text(encoding="utf-8"))):
            if any(clauses_of(function)):
                yield path, around, function


def functions(
    node: ast.AST, around: tuple[Definition, ...] = ()
) -> Iterator[tuple[tuple[Definition, ...], Function]]:
    """Yield each function below `node`, with the definitions that it stands in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield around, child
        yield from functions(child, (*around, child) if isinstance(child, Definition) else around)


def why_not_run(path: Path, around: tuple[Definition, ...], function: Function, inherited: set[str]) -> str:
    """Say why pytest would not run a test; empty if it would."""
    is_inherited = path.match(INHERITED)
    reasons = {
        "its name does not begin with test": not function.name.startswith("test"),
        "nothing awaits it": isinstance(function, ast.AsyncFunctionDef),
        "it is in another function": any(isinstance(it, Function) for it in around),
        "it is skipped": any(is_skipped(it) for it in (*around, function)),
        "its class is no Test": not is_inherited and not all(it.name.startswith("Test") for it in around),
        "no conformance class inherits it": is_inherited and not {it.name for it in around} & inherited,
    }
    return next((why for why, is_so in reasons.items() if is_so), "")


def is_skipped(node: Definition) -> bool:
    """Return True if a test, or a class of tests, is never run anywhere."""
    return any(re.fullmatch(r"pytest\.mark\.skip(\(.*)?", ast.unparse(it)) for it in node.decorator_list)


def inherited_classes() -> Iterator[str]:
    """Yield the classes whose tests every backend or launcher inherits."""
    bases = {
        node.name: [ast.unparse(base) for base in node.bases]
        for path in ROOT.glob(INHERITED)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    }
    left = list(INHERITING)
    while left:
        name = left.pop()
        yield name
        left += bases.get(name, [])


def clauses_of(function: Function) -> Iterator[str]:
    """The ids in the marker of a test, if it has one."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.clause":
            yield from (ast.literal_eval(argument) for argument in decorator.args)


def called(path: Path, test: str) -> str:
    """What the page calls a test."""
    if path.match(INHERITED):
        whose = "launchers" if path.name.startswith("launcher") else "backends"
        return f"*{whose}*: `{test}`"
    package, _, *below = path.relative_to(ROOT / "packages").parts
    return f"{package.removeprefix('jpsi-')}: `{'/'.join(below)}::{test}`"


if __name__ == "__main__":
    sys.exit(main())

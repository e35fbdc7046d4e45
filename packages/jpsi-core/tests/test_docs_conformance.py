"""Each clause of the specification has a test, and the page that lists them is what the tests say."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def run(docs: Path) -> tuple[int, str]:
    command = [sys.executable, str(docs / "conformance.py"), "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_page_agrees_with_the_tests() -> None:
    assert run(ROOT / "docs") == (0, "")


TABLE = "- title: T\n  sections: [{title: S, clauses: [{id: a, word: MUST, says: It is so.}]}]\n"
PROOF = "import pytest\n\n\n@pytest.mark.clause('a')\ndef test_it() -> None: ...\n"


@pytest.mark.parametrize(
    ("table", "test", "mistake"),
    [
        (TABLE, "", "no test proves the clause 'a', and it does not say why"),
        (TABLE, PROOF.replace("'a'", "'a', 'b'"), "test_it`: there is no clause 'b'"),
        (TABLE + TABLE, PROOF, "there are two clauses 'a'"),
        (TABLE, PROOF, "conformance.md is not what the tests say"),
    ],
    ids=["no test", "no clause", "two", "page"],
)
def test_an_error_that_prevents_the_page_is_reported(
    tmp_path: Path, table: str, test: str, mistake: str
) -> None:
    docs, tests = tmp_path / "docs", tmp_path / "packages/jpsi-x/tests"
    docs.mkdir()
    tests.mkdir(parents=True)
    shutil.copy(ROOT / "docs/conformance.py", docs)
    (docs / "conformance.yaml").write_text(table)
    (docs / "conformance.md").write_text("")
    (tests / "test_x.py").write_text(test)

    code, output = run(docs)

    assert code == 1
    assert mistake in output


def write_project(root: Path, files: dict[str, str]) -> Path:
    """Write a table of one clause, and files of tests; return where the table is."""
    for name, text in {"docs/conformance.yaml": TABLE, "docs/conformance.md": "", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    shutil.copy(ROOT / "docs/conformance.py", root / "docs")
    return root / "docs"


MARK = "@pytest.mark.clause('a')\n"
IN_CLASS = "class %s:\n    @pytest.mark.clause('a')\n    def test_it(self) -> None: ...\n"
INHERITED = "packages/jpsi-testing/src/jpsi_testing/conformance/"


@pytest.mark.parametrize(
    ("files", "why"),
    {
        "another name": ({"test_x.py": f"{MARK}def check_it(): ..."}, "its name does not begin with test"),
        "not awaited": ({"test_x.py": f"{MARK}async def test_it(): ..."}, "nothing awaits it"),
        "inside": ({"test_x.py": f"def test():\n  {MARK}  def test_it(): ..."}, "it is in another function"),
        "skipped": ({"test_x.py": f"{MARK}@pytest.mark.skip\ndef test_it(): ..."}, "it is skipped"),
        "skipped with a reason": (
            {"test_x.py": f"{MARK}@pytest.mark.skip(reason='slow')\ndef test_it(): ..."},
            "it is skipped",
        ),
        "class": ({"test_x.py": IN_CLASS % "Some"}, "its class is no Test"),
        "not inherited": (
            {f"../../../{INHERITED}some.py": IN_CLASS % "SomeTests"},
            "no conformance class inherits it",
        ),
    }.values(),
    ids=str,
)
def test_a_test_of_a_clause_that_is_never_run_is_an_error(
    tmp_path: Path, files: dict[str, str], why: str
) -> None:
    docs = write_project(tmp_path, {f"packages/jpsi-x/tests/{name}": text for name, text in files.items()})

    code, output = run(docs)

    assert code == 1
    assert f"is never run: {why}\n" in output


def test_tests_that_run_are_no_error(tmp_path: Path) -> None:
    files = {
        "packages/jpsi-x/tests/test_x.py": f"{MARK}def test_it(): ...\n{IN_CLASS % 'TestSome'}",
        f"{INHERITED}some.py": IN_CLASS % "SomeTests",
        f"{INHERITED}executor.py": "class ExecutorConformance(OtherTests): ...",
        f"{INHERITED}other.py": "class OtherTests(SomeTests): ...",
    }

    assert "is never run" not in run(write_project(tmp_path, files))[1]


def test_a_clause_without_a_test_may_say_why(tmp_path: Path) -> None:
    shutil.copy(ROOT / "docs/conformance.py", tmp_path)
    (tmp_path / "conformance.yaml").write_text(TABLE.replace("so.", "so., untested: it cannot be seen"))
    subprocess.run([sys.executable, str(tmp_path / "conformance.py")], check=True)

    assert "| It is so. | MUST | it cannot be seen |" in (tmp_path / "conformance.md").read_text()


def test_a_clause_with_a_bar_stays_in_its_cell(tmp_path: Path) -> None:
    shutil.copy(ROOT / "docs/conformance.py", tmp_path)
    text = TABLE.replace("It is so.", "'It is a|b.', deviates: 'c|d', untested: unseen")
    (tmp_path / "conformance.yaml").write_text(text)
    subprocess.run([sys.executable, str(tmp_path / "conformance.py")], check=True)

    page = (tmp_path / "conformance.md").read_text()
    assert r"| It is a\|b. | c\|d | unseen |" in page
    assert r"| It is a\|b. *Deviates, see above.* | MUST | unseen |" in page

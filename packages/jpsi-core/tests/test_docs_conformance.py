"""Each clause of the specification has a test, and the page that lists them is what the tests say."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def told(docs: Path) -> tuple[int, str]:
    command = [sys.executable, str(docs / "conformance.py"), "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_page_is_what_the_tests_say() -> None:
    assert told(ROOT / "docs") == (0, "")


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
def test_what_keeps_the_page_from_being_built_is_told(
    tmp_path: Path, table: str, test: str, mistake: str
) -> None:
    docs, tests = tmp_path / "docs", tmp_path / "packages/jpsi-x/tests"
    docs.mkdir()
    tests.mkdir(parents=True)
    shutil.copy(ROOT / "docs/conformance.py", docs)
    (docs / "conformance.yaml").write_text(table)
    (docs / "conformance.md").write_text("")
    (tests / "test_x.py").write_text(test)

    code, said = told(docs)

    assert code == 1
    assert mistake in said


def test_a_clause_without_a_test_may_say_why(tmp_path: Path) -> None:
    shutil.copy(ROOT / "docs/conformance.py", tmp_path)
    (tmp_path / "conformance.yaml").write_text(TABLE.replace("so.", "so., untested: it cannot be seen"))
    subprocess.run([sys.executable, str(tmp_path / "conformance.py")], check=True)

    assert "| It is so. | MUST | it cannot be seen |" in (tmp_path / "conformance.md").read_text()

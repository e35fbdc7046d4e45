"""The docstrings of all packages are plain: they name the actor, and begin with what a thing is or does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = sorted(path.parent for path in ROOT.glob("packages/*/src/*/__init__.py"))
# What a reader has to turn around in their head first.
OPENING = re.compile(
    r"(What|Whether|How|Those|Whoever|Who|Whose|Which|When|Where|Nobody|Somebody|One|That|It|Of|As|To|So"
    r"|There)\b"
)
# No reader would search for these, and they hide who acts.
PHRASE = re.compile(
    r"\b(nobody|somebody|whoever|over there|elsewhere|(?:is|was|are|were|be) told|to be had|given anew"
    r"|strangers?|written down|comes? to nothing|came of|stands? in line|begun anew|lets? go of|one asks"
    r"|one waits|far (?:machine|side|host|folder))\b",
    re.IGNORECASE,
)


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Return the docstrings of a module, without their examples, each with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                line = node.body[0].lineno
                yield line, re.sub(r"^>>>.*?(?=\n\n|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)


def refused_words(source: str) -> list[str]:
    """Return the refused words in the docstrings of a module."""
    found = []
    for line, text in docstrings(source):
        if match := OPENING.match(text):
            found.append(f"{line}: opens with {match[0]!r}")
        found += [f"{line}: {match[0]!r}" for match in PHRASE.finditer(text)]
    return found


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_docstrings_are_plain(package: Path) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{it}"
        for path in sorted(package.rglob("*.py"))
        for it in refused_words(path.read_text(encoding="utf-8"))
    ]

    assert found == []


# Users could not tell what these messages meant; their like is not to come back.
MESSAGE = re.compile(
    r"is asked by commands|left its word|it is not told|nothing that a request says|no job can wait here"
    r"|in no group whose|give it more, --|[Nn]obody wants|[Ss]omebody else|without a word\b|is asked for in"
    r"|lies over nothing|end was asked for|was asked again|only carries it|has no partner|read to its end"
)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_messages_are_plain(package: Path) -> None:
    texts = (
        (path, node.lineno, node.value)
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )

    found = [f"{path.relative_to(ROOT)}:{line}: {text}" for path, line, text in texts if MESSAGE.search(text)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Return the jobs.", []),
        ("What the jobs are.", ["1: opens with 'What'"]),
        ("Return the jobs that nobody follows.", ["1: 'nobody'"]),
        ("Return a job.\n\n>>> job()\n'nobody'\n\nIt is told.", ["1: 'is told'"]),
    ],
)
def test_refused_words_are_found(text: str, expected: list[str]) -> None:
    assert refused_words(f'"""{text}"""') == expected

"""Collects the help and the messages of `jpsi` into one file, to be read whole, as by a new user.

    python packages/jpsi-cli/tests/texts.py

writes `texts.txt` beside it, which a test compares. Help of commands of other packages is in it, too, where
these are installed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest.mock import patch

import click

from jpsi_cli.main import cli

FILE = Path(__file__).with_suffix(".txt")
SOURCE = Path(__file__).parents[1] / "src/jpsi_cli"
WIDTH = 100
#: The beginnings of the headings with the help of commands of other packages.
OF_OTHER_PACKAGES = ("jpsi request ", "jpsi speak ", "jpsi workflow ")
#: Text of at least so many words is a message or a part of one.
_WORDS = 3
_WORD = re.compile(r"[A-Za-z]{2,}|\{[^{}]*\}")
# Of patterns that read what programs print, of programs in shell and Python, and of style sheets.
_NO_MESSAGE = re.compile(r"\(\?|\\[bsSdw.(\[]|\[\^|\|\w|\$\(|\"\$|^from \w+ import|\{ [a-z]+: ")


def sections() -> Mapping[str, str]:
    """Return the text of each section of the file by its heading: a command, or a module."""
    helps = {f"jpsi {' '.join(path)} --help".replace("  ", " "): text for path, text in _helps(cli, ())}
    messages = {f"messages of {path.relative_to(SOURCE)}": path for path in sorted(SOURCE.rglob("*.py"))}
    # whatever is installed besides
    own = [text for heading, text in helps.items() if not heading.startswith(OF_OTHER_PACKAGES)]
    shown = _in_one_line("".join(own))
    found = {
        heading: "\n".join(f"- {it}" for it in _messages(path) if _in_one_line(it) not in shown)
        for heading, path in messages.items()
    }
    return {**helps, **{heading: text for heading, text in found.items() if text}}


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def render(found: Mapping[str, str]) -> str:
    """Return the content of the file."""
    return "".join(f"==== {heading}\n\n{text}\n\n" for heading, text in found.items())


def parse(text: str) -> Mapping[str, str]:
    """Return the sections of the file by their headings."""
    parts = re.split(r"^==== (.*)\n\n", text, flags=re.MULTILINE)[1:]
    return {heading: body.removesuffix("\n\n") for heading, body in zip(parts[::2], parts[1::2], strict=True)}


def _helps(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    parent = None
    for name in ("jpsi", *path[:-1]):
        parent = click.Context(click.Group(name), info_name=name, parent=parent)
    name = path[-1] if path else "jpsi"
    ctx = click.Context(command, info_name=name, parent=parent if path else None, **settings)
    with patch("jpsi_cli.entry_points._command_entry_points", return_value={}):
        # the list of all commands has those of this package only
        yield path, command.get_help(ctx)
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            if inner is not None and not inner.hidden:
                yield from _helps(inner, (*path, name))


def _messages(path: Path) -> Iterator[str]:
    """Yield the texts in a module that users may see, in their order; placeholders keep their expressions."""
    tree = ast.parse(path.read_text())
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            skipped.update(ast.walk(node.body[0]))
        elif isinstance(node, ast.JoinedStr):
            # its parts are no texts of their own
            skipped.update(
                it for value in node.values for it in ast.walk(value) if isinstance(value, ast.Constant)
            )
        elif isinstance(node, ast.AnnAssign):
            skipped.update(ast.walk(node.annotation))
        elif isinstance(node, ast.keyword) and node.arg in {"help", "short_help", "epilog"}:
            skipped.update(ast.walk(node.value))
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant | ast.JoinedStr)]
    for node in sorted(set(texts) - skipped, key=lambda it: (it.lineno, it.col_offset)):
        text = _text(node)
        if len(_WORD.findall(text)) >= _WORDS and " " in text and not _NO_MESSAGE.search(text):
            yield text.strip("\n").replace("\n", "\\n")


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(
        str(it.value) if isinstance(it, ast.Constant) else ast.unparse(ast.JoinedStr([it]))[2:-1]
        for it in node.values
    )


if __name__ == "__main__":
    FILE.write_text(render(sections()))

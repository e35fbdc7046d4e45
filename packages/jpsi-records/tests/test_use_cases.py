"""The table of use cases, which names existing calls, commands and tests."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

from jpsi_records.commands.request import REQUEST
from jpsi_records.records.records import Records

TABLE = Path(__file__).parents[3] / "docs/reference/use-cases.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TABLE.read_text().splitlines()
    if line.startswith("| ")
][1:]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.clause("records-use-cases")
@pytest.mark.parametrize(("what", "call", "command", "tests"), ROWS, ids=[row[0] for row in ROWS])
def test_each_name_in_a_use_case_exists(what: str, call: str, command: str, tests: str) -> None:
    for name in quoted(call):
        assert callable(getattr(Records, name))
    for name, *options in map(str.split, quoted(command)):
        command_ = REQUEST.get_command(click.Context(REQUEST), name)
        assert command_ is not None
        known = {it for param in command_.params for it in param.opts}
        assert set(options) <= known
    assert quoted(tests)
    for test in quoted(tests):
        file, _, name = test.partition("::")
        tree = ast.parse(Path(__file__).with_name(file).read_text())
        assert name in {it.name for it in tree.body if isinstance(it, ast.FunctionDef)}


def test_every_command_of_the_draft_is_in_the_table() -> None:
    named = {it.split()[0] for row in ROWS for it in quoted(row[2])}

    assert named >= {"preview", "submit", "run", "find", "attach", "rerun", "cancel", "priority", "explain"}

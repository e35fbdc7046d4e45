"""What is no YAML, told with its place, a caret, and what people mostly meant. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from .problems import Position


def complaint(text: str, error: yaml.YAMLError) -> tuple[str, Position, str, str]:
    """What YAML's own parser finds wrong, told with the line, a caret, and where its siblings begin."""
    if yaml.__with_libyaml__:
        # its messages tell less than those of the parser in Python
        try:
            list(yaml.parse(text, yaml.SafeLoader))
        except yaml.YAMLError as e:
            error = e
    if isinstance(error, yaml.reader.ReaderError):
        number = text.count("\n", 0, error.position) + 1
        at = Position(number, error.position - text.rfind("\n", 0, error.position))
        return "JS000", at, f"holds the character U+{ord(text[error.position]):04X}", "write it as an escape"
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if not isinstance(error, yaml.MarkedYAMLError) or mark is None:
        return "JS000", Position(1, 1), f"it is not YAML: {error}", "mend it"
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    caret = f"\n    {line}\n    {' ' * mark.column}^\n   "
    says = f"it is not YAML: {', '.join(filter(None, (error.context, error.problem)))}{caret}"
    problem = error.problem or ""
    do = next((hint for part, hint in _HINTS if part in problem), None) or _sibling_hint(lines, mark.line)
    return "JS000", Position(mark.line + 1, mark.column + 1), says, do


#: What people mostly did, by what the parser complains of.
_HINTS = (
    ("character '\\t'", "indent with blanks instead of tabs"),
    (
        "mapping values are not allowed here",
        "put it in quotes if it is a text with `: ` in it; put a blank after the `:` of a key, above as well",
    ),
)


def _sibling_hint(lines: list[str], index: int) -> str:
    """Where the items begin to which the item of a line may belong."""
    indent = _item_indent(lines[index]) if index < len(lines) else None
    found = {} if indent is None else dict(_siblings(lines, index))
    if indent is None or indent in found:
        return "see whether it, and the lines before it, are indented and quoted as they should be"
    if not found:
        return "indent it as the other items of its list"
    least = min(abs(column - indent) for column in found)
    told = (
        f"sibling item starts at column {column + 1} (line {number + 1})"
        for column, number in found.items()
        if abs(column - indent) == least
    )
    return f"this item starts at column {indent + 1}, where no list has its items: {', or '.join(told)}"


def _siblings(lines: list[str], index: int) -> Iterator[tuple[int, int]]:
    """The columns of the lists that are open where a line begins, each with the line of its last item."""
    least: int | None = None
    for number in range(index - 1, -1, -1):
        indent = _item_indent(lines[number])
        if indent is not None and (least is None or indent < least):
            least = indent
            yield indent, number


def _item_indent(line: str) -> int | None:
    match = re.match(r"( *)-(?: |$)", line)
    return None if match is None else len(match[1])

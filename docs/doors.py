"""Lists the doors for plugins, each name with the first sentence that its source says of it.

    python docs/doors.py [--check]

The page reference/plugin.md has these lists while the docs are built. A name without a sentence is an error.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCES = sorted((Path(__file__).parents[1] / "packages").glob("*/src"))
DOORS = ("jpsi.plugin", "jpsi.plugin.kit", "jpsi.plugin.engine")


@dataclass(frozen=True)
class Entry:
    """A name of a door."""

    name: str
    #: The module that defines it.
    module: str
    #: What it is; empty if its source does not say so.
    sentence: str


def main() -> int:
    """Print the lists, or with `--check` only what is wrong with them."""
    for door in DOORS if "--check" not in sys.argv[1:] else ():
        print(f"{door}: {len(entries(door))} names")
        for it in entries(door):
            print(f"    {it.name}: {it.sentence}")
    found = mistakes()
    print("".join(f"{mistake}\n" for mistake in found), end="")
    return 1 if found else 0


def mistakes() -> list[str]:
    """Return the names without a sentence that says what they mean."""
    return [
        f"{it.module}: {it.name}, a name of {door}, has no sentence that says what it is"
        for door in DOORS
        for it in entries(door)
        if not it.sentence
    ]


def groups(door: str) -> Mapping[str, list[Entry]]:
    """Return the names of a door by what the modules are for that define them, in the order of `__all__`."""
    found: dict[str, list[Entry]] = {}
    for entry in entries(door):
        found.setdefault(entry.module, []).append(entry)
    return {purpose(module): its for module, its in sorted(found.items(), key=lambda it: it[0])}


def entries(door: str) -> list[Entry]:
    """Return the names of a door."""
    return [entry(door, name) for name in names(door)]


def entry(door: str, name: str) -> Entry:
    """Return the first sentence of a name's documentation."""
    module = origin(door, name)
    text = (
        documentation(module, name)
        if module.rpartition(".")[2] != name
        else ast.get_docstring(tree(module)) or ""
    )
    return Entry(name, module, first_sentence(text))


def purpose(module: str) -> str:
    """Return the first sentence of a module's docstring, without its full stop."""
    return first_sentence(ast.get_docstring(tree(module)) or module).removesuffix(".")


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring.

    >>> first_sentence("It is so, e.g. here. More.")
    'It is so, e.g. here.'
    """
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.?])(?<!e\.g\.)(?<!i\.e\.) ", paragraph, maxsplit=1)[0]


@cache
def tree(module: str) -> ast.Module:
    """Return the source of a module."""
    return ast.parse(path(module).read_text(encoding="utf-8"))


def path(module: str) -> Path:
    """Return the file of a module."""
    parts = module.split(".")
    for source in SOURCES:
        for file in (source.joinpath(*parts, "__init__.py"), source.joinpath(*parts[:-1], f"{parts[-1]}.py")):
            if file.exists():
                return file
    msg = f"there is no module {module}"
    raise LookupError(msg)


def is_module(name: str) -> bool:
    """Return True if a name is that of a module."""
    try:
        return path(name).exists()
    except LookupError:
        return False


def names(module: str) -> list[str]:
    """Return the `__all__` of a module."""
    for node in tree(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            found: list[str] = ast.literal_eval(node.value)
            return found
    return []


def origin(module: str, name: str) -> str:
    """Return the module that defines a name, or that the name means, whichever modules pass it on."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "jpsi":
            for it in node.names:
                if it.name == "*" and is_of(node.module, name):
                    return origin(node.module, name)
                if name == (it.asname or it.name):
                    below = f"{node.module}.{it.name}"
                    return below if is_module(below) else origin(node.module, it.name)
    return module


def is_of(module: str, name: str) -> bool:
    """Return True if a module defines or imports a name, itself or by way of those that it passes on."""
    found = {it.name for it in definitions(tree(module)) if hasattr(it, "name")}
    found |= {it for node in definitions(tree(module)) for it in assigned(node)}
    return name in found or origin(module, name) != module


def documentation(module: str, name: str) -> str:
    """Return the docstring of a class or function, or what `#:` or a string says of a value; else nothing."""
    body = list(definitions(tree(module)))
    for number, node in enumerate(body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name == name and (text := ast.get_docstring(node)):
                return text
        elif name in assigned(node):
            following = body[number + 1] if number + 1 < len(body) else None
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                return str(following.value.value)
            return comment(module, node.lineno)
    return ""


def definitions(module: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also those under `if`."""
    for node in module.body:
        yield from [*node.body, *node.orelse] if isinstance(node, ast.If) else [node]


def assigned(node: ast.stmt) -> list[str]:
    """Return the names that a statement gives a value."""
    if isinstance(node, ast.Assign):
        return [it.id for it in node.targets if isinstance(it, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def comment(module: str, line: int) -> str:
    """Return the `#:` comment above a line."""
    above = path(module).read_text(encoding="utf-8").splitlines()[: line - 1]
    found: list[str] = []
    while above and above[-1].startswith("#: "):
        found.insert(0, above.pop().removeprefix("#: "))
    return "\n".join(found)


if __name__ == "__main__":
    sys.exit(main())

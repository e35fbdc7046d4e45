"""Finds the modules of a plugin's distribution, and refuses those that import themselves absolutely.

On the plugin path, such an import could bring the code of another version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from jpsi.model import PluginError

if TYPE_CHECKING:
    import ast

    from jpsi.registry.candidate import Candidate


def own_modules(candidate: Candidate) -> set[str]:
    """Return the top modules of a candidate's distribution, which may import each other only relatively.

    They are packages or single modules; of a namespace that several distributions share, the part that
    contains the plugin.
    """
    origin = Path(candidate.origin or "")
    own = set()
    names = candidate.value.partition(":")[0].strip().split(".")
    for length in range(1, len(names) + 1):
        path = origin.joinpath(*names[:length])
        if path.joinpath("__init__.py").exists() or not path.is_dir():
            own.add(".".join(names[:length]))
            break
    for line in _record(candidate):
        top, _, rest = line.partition("/")
        if rest == "__init__.py":
            own.add(top)
        elif not rest and top.endswith(".py"):
            own.add(top.removesuffix(".py"))
    return own


def _record(candidate: Candidate) -> list[str]:
    """Return the files of a distribution, as its installer recorded them."""
    try:
        text = Path(candidate.folder, "RECORD").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line.partition(",")[0] for line in text.splitlines()]


def check_imports(candidate: Candidate) -> None:
    """Raise if a plugin imports itself by its absolute name: it would get another version's code.

    Raises:
        PluginError: it does; the message names every place.
    """
    own = own_modules(candidate)
    found = [
        f"{path}:{line}"
        for path in _sources(Path(candidate.origin or ""), own)
        for line in dict.fromkeys(absolute_imports(path.read_bytes(), own))
    ]
    if found:
        msg = (
            f"{candidate.label} imports itself by its absolute name, which may bring code of another version "
            f"of it: {', '.join(found)}; write relative imports there, such as `from . import x`"
        )
        raise PluginError(msg)


def _sources(directory: Path, own: Collection[str]) -> Iterator[Path]:
    for module in sorted(own):
        path = directory.joinpath(*module.split("."))
        if path.is_dir():
            yield from sorted(path.rglob("*.py"))
        elif path.with_name(f"{path.name}.py").exists():
            yield path.with_name(f"{path.name}.py")


def absolute_imports(source: bytes, own: Collection[str]) -> list[int]:
    r"""Return the lines of a module that import one of the modules `own`, or a part of one, absolutely.

    >>> absolute_imports(b"import toy.a\nfrom . import b\nimport toys", {"toy"})
    [1]
    """
    if not any(name.encode() in source for name in own):
        return []
    import ast  # most plugins are not checked

    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []  # the later import reports the error
    return [line for line, name in _imported(tree) if any(is_within(name, it) for it in own)]


def _imported(node: ast.AST) -> Iterator[tuple[int, str]]:
    import ast

    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((child.lineno, alias.name) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.level == 0:
            yield from ((child.lineno, f"{child.module}.{alias.name}") for alias in child.names)
        elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield from _imported(child)


def is_within(name: str, package: str) -> bool:
    """Return True if a module is `package` or a part of it."""
    return name == package or name.startswith(f"{package}.")

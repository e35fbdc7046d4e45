"""The rooms of every package: a folder is imported by its face, and no modules import each other in a circle.

import-linter checks which room stands on which; it sees modules, and not whether a face was passed by.
Imports under TYPE_CHECKING and in functions count as well.
"""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = sorted(path.parent for path in ROOT.glob("packages/*/src/*/__init__.py"))
# A door is a module that other distributions import, wherever it is.
DOORS = {"jpsi.plugin.engine", "jpsi_engine.job_store"}


@functools.cache
def modules() -> Mapping[str, Path]:
    """Return the modules of all packages by their names."""
    found = {}
    for source in SOURCES:
        for path in source.rglob("*.py"):
            parts = path.relative_to(source.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def is_folder(module: str) -> bool:
    return modules()[module].name == "__init__.py"


@functools.cache
def imported(module: str) -> Sequence[tuple[int, str, str | None]]:
    """Return the imports of a module from these packages: the line, the module, and the imported name."""
    return list(_imported(module))


def _imported(module: str) -> Iterator[tuple[int, str, str | None]]:
    known = modules()
    for node in ast.walk(ast.parse(known[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, it.name, None) for it in node.names if it.name in known)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(module, node)
            for it in node.names:
                if f"{origin}.{it.name}" in known:
                    yield node.lineno, f"{origin}.{it.name}", None
                elif origin in known:
                    yield node.lineno, origin, it.name


def _origin(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".") if is_folder(module) else module.split(".")[:-1]
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, *filter(None, [node.module])])


def bypassed_room(module: str, target: str, name: str | None) -> str | None:
    """Return the room whose face an import bypasses: a module outside names a module of the room."""
    room = target.rpartition(".")[0]
    if "." not in room or is_folder(target) or target in DOORS or f"{module}.".startswith(f"{room}."):
        return None
    return None if name is None and target.rpartition(".")[2] in face(room) else room


@functools.cache
def face(room: str) -> frozenset[str]:
    """Return the names that the face of a room imports, and so exports."""
    return frozenset(name or target.rpartition(".")[2] for _, target, name in imported(room))


@functools.cache
def defined(module: str) -> frozenset[str]:
    """Return the names that a module binds at its top, except for imports from these packages."""
    tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
    taken = {name for _, _, name in imported(module)}
    bound = {it.id for it in ast.walk(tree) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)}
    made = {
        it.name for it in tree.body if isinstance(it, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    foreign = {
        (it.asname or it.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for it in node.names
    } - taken
    return frozenset(bound | made | foreign)


def distributions() -> list[str]:
    return [source.name for source in SOURCES]


@pytest.mark.parametrize("package", distributions())
def test_no_module_imports_past_the_face_of_a_room(package: str) -> None:
    found = [
        f"{module}:{line} imports {target} past {room}"
        for module in modules()
        if f"{module}.".startswith(f"{package}.")
        for line, target, name in imported(module)
        if (room := bypassed_room(module, target, name)) is not None
    ]

    assert found == []


@pytest.mark.parametrize("package", distributions())
def test_name_is_imported_from_the_module_that_defines_it_or_from_a_face(package: str) -> None:
    found = [
        f"{module}:{line} imports {name} from {target}, which only imports it"
        for module in modules()
        if f"{module}.".startswith(f"{package}.")
        for line, target, name in imported(module)
        if name is not None and not is_folder(target) and target not in DOORS and name not in defined(target)
        # a face passes on all names of its modules, and takes those that it exports from them
        if not (name == "*" and (is_folder(module) or module in DOORS))
    ]

    assert found == []


@pytest.mark.parametrize("package", distributions())
def test_a_name_with_an_underscore_stays_in_its_room(package: str) -> None:
    found = [
        f"{module}:{line} imports {name} of {target}"
        for module in modules()
        if f"{module}.".startswith(f"{package}.")
        for line, target, name in imported(module)
        if name is not None
        and name.startswith("_")
        and not name.startswith("__")
        and target.rpartition(".")[0] != module.rpartition(".")[0]
    ]

    assert found == []


def test_no_face_imports_a_function_on_first_use_that_is_named_like_a_module_beside_it() -> None:
    """Once that module is imported, the name would be the module."""
    wrong = [
        f"{room}.{name}"
        for room in filter(is_folder, modules())
        for place, names in _lazy(room)
        if place != "."
        for name in names
        if f"{room}.{name}" in modules()
    ]

    assert not wrong


@pytest.mark.parametrize(
    ("door", "expected"),
    [
        ("jpsi.plugin", []),
        ("jpsi.plugin.engine", ["ownership", "serialization"]),
        ("jpsi.plugin.kit", []),
    ],
)
def test_no_name_of_a_door_is_a_module_of_a_room_instead(door: str, expected: list[str]) -> None:
    module = importlib.import_module(door)

    found = [name for name in module.__all__ if isinstance(getattr(module, name), ModuleType)]

    assert found == expected


def _lazy(room: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the places and names that a face hands to `lazy_attributes`, or names in `__all__` for `door`.

    A door that has one of its rooms for a name exports that room itself.
    """
    text = modules()[room].read_text(encoding="utf-8")
    tree = ast.parse(text)
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name("__all__")], value=names) if "import door" in text:
                exported: list[str] = ast.literal_eval(names)
                rooms = _constants(tree, "_rooms")
                yield ".", [it for it in exported if it in rooms]
                yield "", [it for it in exported if it not in rooms]
            case ast.Call(func=ast.Name("lazy_attributes"), args=[_, ast.Dict(keys=keys, values=values)]):
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
                        yield str(key.value), str(value.value).split()


def _constants(tree: ast.Module, name: str) -> set[object]:
    """Return the constants in what is assigned to a name."""
    found = set[object]()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                found |= {it.value for it in ast.walk(value) if isinstance(it, ast.Constant)}
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {
        module: {target for _, target, _ in imported(module) if target != module} for module in modules()
    }

    assert circles(graph) == []


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the sets of modules that import each other; modules without imports are removed first."""
    left = {module: set(targets) for module, targets in graph.items()}
    while ends := [module for module, targets in left.items() if not targets & left.keys()]:
        for module in ends:
            del left[module]
    reached = {module: _reached(module, left) for module in left}
    found = {
        tuple(sorted(it for it in reached[module] if module in reached[it]))
        for module in left
        if module in reached[module]
    }
    return [list(it) for it in sorted(found)]


def _reached(module: str, graph: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    pending = [module]
    while pending:
        new = (graph[pending.pop()] & graph.keys()) - found
        found |= new
        pending += new
    return found

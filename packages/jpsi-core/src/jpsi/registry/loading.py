"""Loads a chosen plugin; every error becomes one PluginError that says what to do.

Plugins from directories are imported under private names, so that two versions can be loaded together. Those
that import themselves absolutely are refused: such an import could bring the code of another version.
"""

from __future__ import annotations

import contextlib
import importlib
import operator
import re
import sys
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from jpsi.model import PluginError
from jpsi.registry.candidate import Candidate

if TYPE_CHECKING:
    import ast

_VALUE = re.compile(r"(?P<module>\w+(?:\.\w+)*)\s*(?::\s*(?P<attribute>\w+(?:\.\w+)*)\s*)?(?:\[.*\])?")
_added: set[str] = set()
_PRIVATE = "_jpsi_plugin_"
# The names of plugins from directories begin with it; messages leave it out.
_PRIVATE_PREFIX = re.compile(_PRIVATE + r"[0-9a-f]{16}\.")
_locks: dict[str, threading.RLock] = {}
_lock = threading.Lock()


def added_to_path() -> frozenset[str]:
    """Return the directories that are on sys.path only so that plugins find their dependencies."""
    return frozenset(_added)


def load_plugin(candidate: Candidate) -> Any:  # noqa: ANN401  pluggy takes any object
    """Import a plugin; PluginError if it is refused, or cannot be imported, whatever the reason."""
    if candidate.refusal is not None:
        raise PluginError(f"{candidate.label} is refused: {candidate.refusal}")
    try:
        match = _VALUE.fullmatch(candidate.value)
        if match is None:
            msg = f"the entry point {candidate.value!r} is neither `module` nor `module:attribute`"
            raise ValueError(msg)  # noqa: TRY301  as an error of the import
        module = _module(candidate, match["module"])
        return operator.attrgetter(match["attribute"])(module) if match["attribute"] else module
    except PluginError:
        raise
    except (Exception, SystemExit) as e:
        msg = f"{candidate.label} cannot be loaded: {type(e).__name__}: {_explanation(candidate, e)}"
        raise PluginError(msg, e) from e


def _module(candidate: Candidate, name: str) -> ModuleType:
    """Import a module; one from a directory into a private package, as its relative imports are."""
    if candidate.origin is None:
        top = name.partition(".")[0]
        with contextlib.nullcontext() if top in sys.modules else removed_on_failure(top):
            return importlib.import_module(name)
    package = private_name(candidate.origin, candidate.folder)
    if f"{package}.{name}" not in sys.modules:
        check_imports(candidate)
    if candidate.origin not in sys.path:
        # The plugin's dependencies may be beside it; at the end, so that they hide no other module.
        _added.add(candidate.origin)
        sys.path.append(candidate.origin)
    with _lock:
        lock = _locks.setdefault(package, threading.RLock())
    with lock, removed_on_failure(package):
        if package not in sys.modules:
            parent = ModuleType(package)
            parent.__path__ = [candidate.origin]
            sys.modules[package] = parent
        importlib.invalidate_caches()  # the plugin may have been installed a moment ago
        return importlib.import_module(f"{package}.{name}")


def describe_error(error: BaseException) -> str:
    """Return the message of an exception, with the place if it is a syntax error."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.msg} ({error.filename}, line {error.lineno})"
    return _PRIVATE_PREFIX.sub("", str(error))


def _explanation(candidate: Candidate, error: BaseException) -> str:
    """Return the message of an error while a plugin was imported, and what to do."""
    missing = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    missing = _PRIVATE_PREFIX.sub("", missing)
    is_meant = missing and is_within(candidate.value.partition(":")[0].strip(), missing)
    meant = f", which its entry point names: {candidate.name} = {candidate.value}" if is_meant else ""
    if missing and not any(is_within(missing, own) for own in own_modules(candidate)):
        target = "" if candidate.origin is None else f" --target {candidate.origin}"
        advice = f"install the distribution that has the module {missing!r}: pip install{target} ..."
    else:
        # beside the old version there would be the metadata of both, which jpsi refuses
        where = ", into a directory of its own, or here after this one was emptied"
        advice = f"reinstall {candidate.distribution}, or install another version"
        advice += where if candidate.origin else ""
    return f"{describe_error(error)}{meant}; {advice}"


def private_name(directory: str, folder: str) -> str:
    """Return the name of the package for one version of a distribution in one directory."""
    import hashlib

    digest = hashlib.sha256(f"{directory}\0{folder}".encode(errors="surrogateescape")).hexdigest()
    return f"{_PRIVATE}{digest[:16]}"


@contextlib.contextmanager
def removed_on_failure(package: str) -> Iterator[None]:
    """Remove the modules of a package from this process that were added in the block, if it fails."""
    before = set(sys.modules)
    try:
        yield
    except BaseException:
        for name in set(sys.modules) - before:
            if is_within(name, package):
                sys.modules.pop(name, None)
        raise


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
    """Raise PluginError if a plugin imports itself by its absolute name, maybe in another version."""
    own = own_modules(candidate)
    found = [
        f"{path}:{line}"
        for path in _sources(Path(candidate.origin or ""), own)
        for line in dict.fromkeys(absolute_imports(path.read_bytes(), own))
    ]
    if found:
        raise PluginError(
            f"{candidate.label} imports itself by its absolute name, which may bring code of another version "
            f"of it: {', '.join(found)}; write relative imports there, such as `from . import x`"
        )


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

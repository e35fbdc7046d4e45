"""Loads a chosen plugin; every error becomes one PluginError that says what to do."""

from __future__ import annotations

import importlib
import re
import sys
from typing import TYPE_CHECKING, Any

from jpsi.model import PluginError
from jpsi.registry.isolated_import import (
    forget,
    import_privately,
    is_within,
    private_name,
    public_name,
    public_text,
)
from jpsi.registry.own_modules import own_modules

if TYPE_CHECKING:
    from types import ModuleType

    from jpsi.registry.candidate import Candidate

_VALUE = re.compile(r"(?P<module>\w+(?:\.\w+)*)\s*(?::\s*(?P<attribute>\w+(?:\.\w+)*)\s*)?(?:\[.*\])?")
_added: set[str] = set()


def added_to_path() -> frozenset[str]:
    """Return the directories that are on sys.path only so that plugins find their dependencies."""
    return frozenset(_added)


def load_plugin(candidate: Candidate) -> Any:  # noqa: ANN401  pluggy takes any object
    """Import a plugin.

    Raises:
        PluginError: it is refused, or cannot be imported, whatever the reason.
    """
    if candidate.refusal is not None:
        msg = f"{candidate.label} is refused: {candidate.refusal}"
        raise PluginError(msg)
    try:
        return _load(candidate)
    except PluginError:
        raise
    except (Exception, SystemExit) as e:
        what = f"{type(e).__name__}: {told(e)}{_named_by_entry_point(candidate, e)}"
        msg = f"{candidate.label} cannot be loaded: {what}; {_advice(candidate, e)}"
        raise PluginError(msg, e) from e


def _load(candidate: Candidate) -> Any:  # noqa: ANN401  as above
    match = _VALUE.fullmatch(candidate.value)
    if match is None:
        msg = f"the entry point {candidate.value!r} is neither `module` nor `module:attribute`"
        raise ValueError(msg)
    module = _module(candidate, match["module"])
    found: Any = module
    for name in (match["attribute"] or "").split("."):
        found = getattr(found, name) if name else found
    return found


def _module(candidate: Candidate, name: str) -> ModuleType:
    if candidate.origin is None:
        return _import_cleanly(name)
    package = private_name(candidate.origin, candidate.folder)
    if f"{package}.{name}" not in sys.modules:
        from jpsi.registry.self_imports import check_imports  # parses Python

        check_imports(candidate)
    if candidate.origin not in sys.path:
        # The plugin's dependencies may be beside it; at the end, so that they hide no other module.
        _added.add(candidate.origin)
        sys.path.append(candidate.origin)
    return import_privately(package, candidate.origin, name)


def _import_cleanly(name: str) -> ModuleType:
    before = set(sys.modules)
    top = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except BaseException:
        if top not in before:
            forget([it for it in set(sys.modules) - before if is_within(it, top)])
        raise


def told(error: BaseException) -> str:
    """Return the message of an exception, with the place if it is a syntax error."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.msg} ({error.filename}, line {error.lineno})"
    return public_text(str(error))


def _named_by_entry_point(candidate: Candidate, error: BaseException) -> str:
    """Return a note that the missing module is the one that the plugin's entry point names, or nothing."""
    module = candidate.value.partition(":")[0].strip()
    missing = public_name(error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    is_meant = missing and is_within(module, missing)
    return f", which its entry point names: {candidate.name} = {candidate.value}" if is_meant else ""


def _advice(candidate: Candidate, error: BaseException) -> str:
    target = "" if candidate.origin is None else f" --target {candidate.origin}"
    missing = public_name(error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    if missing and not any(is_within(missing, own) for own in own_modules(candidate)):
        return f"install the distribution that has the module {missing!r}: pip install{target} ..."
    if candidate.origin is None:
        return f"reinstall it, or another version: pip install --upgrade {candidate.distribution}"
    # --upgrade in that directory would leave the metadata of both versions, which jpsi refuses.
    where = "into a directory of its own, or here after this one was emptied"
    return (
        f"reinstall it, or another version, {where}: pip install --target DIRECTORY {candidate.distribution}"
    )

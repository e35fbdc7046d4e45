"""Imports a package's names on first use, so that no program pays for what it does not use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_attributes(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package that exports names of its modules (PEP 562).

    Args:
        package: the name of the package.
        names: by module of the package, the names that it exports from it, separated by blanks; the empty
            text lists modules that are exported themselves.
    """
    modules = {name: module for module, some in names.items() for name in some.split()}
    return _getters(
        package, {name: f"{package}.{it or name}" for name, it in modules.items()}, names.get("", "")
    )


def lazy_names(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a module that exports names of other packages.

    Args:
        package: the name of the module.
        names: by package, the names that it exports from there, separated by blanks.
    """
    return _getters(package, {name: it for it, some in names.items() for name in some.split()}, "")


def _getters(
    package: str, places: Mapping[str, str], modules: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    whole = frozenset(modules.split())

    def get(name: str) -> Any:  # noqa: ANN401  whatever the module holds
        if name not in places:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        module = import_module(places[name])
        value = module if name in whole else getattr(module, name)
        setattr(import_module(package), name, value)
        return value

    def names_of() -> list[str]:
        return sorted(places)

    return get, names_of

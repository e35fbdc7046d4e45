"""Imports a package's names on first use, so that no program pays for what it does not use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

# Any: whatever the modules hold
_Hooks: TypeAlias = tuple[Callable[[str], Any], Callable[[], list[str]]]


def lazy_attributes(package: str, names: Mapping[str, str]) -> _Hooks:
    """Return the `__getattr__` and the `__dir__` of a package that exports names of its modules (PEP 562).

    The names, separated by blanks, are by module; the empty text lists modules that are exported themselves.
    """
    return lazy_names(package, {f"{package}.{it}".rstrip("."): some for it, some in names.items()})


def lazy_names(module: str, names: Mapping[str, str]) -> _Hooks:
    """Return the same two functions of a module that exports names of other packages, given by package."""
    places = {name: place for place, some in names.items() for name in some.split()}

    def get(name: str) -> Any:  # noqa: ANN401  as above
        if name not in places:
            msg = f"module {module!r} has no attribute {name!r}"
            raise AttributeError(msg)
        place = places[name]
        value = import_module(f"{module}.{name}") if place == module else getattr(import_module(place), name)
        setattr(import_module(module), name, value)
        return value

    return get, lambda: sorted(places)

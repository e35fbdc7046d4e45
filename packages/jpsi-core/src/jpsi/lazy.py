"""Imports a package's names on first use, so that no program pays for what it does not use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

# Any: whatever the modules hold
_Hooks: TypeAlias = tuple[Callable[[str], Any], Callable[[], list[str]]]


def lazy_attributes(module: str, names: Mapping[str, str]) -> _Hooks:
    """Return the `__getattr__` and the `__dir__` of a module that exports names of others (PEP 562).

    The names, separated by blanks, are by the module that has them, such as `jpsi.api`, or `.part` for one of
    the same package; `.` lists modules of the package that are exported themselves.
    """
    places = {name: place for place, some in names.items() for name in some.split()}

    def get(name: str) -> Any:  # noqa: ANN401  as above
        if name not in places:
            msg = f"module {module!r} has no attribute {name!r}"
            raise AttributeError(msg)
        place = places[name]
        found = import_module(f".{name}" if place == "." else place, module)
        value = found if place == "." else getattr(found, name)
        setattr(import_module(module), name, value)
        return value

    return get, lambda: sorted(places)

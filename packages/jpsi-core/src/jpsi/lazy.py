"""Imports a package's names on first use, so that no program pays for what it does not use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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

    def find(name: str) -> Any:  # noqa: ANN401  as above
        place = places[name]
        found = import_module(f".{name}" if place == "." else place, module)
        return found if place == "." else getattr(found, name)

    return _hooks(module, places, find)


def door(module: str, names: Sequence[str], rooms: Sequence[str]) -> _Hooks:
    """Return the `__getattr__` and the `__dir__` of a module that exports names of rooms.

    Each name is that of the first room that has it, or that of a room itself.
    """

    def find(name: str) -> Any:  # noqa: ANN401  as above
        if f"{module}.{name}" in rooms:
            return import_module(f"{module}.{name}")
        return next(getattr(room, name) for room in map(import_module, rooms) if hasattr(room, name))

    return _hooks(module, names, find)


def _hooks(module: str, names: Collection[str], find: Callable[[str], Any]) -> _Hooks:
    def get(name: str) -> Any:  # noqa: ANN401  as above
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = find(name)
        setattr(import_module(module), name, value)
        return value

    return get, lambda: sorted(names)

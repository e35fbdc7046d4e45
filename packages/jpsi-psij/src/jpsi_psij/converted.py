"""The type of a field that takes more than it returns, as a type checker sees it."""

from __future__ import annotations

from typing import Protocol, TypeVar

Value_co = TypeVar("Value_co", covariant=True)
Given_contra = TypeVar("Given_contra", contravariant=True)


class Converted(Protocol[Value_co, Given_contra]):
    """A field of `attrs` with a converter: programs read the one type and assign the other."""

    def __get__(self, instance: object, owner: type) -> Value_co:
        """Return the value."""

    def __set__(self, instance: object, value: Given_contra) -> None:
        """Convert the value."""

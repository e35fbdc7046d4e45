"""Checks if the result of a hook has the type of its specification: pure functions."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, NewType


def answer_type(specification: type, hook: str) -> Any:  # noqa: ANN401  whatever may stand in an annotation
    """Return the type of a hook's result by its annotation; None if the result is not used."""
    returned = typing.get_type_hints(getattr(specification, hook))["return"]
    return None if returned is types.NoneType else returned


def settled(answers: Any) -> Any:  # noqa: ANN401  whatever plugins answer
    """Return the results of several layers, with iterators read out: a generator's errors appear now."""
    if not isinstance(answers, list):
        return answers
    return [list(it) if isinstance(it, Iterator) else it for it in answers]


def mistake(answer: object, expected: Any) -> str | None:  # noqa: ANN401  as above
    """Describe a result of the wrong type and the expected type; None if the type is right.

    >>> mistake(None, str)
    'NoneType, not str; is `return` missing?'
    >>> mistake("squeue", Sequence[str])
    'str, not Sequence[str]'
    """
    if fits(answer, expected):
        return None
    inside = "" if isinstance(answer, str) else _strangers(answer, expected)
    return f"{type(answer).__name__}{inside}, not {spelled(expected)}{_hint(answer)}"


def fits(answer: object, expected: Any) -> bool:  # noqa: ANN401  as above
    """Return True if a result has the type of an annotation; the content of mappings is not checked."""
    return _test(expected)(answer)


# Hooks are called for each of many jobs, and reading an annotation takes longer than checking a result.
@functools.cache
def _test(expected: Any) -> Callable[[object], bool]:  # noqa: ANN401  as above
    """Return a function that checks if a result has the type of an annotation."""
    origin, inside = typing.get_origin(expected), typing.get_args(expected)
    if isinstance(expected, NewType):
        return _test(expected.__supertype__)
    if origin in {types.UnionType, typing.Union}:
        tests = [_test(it) for it in inside]
        return lambda answer: any(test(answer) for test in tests)
    if origin is type:
        return lambda answer: isinstance(answer, type) and issubclass(answer, inside[0])
    if origin in {Sequence, Iterable}:
        test = _test(inside[0])
        return lambda answer: (
            isinstance(answer, origin)
            and not isinstance(answer, str | bytes)
            and all(map(test, typing.cast("Iterable[object]", answer)))
        )
    if getattr(expected, "_is_protocol", False):
        return lambda answer: answer is not None and not isinstance(answer, Generator)
    kind = origin or expected
    return lambda answer: isinstance(answer, kind)


def spelled(expected: Any) -> str:  # noqa: ANN401  as above
    """Return an annotation in the spelling of messages.

    >>> spelled(Sequence[str] | None)
    'Sequence[str] or None'
    """
    origin, inner = typing.get_origin(expected), typing.get_args(expected)
    if origin in {types.UnionType, typing.Union}:
        return " or ".join(map(spelled, inner))
    if origin is not None:
        return f"{origin.__name__}[{', '.join(map(spelled, inner))}]"
    return "None" if expected is types.NoneType else str(expected.__name__)


def _strangers(answer: object, expected: Any) -> str:  # noqa: ANN401  as above
    """Name the types of the items in a list that do not belong there."""
    if typing.get_origin(expected) not in {Sequence, Iterable} or not isinstance(answer, list | tuple):
        return ""
    (inner,) = typing.get_args(expected)
    found = sorted({type(it).__name__ for it in answer if not fits(it, inner)})
    return f" of {' and '.join(found)}"


def _hint(answer: object) -> str:
    if answer is None:
        return "; is `return` missing?"
    return "; is wrapper=True missing?" if isinstance(answer, Generator) else ""

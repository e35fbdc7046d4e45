"""Checks the results and errors of plugins' hooks: an error message names the layer that it came from."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from types import GenericAlias
from typing import Any, NewType

import attrs

from jpsi.contract import PROJECT, hookimpl
from jpsi.model import JpsiError, PluginError
from jpsi.registry import describe_error

#: Hooks that may refuse a job, an id, or an output of the batch system with ValueError.
_MAY_REFUSE = frozenset({"canonical_id", "render_script", "parse_submit", "run_container"})
SPECIFICATION_MARK = f"{PROJECT}_spec"

# Any: whatever plugins implement and return
Function = Callable[..., Any]


@attrs.frozen(slots=True)
class HookGuard:
    """The checks of one layer's function for a hook.

    The guarded function raises PluginError, which names the layer, if it fails or returns a value that the
    specification does not allow. A JpsiError passes unchanged, and so does ValueError if the hook may raise
    it.
    """

    #: The function that specifies the hook.
    specification: Function
    #: The name of the layer, or of several.
    label: str

    @property
    def hook(self) -> str:
        """The name of the hook."""
        return self.specification.__name__

    @property
    def returned(self) -> Any:  # noqa: ANN401  an annotation
        """The type of the result; None if it is not used."""
        return answer_type(self.specification)

    @property
    def is_of_all(self) -> bool:
        """True if the results of all layers count, not only the first."""
        return not getattr(self.specification, SPECIFICATION_MARK)["firstresult"]

    def over(self, function: Function, *, is_wrapper: bool = False) -> Function:
        """Return a function of the layer, guarded; a wrapper returns the result of all layers below."""

        @functools.wraps(function)
        def guard(*arguments: Any) -> Any:  # noqa: ANN401  as of the specification
            try:
                answer = self._settled(function(*arguments))
            except Exception as e:
                self._blame(function, e)
                raise
            # None passes the call to the next layer
            return answer if answer is None else self._checked(answer, self.returned)

        @functools.wraps(function)
        def guard_wrapper(*arguments: Any) -> Generator[None, Any, Any]:  # noqa: ANN401  as above
            try:
                answer = yield from function(*arguments)
                answer = [self._settled(it) for it in answer] if isinstance(answer, list) else answer
            except Exception as e:
                self._blame(function, e)
                raise
            expected = GenericAlias(Sequence, (self.returned,)) if self.is_of_all else self.returned
            return self._checked(answer, expected)

        return guard_wrapper if is_wrapper else guard

    def refusal(self) -> Function:
        """Return the function to call last, if no layer has a result; it raises PluginError if one must."""

        @hookimpl(trylast=True)
        def refuse() -> None:
            if not self.is_of_all and (wrong := type_problem(None, self.returned)):
                msg = f"the hook {self.hook} of {self.label} returned {wrong}"
                raise PluginError(msg if self.label else f"no plugin implements the hook {self.hook}")

        return refuse

    def _checked(self, answer: object, expected: Any) -> Any:  # noqa: ANN401  an annotation
        """Return a result of this type, or raise PluginError."""
        if self.returned is not None and (wrong := type_problem(answer, expected)):
            raise PluginError(f"the hook {self.hook} of {self.label} returned {wrong}")
        return answer

    def _settled(self, answer: object) -> object:
        """Return a result with iterators read out: a generator's errors appear now."""
        return list(answer) if self.is_of_all and isinstance(answer, Iterator) else answer

    def _blame(self, function: Function, error: Exception) -> None:
        """Raise PluginError for the error of a function, unless the hook may raise it."""
        may_refuse = isinstance(error, ValueError) and self.hook in _MAY_REFUSE
        if not may_refuse and not isinstance(error, JpsiError):
            what = f"{type(error).__name__}: {describe_error(error)}{_place(error, function)}"
            raise PluginError(f"the hook {self.hook} of {self.label} failed: {what}", error) from error


def _place(error: Exception, function: Function) -> str:
    """Return the innermost line in the package of a function that an exception passed."""
    from traceback import walk_tb  # few programs need it

    package = function.__module__.partition(".")[0]
    places = [
        f" ({frame.f_code.co_filename}, line {line})"
        for frame, line in walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").partition(".")[0] == package
    ]
    return places[-1] if places else ""


@functools.cache
def answer_type(specification: Function) -> Any:  # noqa: ANN401  an annotation
    """Return the type of a hook's result by its annotation; None if the result is not used."""
    returned = typing.get_type_hints(specification)["return"]
    return None if returned is types.NoneType else returned


def type_problem(answer: object, expected: Any) -> str | None:  # noqa: ANN401  as above
    """Describe a result of the wrong type and the expected type; None if the type is right.

    >>> type_problem(None, str)
    'NoneType, not str; is `return` missing?'
    >>> type_problem("squeue", Sequence[str])
    'str, not Sequence[str]'
    """
    if type_test(expected)(answer):
        return None
    hint = "; is `return` missing?" if answer is None else ""
    hint = "; is wrapper=True missing?" if isinstance(answer, Generator) else hint
    return f"{type(answer).__name__}{_item_types(answer, expected)}, not {spelled(expected)}{hint}"


# Hooks are called for each of many jobs, and reading an annotation takes longer than checking a result.
@functools.cache
def type_test(expected: Any) -> Callable[[object], bool]:  # noqa: ANN401  as above
    """Return a function that checks if a result has a type; the content of mappings is not checked."""
    origin, inside = typing.get_origin(expected), typing.get_args(expected)
    if isinstance(expected, NewType):
        return type_test(expected.__supertype__)
    if origin in {types.UnionType, typing.Union}:
        tests = [type_test(it) for it in inside]
        return lambda answer: any(test(answer) for test in tests)
    if origin is type:
        return lambda answer: isinstance(answer, type) and issubclass(answer, inside[0])
    if origin in {Sequence, Iterable}:
        test = type_test(inside[0])
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


def _item_types(answer: object, expected: Any) -> str:  # noqa: ANN401  as above
    """Name the types of the items in a list that do not belong there."""
    if typing.get_origin(expected) not in {Sequence, Iterable} or not isinstance(answer, list | tuple):
        return ""
    (inner,) = typing.get_args(expected)
    found = sorted({type(it).__name__ for it in answer if not type_test(inner)(it)})
    return f" of {' and '.join(found)}"

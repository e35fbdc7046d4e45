"""Calls the hooks of all layers as one; an error or wrong result is blamed on the layer it came from."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from types import FrameType, GenericAlias
from typing import TYPE_CHECKING, Any, NewType

from jpsi.model import JpsiError, PluginError
from jpsi.registry import describe_error

if TYPE_CHECKING:
    from pluggy import HookCaller, HookImpl, HookRelay

#: Hooks that may refuse a job, an id, or an output of the batch system with ValueError.
_MAY_REFUSE = frozenset({"canonical_id", "render_script", "parse_submit"})
#: Hooks with side effects: a second call, to find the layer that is to blame, would repeat them.
_ASKED_ONCE = frozenset({"make_engine", "open_transport"})


class CheckedHooks:
    """The hooks of several layers: each is an attribute, called with arguments by name.

    A call raises PluginError, which names the layer, if a hook fails or returns a value that its
    specification does not allow. A JpsiError passes unchanged, and so does ValueError if the hook may raise
    it.
    """

    def __init__(self, hooks: HookRelay, specifications: Sequence[type]) -> None:
        self._hooks = hooks
        self._specifications = specifications

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  the callers know what they ask
        caller = getattr(self._hooks, name)
        specification = next(it for it in self._specifications if name in vars(it))
        hook = _Hook(name, caller, answer_type(specification, name))
        setattr(self, name, hook)  # the next access bypasses __getattr__
        return hook


class _Hook:
    """A hook of all layers."""

    def __init__(self, name: str, caller: HookCaller, returned: Any) -> None:  # noqa: ANN401  an annotation
        """Wrap pluggy's caller; `returned` is the type of one layer's result, None if it is not used."""
        self.name = name
        self.caller = caller
        self.returned = returned
        #: True if the results of all layers count, not only the first.
        self.is_of_all = caller.spec is not None and not caller.spec.opts["firstresult"]
        #: The type of the whole result.
        self.expected = GenericAlias(Sequence, (returned,)) if self.is_of_all else returned

    def __call__(self, **arguments: Any) -> Any:  # noqa: ANN401  as of the specification
        try:
            answer = self.caller(**arguments)
            if self.is_of_all:
                answer = settled(answer)
        except JpsiError:
            raise
        except Exception as e:
            if isinstance(e, ValueError) and self.name in _MAY_REFUSE:
                raise
            raise PluginError(self._failed(e), e) from e
        if self.returned is None:
            return answer
        if wrong := type_problem(answer, self.expected):
            raise PluginError(self._answered(answer, wrong, arguments))
        return answer

    def _failed(self, error: Exception) -> str:
        from traceback import walk_tb  # few programs need it

        implementations = self.caller.get_hookimpls()
        raisers, place = _raisers(implementations, list(walk_tb(error.__traceback__)))
        what = f"{type(error).__name__}: {describe_error(error)}{place}"
        return f"the hook {self.name} of {_labels(raisers or implementations)} failed: {what}"

    def _answered(self, answer: object, wrong: str, arguments: dict[str, Any]) -> str:
        implementations = self.caller.get_hookimpls()
        if not implementations:
            return f"there is no plugin that has the hook {self.name}"
        blamed, wrong = self._blamed(answer, wrong, arguments)
        return f"the hook {self.name} of {_labels(blamed or implementations)} answered {wrong}"

    def _blamed(
        self, answer: object, wrong: str, arguments: dict[str, Any]
    ) -> tuple[Sequence[HookImpl], str]:
        """Return the layers that gave the wrong result, and what it is, by calling each of them."""
        everybody = self.caller.get_hookimpls()
        if self.name in _ASKED_ONCE:
            return everybody, wrong
        answering = [it for it in everybody if not _is_wrapper(it)]
        is_answered = self.is_of_all
        for layer in reversed(answering):
            try:
                again = layer.function(*(arguments[name] for name in layer.argnames))
                (own,) = settled([again]) if self.is_of_all else [again]
            except Exception:  # noqa: BLE001  the hook is not a function of its arguments: blame all layers
                return everybody, wrong
            if own is None:
                continue
            if its := type_problem(own, self.returned):
                return [layer], its
            is_answered = True
            if not self.is_of_all:
                break
        is_silent = answer is None and not is_answered
        return answering if is_silent else [it for it in everybody if _is_wrapper(it)], wrong


def _is_wrapper(implementation: HookImpl) -> bool:
    return bool(implementation.wrapper or implementation.hookwrapper)


def _labels(implementations: Sequence[HookImpl]) -> str:
    """Return the names of the layers, the strongest last."""
    return " or ".join(str(it.plugin_name) for it in implementations)


def _raisers(
    implementations: Sequence[HookImpl], frames: Sequence[tuple[FrameType, int]]
) -> tuple[list[HookImpl], str]:
    """Return the layers whose function is innermost in a traceback, and the line there that raised."""
    for frame, _ in reversed(frames):
        found = [it for it in implementations if getattr(it.function, "__code__", None) is frame.f_code]
        if found:
            package = found[0].function.__module__.partition(".")[0]
            places = [
                f" ({inner.f_code.co_filename}, line {line})"
                for inner, line in frames
                if inner is frame or inner.f_globals.get("__name__", "").partition(".")[0] == package
            ]
            return found, places[-1]
    return [], ""


@functools.cache
def answer_type(specification: type, hook: str) -> Any:  # noqa: ANN401  an annotation
    """Return the type of a hook's result by its annotation; None if the result is not used."""
    returned = typing.get_type_hints(getattr(specification, hook))["return"]
    return None if returned is types.NoneType else returned


def settled(answers: Any) -> Any:  # noqa: ANN401  whatever plugins answer
    """Return the results of several layers, with iterators read out: a generator's errors appear now."""
    if not isinstance(answers, list):
        return answers
    return [list(it) if isinstance(it, Iterator) else it for it in answers]


def type_problem(answer: object, expected: Any) -> str | None:  # noqa: ANN401  as above
    """Describe a result of the wrong type and the expected type; None if the type is right.

    >>> type_problem(None, str)
    'NoneType, not str; is `return` missing?'
    >>> type_problem("squeue", Sequence[str])
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

"""Calls the hooks of all layers as one; an error or wrong result is blamed on the layer it came from."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from types import FrameType, GenericAlias, TracebackType
from typing import TYPE_CHECKING, Any

from jpsi.layers.answer_types import answer_type, mistake, settled
from jpsi.model import JpsiError, PluginError
from jpsi.registry import told

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
        hook = _Hook(name, caller, _answer_type(specification, name))
        setattr(self, name, hook)  # the next access bypasses __getattr__
        return hook


_answer_type = functools.cache(answer_type)


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
        if wrong := mistake(answer, self.expected):
            raise PluginError(self._answered(answer, wrong, arguments))
        return answer

    def _failed(self, error: Exception) -> str:
        implementations = self.caller.get_hookimpls()
        raisers, place = _raisers(implementations, list(_frames(error.__traceback__)))
        what = f"{type(error).__name__}: {told(error)}{place}"
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
            if its := mistake(own, self.returned):
                return [layer], its
            is_answered = True
            if not self.is_of_all:
                break
        if answer is None and not is_answered:
            return answering, wrong
        return [it for it in everybody if _is_wrapper(it)], wrong


def _is_wrapper(implementation: HookImpl) -> bool:
    return bool(implementation.wrapper or implementation.hookwrapper)


def _labels(implementations: Sequence[HookImpl]) -> str:
    """Return the names of the layers, the strongest last."""
    return " or ".join(str(it.plugin_name) for it in implementations)


def _frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _raisers(
    implementations: Sequence[HookImpl], frames: Sequence[tuple[FrameType, int]]
) -> tuple[list[HookImpl], str]:
    """Return the layers whose function is innermost in a traceback, and the line there that raised."""
    for frame, _ in reversed(frames):
        found = [it for it in implementations if getattr(it.function, "__code__", None) is frame.f_code]
        if found:
            package = _package(found[0].function.__module__)
            places = [
                f" ({inner.f_code.co_filename}, line {line})"
                for inner, line in frames
                if inner is frame or _package(inner.f_globals.get("__name__", "")) == package
            ]
            return found, places[-1]
    return [], ""


def _package(module: str) -> str:
    return module.partition(".")[0]

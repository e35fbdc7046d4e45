"""Inspects the hooks that a plugin object implements, and their mistakes, without calling them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jpsi.contract import PROJECT

_MARK = f"{PROJECT}_impl"
_SPECIFICATION_MARK = f"{PROJECT}_spec"


def implemented(plugin: object) -> dict[str, bool]:
    """Return the hooks that a plugin implements; True for a wrapper, which has no result of its own."""
    return {hook: is_wrapper for hook, is_wrapper, _ in _implementations(plugin)}


def mistakes(plugin: object, specifications: Iterable[type]) -> list[str]:
    """Return every mistake in a plugin's implementations of hooks; one phrase each."""
    if inspect.isclass(plugin):
        return [f"{plugin.__name__} is a class; offer an instance of it, or a module"]
    known = specified(specifications)
    found = [
        sentence
        for hook, is_wrapper, function in _implementations(plugin)
        for sentence in _wrong(hook, function, known, is_wrapper=is_wrapper)
    ]
    return found or ([] if implemented(plugin) else ["it implements no hook (is `@hookimpl` missing?)"])


def specified(specifications: Iterable[type]) -> dict[str, tuple[str, ...]]:
    """Return the hooks of some specifications, with the names of their arguments."""
    return {
        name: tuple(inspect.signature(function).parameters)[1:]
        for specification in specifications
        for name, function in vars(specification).items()
        if hasattr(function, _SPECIFICATION_MARK)
    }


def lacking(layers: Iterable[object], required: Iterable[str]) -> tuple[str, ...]:
    """Return the required hooks that no layer implements."""
    answered = {
        hook for plugin in layers for hook, is_wrapper in implemented(plugin).items() if not is_wrapper
    }
    return tuple(hook for hook in required if hook not in answered)


def _wrong(
    hook: str,
    function: Any,  # noqa: ANN401  any callable
    known: Mapping[str, tuple[str, ...]],
    *,
    is_wrapper: bool,
) -> Iterator[str]:
    if hook not in known:
        yield f"there is no hook {hook!r}{_suggestion(hook, known)}"
        return
    if is_wrapper and not inspect.isgeneratorfunction(function):
        yield f"{hook} has wrapper=True, but no `yield`; write `answer = yield`, or leave wrapper=True out"
    for name, parameter in inspect.signature(function).parameters.items():
        has_default = parameter.default is not parameter.empty
        if name not in known[hook] and not has_default:
            yield f"{hook} has no argument {name!r}, only {', '.join(known[hook])}"
        elif name in known[hook] and has_default:
            yield f"{hook} gives its argument {name!r} a default, which pluggy never replaces"


def _suggestion(word: str, known: Iterable[str]) -> str:
    from jpsi.document import did_you_mean  # most programs never need it

    return did_you_mean(word, known)


def _implementations(plugin: object) -> Iterator[tuple[str, bool, Any]]:
    for name in dir(plugin):
        function = inspect.getattr_static(plugin, name, None)
        options = getattr(getattr(function, "__func__", function), _MARK, None)
        if isinstance(options, dict):
            is_wrapper = bool(options.get("wrapper") or options.get("hookwrapper"))
            yield options.get("specname") or name, is_wrapper, getattr(plugin, name)

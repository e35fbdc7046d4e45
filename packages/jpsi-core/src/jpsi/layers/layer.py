"""A plugin object as a layer of hooks: its hooks, the mistakes in them, and the relay of calls to layers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

import attrs

from jpsi import contract, registry
from jpsi.contract import PROJECT, ExecutorHooks, ObserverHooks
from jpsi.document import did_you_mean
from jpsi.layers.hook_guard import SPECIFICATION_MARK, Function, HookGuard
from jpsi.model import PluginError
from jpsi.registry import Candidate, load_plugin

#: The specifications of plugins that have other layers.
LAID_OVER = (ExecutorHooks, ObserverHooks)
#: By group, the hooks that plugins without other layers may implement, and those that they must.
SPECIFICATIONS: Mapping[str, tuple[Sequence[type], Sequence[str]]] = {
    registry.ENGINES: (
        (contract.EngineHooks,),
        ("local_transport", "batch_engine", "process_engine", "open_files"),
    ),
    registry.LAUNCHERS: ((contract.LauncherHooks,), ("launch",)),
    registry.CONTAINERS: ((contract.ContainerHooks,), ("run_container",)),
    registry.TRANSPORTS: ((contract.TransportHooks,), ("open_transport",)),
    registry.OVERRIDES: (LAID_OVER, ()),
    registry.OBSERVERS: (LAID_OVER, ("status_changed",)),
}
_MARK = f"{PROJECT}_impl"
_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class _Hooks(SimpleNamespace):
    """Functions by the names of hooks."""

    def __dir__(self) -> list[str]:
        """Return these names alone; pluggy looks at each."""
        return list(vars(self))


class Implementation(NamedTuple):
    """A function of a plugin that implements a hook."""

    #: Its name in the plugin.
    name: str
    hook: str
    #: True if it wraps the layers below.
    is_wrapper: bool
    function: Function


@attrs.frozen(slots=True)
class Layer:
    """A plugin object, one of several with the same hooks."""

    #: Its name in messages.
    label: str
    plugin: Any  # pluggy takes any object

    def check(self, specifications: Sequence[type], required: Sequence[str] = ()) -> None:
        """Raise PluginError, with every mistake, unless it has only existing hooks, and all required ones."""
        found = find_hook_problems(self.plugin, specifications)
        if implemented(self.plugin) and (missing := lacking([self.plugin], required)):
            found.append(lacks(missing))
        if found:
            raise PluginError(self.unusable(found))

    def unusable(self, found: Sequence[str]) -> str:
        """Return the message that it cannot be used, and why."""
        return f"{self.label} cannot be used: {'; '.join(found)}"


def lacks(hooks: Sequence[str]) -> str:
    """Return the phrase that a plugin lacks these hooks.

    >>> lacks(["submit", "query"])
    'it lacks the hooks submit, query'
    """
    return f"it lacks the hook{'s' * (len(hooks) > 1)} {', '.join(hooks)}"


def checked(candidate: Candidate) -> Layer:
    """Load a plugin that has no other layers; PluginError if it is broken or lacks a required hook."""
    layer = Layer(candidate.label, load_plugin(candidate))
    layer.check(*SPECIFICATIONS[candidate.group])
    return layer


def relay(layers: Iterable[Layer], specifications: Iterable[type]) -> object:
    """Return the relay that passes a call to the layers, the last one first, and checks their results."""
    own = tuple((layer.label, tuple(implementations(layer.plugin))) for layer in layers)
    # another object that can be called may equal one that does something else, or have no hash
    is_shared = all(inspect.isroutine(it.function) for _, its in own for it in its)
    make = _shared_relay if is_shared else _relay
    return make(own, tuple(specifications))


def _relay(layers: Sequence[tuple[str, Sequence[Implementation]]], specifications: Sequence[type]) -> object:
    from pluggy import PluginManager

    manager = PluginManager(PROJECT)
    known = specified(specifications)
    for specification in specifications:
        manager.add_hookspecs(specification)
    labels: dict[str, list[str]] = {hook: [] for hook in known}
    for label, implementing in layers:
        own = {}
        for it in implementing:
            own[it.name] = HookGuard(known[it.hook], label).over(it.function, is_wrapper=it.is_wrapper)
            if not it.is_wrapper:
                labels[it.hook].append(label)
        manager.register(_Hooks(**own), name=label)
    last = {hook: HookGuard(known[hook], " or ".join(its)).refusal() for hook, its in labels.items()}
    manager.register(_Hooks(**last))
    return manager.hook


# To make a relay takes half the time of making an executor. Relays have no state.
_shared_relay = functools.lru_cache(maxsize=64)(_relay)


def implemented(plugin: object) -> dict[str, bool]:
    """Return the hooks that a plugin implements; True for a wrapper, which has no result of its own."""
    return {it.hook: it.is_wrapper for it in implementations(plugin)}


def find_hook_problems(plugin: object, specifications: Iterable[type]) -> list[str]:
    """Return every mistake in a plugin's implementations of hooks; one phrase each."""
    if inspect.isclass(plugin):
        return [f"{plugin.__name__} is a class; offer an instance of it, or a module"]
    known = specified(specifications)
    hooks = list(implementations(plugin))
    if not hooks:
        return ["it implements no hook (is `@hookimpl` missing?)"]
    return [sentence for hook in hooks for sentence in _wrong(hook, known)]


def specified(specifications: Iterable[type]) -> dict[str, Function]:
    """Return the hooks of some specifications, with the functions that specify them."""
    return {
        name: function
        for specification in specifications
        for name, function in vars(specification).items()
        if hasattr(function, SPECIFICATION_MARK)
    }


def lacking(layers: Iterable[object], required: Iterable[str]) -> tuple[str, ...]:
    """Return the required hooks that no layer implements."""
    own = {hook for plugin in layers for hook, is_wrapper in implemented(plugin).items() if not is_wrapper}
    return tuple(hook for hook in required if hook not in own)


def _wrong(implementation: Implementation, known: Mapping[str, Function]) -> Iterator[str]:
    hook, function = implementation.hook, implementation.function
    if hook not in known:
        yield f"there is no hook {hook!r}{did_you_mean(hook, known)}"
        return
    if getattr(function, _MARK)["hookwrapper"]:
        yield f"{hook} has hookwrapper=True; write wrapper=True and `answer = yield`"
    elif implementation.is_wrapper and not inspect.isgeneratorfunction(function):
        yield f"{hook} has wrapper=True, but no `yield`; write `answer = yield`, or leave wrapper=True out"
    _, *arguments = _arguments(known[hook])
    for name, has_default in _arguments(function).items():
        if name not in arguments and not has_default:
            yield f"{hook} has no argument {name!r}, only {', '.join(arguments)}"
        elif name in arguments and has_default:
            yield f"{hook} gives its argument {name!r} a default, which pluggy never replaces"


def _arguments(function: Function) -> dict[str, bool]:
    """Return the arguments of a function; True for one with a default."""
    if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
        code = function.__code__
        if not code.co_kwonlyargcount and not code.co_flags & _VARIADIC:
            # as `inspect.signature` finds them, many times as fast
            names = code.co_varnames[: code.co_argcount]
            first = len(names) - len(function.__defaults__ or ())
            return {name: index >= first for index, name in enumerate(names)}
    parameters = inspect.signature(function).parameters
    return {name: it.default is not it.empty for name, it in parameters.items()}


def implementations(plugin: object) -> Iterator[Implementation]:
    """Yield the implementations of hooks in a plugin."""
    # `getattr_static` is slow, and a module needs none
    names = vars(plugin) if inspect.ismodule(plugin) else dir(plugin)
    for name in sorted(names):
        function = names[name] if isinstance(names, dict) else inspect.getattr_static(plugin, name, None)
        options = getattr(getattr(function, "__func__", function), _MARK, None)
        if isinstance(options, dict):
            is_wrapper = bool(options.get("wrapper") or options.get("hookwrapper"))
            yield Implementation(name, options.get("specname") or name, is_wrapper, getattr(plugin, name))

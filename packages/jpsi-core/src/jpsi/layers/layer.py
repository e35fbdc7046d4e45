"""A layer of hooks with its name for messages, and the relay that calls several of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from jpsi.layers.hook_caller import CheckedHooks
from jpsi.layers.hooks import implemented, lacking, mistakes
from jpsi.model import PluginError
from jpsi.registry import Candidate, load_plugin


@attrs.frozen(slots=True)
class Layer:
    """A plugin object, one of several with the same hooks."""

    #: Its name in messages.
    label: str
    plugin: Any  # pluggy takes any object

    def mistakes(self, specifications: Sequence[type]) -> list[str]:
        """Return the mistakes in its implementations of hooks; one phrase each."""
        return mistakes(self.plugin, specifications)

    def check(self, specifications: Sequence[type], required: Sequence[str] = ()) -> None:
        """Raise unless it implements only existing hooks, with their arguments, and all required ones.

        Raises:
            PluginError: it does not; the message names every mistake.
        """
        found = self.mistakes(specifications)
        if implemented(self.plugin) and (missing := lacking([self.plugin], required)):
            found.append(f"it lacks {named(missing)}")
        if found:
            raise PluginError(self.unusable(found))

    def unusable(self, found: Sequence[str]) -> str:
        """Return the message that it cannot be used, and why."""
        return f"{self.label} cannot be used: {'; '.join(found)}"


def named(hooks: Sequence[str]) -> str:
    """Return hooks as part of a sentence.

    >>> named(["submit", "query"])
    'the hooks submit, query'
    """
    return f"the hook {hooks[0]}" if len(hooks) == 1 else f"the hooks {', '.join(hooks)}"


def checked(candidate: Candidate, specifications: Sequence[type], required: Sequence[str]) -> Layer:
    """Load a plugin that has no other layers, and check it.

    Raises:
        PluginError: it cannot be loaded, is broken, or lacks a required hook.
    """
    layer = Layer(candidate.label, load_plugin(candidate))
    layer.check(specifications, required)
    return layer


def relay(layers: Iterable[Layer], specifications: Sequence[type]) -> object:
    """Return the relay that passes a call to the layers, the last one first, and checks their results.

    Raises:
        PluginError: pluggy rejects a layer.
    """
    from pluggy import PluginManager, PluginValidationError

    from jpsi.contract import PROJECT

    manager = PluginManager(PROJECT)
    for specification in specifications:
        manager.add_hookspecs(specification)
    for layer in layers:
        try:
            manager.register(layer.plugin, name=layer.label)
        except PluginValidationError as e:
            raise PluginError(layer.unusable([" ".join(str(e).split())]), e) from e
    return CheckedHooks(manager.hook, specifications)

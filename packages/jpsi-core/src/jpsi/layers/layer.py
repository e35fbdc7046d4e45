"""One layer of hooks with the name that messages call it by, and the relay that asks several of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from jpsi.layers.hook_caller import Relay
from jpsi.layers.hooks import implemented, lacking, mistakes
from jpsi.model import PluginError
from jpsi.registry import Candidate, load_plugin


@attrs.frozen(slots=True)
class Layer:
    """A plugin object among others that are asked the same."""

    #: What messages call it.
    label: str
    plugin: Any  # pluggy takes any object

    def mistakes(self, specifications: Sequence[type]) -> list[str]:
        """What is wrong with how it implements hooks; one phrase each."""
        return mistakes(self.plugin, specifications)

    def check(self, specifications: Sequence[type], required: Sequence[str] = ()) -> None:
        """See that it implements hooks that exist, by the arguments that they have, and those it must.

        Raises:
            PluginError: it does not; everything that is wrong is named.
        """
        found = self.mistakes(specifications)
        if implemented(self.plugin) and (missing := lacking([self.plugin], required)):
            found.append(f"it lacks {named(missing)}")
        if found:
            raise PluginError(self.unusable(found))

    def unusable(self, found: Sequence[str]) -> str:
        """That it cannot be used, and why."""
        return f"{self.label} cannot be used: {'; '.join(found)}"


def named(hooks: Sequence[str]) -> str:
    """Hooks in a sentence.

    >>> named(["submit", "query"])
    'the hooks submit, query'
    """
    return f"the hook {hooks[0]}" if len(hooks) == 1 else f"the hooks {', '.join(hooks)}"


def checked(candidate: Candidate, specifications: Sequence[type], required: Sequence[str]) -> Layer:
    """The layer of a plugin that stands alone.

    Raises:
        PluginError: it cannot be loaded, is broken, or lacks a hook that is required.
    """
    layer = Layer(candidate.label, load_plugin(candidate))
    layer.check(specifications, required)
    return layer


def relay(layers: Iterable[Layer], specifications: Sequence[type]) -> object:
    """What passes a call on to the layers, the last one first, and checks what they answer.

    Raises:
        PluginError: pluggy finds something wrong.
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
    return Relay(manager.hook, specifications)

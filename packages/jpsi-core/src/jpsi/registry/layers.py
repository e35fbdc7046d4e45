"""One layer of hooks with the name that messages call it by, and the relay that asks several of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from jpsi.model.errors import PluginError
from jpsi.registry.hooks import mistakes


@attrs.frozen(slots=True)
class Layer:
    """A plugin object among others that are asked the same."""

    #: What messages call it.
    label: str
    plugin: Any  # pluggy takes any object

    def check(self, specifications: Sequence[type]) -> None:
        """See that it implements hooks that exist, by the arguments that they have.

        Raises:
            PluginError: it does not; everything that is wrong is named.
        """
        if found := mistakes(self.plugin, specifications):
            msg = f"{self.label} cannot be used: {'; '.join(found)}"
            raise PluginError(msg)


def relay(layers: Iterable[Layer], specifications: Iterable[type]) -> object:
    """What passes a call on to the layers, the last one first.

    Raises:
        PluginError: pluggy finds something wrong.
    """
    from pluggy import PluginManager, PluginValidationError

    from jpsi.contract.hookspecs import PROJECT

    manager = PluginManager(PROJECT)
    for specification in specifications:
        manager.add_hookspecs(specification)
    for layer in layers:
        try:
            manager.register(layer.plugin, name=layer.label)
        except PluginValidationError as e:
            msg = f"{layer.label} cannot be used: {e}"
            raise PluginError(msg, e) from e
    return manager.hook

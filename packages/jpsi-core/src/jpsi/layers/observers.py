"""Finds the observers of every status: observer plugins, and overrides that implement their hooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from jpsi.contract import REQUIRED_OBSERVER_HOOKS, ExecutorHooks, ObserverHooks
from jpsi.layers.hooks import implemented
from jpsi.layers.layer import Layer, checked, relay
from jpsi.layers.overrides import latest
from jpsi.model import PluginError
from jpsi.registry import OBSERVERS, Plugins

_SPECIFICATIONS = (ExecutorHooks, ObserverHooks)
_told: set[str] = set()


def observers(plugins: Plugins, layers: Iterable[Layer]) -> tuple[ObserverHooks, ...]:
    """Return the installed observers, and those of an executor's layers that observe, each once.

    A broken observer only causes a warning, once per process.
    """
    found: list[Layer] = []
    for layer in (*layers, *_installed(plugins)):
        is_new = all(layer.plugin is not other.plugin for other in found)
        if is_new and not implemented(layer.plugin).keys().isdisjoint(REQUIRED_OBSERVER_HOOKS):
            found.append(layer)
    return tuple(cast("ObserverHooks", relay([layer], _SPECIFICATIONS)) for layer in found)


def _installed(plugins: Plugins) -> Iterator[Layer]:
    for candidates, refusals in latest(plugins.of(OBSERVERS)):
        for candidate in candidates:
            try:
                if refusals:
                    msg = f"{candidate.label} is refused: {'; '.join(refusals)}"
                    raise PluginError(msg)  # noqa: TRY301  both errors become one warning
                layer = checked(candidate, _SPECIFICATIONS, REQUIRED_OBSERVER_HOOKS)
            except PluginError as e:
                _warn(str(e))
            else:
                yield layer


def _warn(message: str) -> None:
    import logging  # costs a tenth of what `import jpsi` takes

    if message not in _told:
        _told.add(message)
        logging.getLogger(__name__).warning("nothing is told to an observer: %s", message)

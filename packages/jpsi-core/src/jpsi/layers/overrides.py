"""Finds the overrides of a site or a user for executors: policies, which are never skipped silently."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import attrs

from jpsi.contract import ownership
from jpsi.layers.layer import Layer
from jpsi.model import PluginError
from jpsi.registry import (
    OVERRIDES,
    Candidate,
    Plugins,
    canonical,
    describe_error,
    load_plugin,
    private_name,
    removed_on_failure,
    verdicts,
)

#: The name of an override for every executor.
ALL = "all"
_lock = threading.RLock()


def overrides(plugins: Plugins, executor: Candidate, folders: Sequence[Path]) -> list[Layer]:
    """Return the override layers of an executor, the strongest last.

    First the overrides of distributions, named in the group `jpsi.overrides` like the executor, one of its
    aliases, or `all`; then files of those names in `overrides/` of each of the directories. Of two that are
    equally strong, the one for all executors is the lower layer. PluginError if one cannot be loaded.
    """
    names = {ALL, *(name.lower() for name in (executor.name, *executor.aliases))}
    layers = [Layer(it.label, load_plugin(it)) for it in _candidates(plugins.of(OVERRIDES), names)]
    layers += [file_layer(path) for folder in folders for path in files(folder) if path.stem.lower() in names]
    # an override under several names counts once, in its strongest position
    return [
        layer
        for index, layer in enumerate(layers)
        if all(layer.plugin is not later.plugin for later in layers[index + 1 :])
    ]


def latest(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates of the chosen version of each distribution.

    If there is none, they are all candidates of the distribution, with the reasons as their refusals.
    """
    found = []
    for judged in by_distribution(candidates):
        chosen = [candidate for candidate, why_not in judged if why_not is None]
        reasons = "; ".join(dict.fromkeys(why_not for _, why_not in judged if why_not))
        found += chosen or [attrs.evolve(candidate, refusal=reasons) for candidate, _ in judged]
    return found


def by_distribution(candidates: Iterable[Candidate]) -> list[list[tuple[Candidate, str | None]]]:
    """Return `verdicts` for the candidates of each distribution, in the order of the distributions' names."""
    found: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        found.setdefault(canonical(candidate.distribution), []).append(candidate)
    return [verdicts(found[name], None) for name in sorted(found)]


def _candidates(installed: Iterable[Candidate], names: Collection[str]) -> list[Candidate]:
    found = [it for it in latest(installed) if it.name.lower() in names]
    for candidate in found:
        if candidate.refusal is not None:
            msg = f"{candidate.label} was not loaded, and it may be a policy: {candidate.refusal}"
            raise PluginError(msg)
    return sorted(found, key=lambda it: (it.name.lower() != ALL, it.distribution))


def files(folder: Path) -> list[Path]:
    """Return the overrides of one file in a configuration directory, the strongest last."""
    return sorted(folder.glob("overrides/*.py"), key=lambda path: (path.stem.lower() != ALL, path.name))


def file_layer(path: Path) -> Layer:
    """Import an override of one file, once, and return its layer; PluginError if that is not possible."""
    label = f"the override {path}"
    if refusal := ownership.refusal(path):
        raise PluginError(f"{label} is refused: {refusal}")
    name = private_name(str(path), "")
    with _lock:
        try:
            if name not in sys.modules:
                _load_file(path, name)
        except (Exception, SystemExit) as e:
            msg = f"{label} cannot be loaded: {type(e).__name__}: {describe_error(e)}; repair or remove it"
            raise PluginError(msg, e) from e
        return Layer(label, sys.modules[name])


def _load_file(path: Path, name: str) -> None:
    from importlib.machinery import ModuleSpec, SourceFileLoader
    from importlib.util import module_from_spec

    loader = SourceFileLoader(name, str(path))
    module = module_from_spec(ModuleSpec(name, loader, origin=str(path)))
    module.__file__ = str(path)
    with removed_on_failure(name):
        sys.modules[name] = module
        loader.exec_module(module)

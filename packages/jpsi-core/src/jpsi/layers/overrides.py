"""Finds the overrides of a site or a user for executors: policies, which are never skipped silently."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

from jpsi.contract import ownership
from jpsi.layers.layer import Layer
from jpsi.model import PluginError
from jpsi.registry import (
    OVERRIDES,
    Candidate,
    Plugins,
    canonical,
    forget,
    load_plugin,
    private_name,
    told,
    verdicts,
)

#: The name of an override for every executor.
ALL = "all"
_lock = threading.RLock()


def overrides(plugins: Plugins, executor: Candidate, folders: Sequence[Path]) -> list[Layer]:
    """Return the override layers of an executor, the strongest last.

    First the overrides of distributions, named in the group `jpsi.overrides` like the executor, one of its
    aliases, or `all`; then files of those names in `overrides/` of each of the directories. Of two that are
    equally strong, the one for all executors is the lower layer.

    Raises:
        PluginError: one of them cannot be loaded.
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


def latest(candidates: Iterable[Candidate]) -> Iterator[tuple[list[Candidate], list[str]]]:
    """Yield, for each distribution, its candidates of the chosen version, or why no version is chosen."""
    for named in by_distribution(candidates):
        why_not = verdicts(named, None)
        chosen = [candidate for candidate, why in zip(named, why_not, strict=True) if why is None]
        yield chosen or named, [] if chosen else [why for why in dict.fromkeys(why_not) if why is not None]


def by_distribution(candidates: Iterable[Candidate]) -> list[list[Candidate]]:
    """Group the candidates by distribution, in the order of the distributions' names."""
    found: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        found.setdefault(canonical(candidate.distribution), []).append(candidate)
    return [found[name] for name in sorted(found)]


def _candidates(installed: Iterable[Candidate], names: Collection[str]) -> list[Candidate]:
    found = []
    for candidates, refusals in latest(installed):
        meant = [it for it in candidates if it.name.lower() in names]
        if meant and refusals:
            msg = f"{meant[0].label} is refused, and it may be a policy: {'; '.join(refusals)}"
            raise PluginError(msg)
        found += meant
    return sorted(found, key=lambda it: (it.name.lower() != ALL, it.distribution))


def files(folder: Path) -> list[Path]:
    """Return the overrides of one file in a configuration directory, the strongest last."""
    return sorted(folder.glob("overrides/*.py"), key=lambda path: (path.stem.lower() != ALL, path.name))


def file_layer(path: Path) -> Layer:
    """Return the layer of one file; see `load_file`."""
    return Layer(f"the override {path}", load_file(path))


def load_file(path: Path) -> ModuleType:
    """Import a file that belongs to no distribution; returns the same module at every call.

    Raises:
        PluginError: it is refused, or cannot be imported, whatever the reason.
    """
    if refusal := ownership.refusal(path):
        msg = f"the override {path} is refused: {refusal}"
        raise PluginError(msg)
    name = private_name(str(path), "")
    with _lock:
        return sys.modules[name] if name in sys.modules else _load_file(path, name)


def _load_file(path: Path, name: str) -> ModuleType:
    from importlib.machinery import ModuleSpec, SourceFileLoader
    from importlib.util import module_from_spec

    loader = SourceFileLoader(name, str(path))
    module = module_from_spec(ModuleSpec(name, loader, origin=str(path)))
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as e:
        forget([name])
        msg = f"the override {path} cannot be loaded: {type(e).__name__}: {told(e)}; mend or remove it"
        raise PluginError(msg, e) from e
    except BaseException:
        forget([name])
        raise
    return module

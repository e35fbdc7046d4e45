"""Lists every installed plugin with its status and the reason for it, as `jpsi plugins` shows them."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from jpsi.config import loader
from jpsi.contract import ownership
from jpsi.document import did_you_mean
from jpsi.layers.layer import LAID_OVER, checked
from jpsi.layers.overrides import ALL, by_distribution, file_layer, files
from jpsi.layers.stack import executor_layers
from jpsi.model import PluginError
from jpsi.registry import (
    EXECUTORS,
    FAKES,
    GROUPS,
    OBSERVERS,
    OVERRIDES,
    Candidate,
    Plugins,
    conflict,
    installed,
    kind,
    load_plugin,
    verdicts,
)

#: Stands for the distribution and the version of a file that belongs to no distribution.
_NONE = "-"


@attrs.frozen(slots=True, kw_only=True)
class Plugin:
    """A name that an installed distribution or an override of one file provides."""

    #: executor, launcher, transport, override, observer or fake.
    kind: str
    name: str
    #: The other names of the same plugin.
    aliases: tuple[str, ...]
    #: Its distribution's version; `-`, as in `distribution`, for an override of one file, which has none.
    version: str
    distribution: str
    #: `environment`, the directory of the plugin path that contains it, or the path of an override.
    origin: str
    #: True if the name resolves to this plugin, under the current configuration.
    chosen: bool
    #: The reason if it does not.
    why_not: str | None
    #: The error if it cannot be loaded, or could not be used; None if it can be, or was not tried.
    load_error: str | None


def plugins(*, load: bool | Collection[str] = False) -> list[Plugin]:
    """Return every plugin of the environment and of the plugin path, and every override of one file.

    With `load`, those that are not refused are loaded, which runs their code, and checked; if it has kinds,
    only those of these kinds.

    Raises:
        ConfigError: the configuration is wrong.
    """
    settings = loader.load()
    found = installed(settings.plugin_path)
    executors = (it for it in found.candidates if it.group == EXECUTORS)
    constraints = {it.name.lower(): settings.executor([it.name, *it.aliases]).version for it in executors}
    return listing(found, constraints, loader.folders(), settings.targets, load=load)


def listing(
    found: Plugins,
    constraints: Mapping[str, str | None],
    folders: Sequence[Path] = (),
    targets: Collection[str] = (),
    *,
    load: bool | Collection[str] = False,
) -> list[Plugin]:
    """Return what `plugins` reports about these candidates.

    The constraints are the configured ones of executors, by their names in lower case; the folders may hold
    overrides of one file, the strongest last; the targets are the names of the configured ones.
    """
    listed = []
    for group in GROUPS:
        judged = list(_judged(found.of(group), group, constraints))
        if group == OVERRIDES:
            judged += _judged_files(found, folders, targets)
        is_loading = load if isinstance(load, bool) else kind(group) in load
        for candidate, why_not in judged:
            is_tried = is_loading and candidate.refusal is None
            listed.append(
                Plugin(
                    kind=kind(group),
                    name=candidate.name,
                    aliases=tuple(sorted(name for name in candidate.aliases if name != candidate.name)),
                    version=candidate.version,
                    distribution=candidate.distribution,
                    origin=candidate.origin or "environment",
                    chosen=why_not is None,
                    why_not=why_not,
                    load_error=_load_error(found, candidate, folders) if is_tried else None,
                )
            )
    return listed


def _judged_files(
    found: Plugins, folders: Sequence[Path], targets: Collection[str]
) -> Iterator[tuple[Candidate, str | None]]:
    """Yield the overrides of one file, and why each is not used."""
    executors = sorted({it.name for it in found.candidates if it.group == EXECUTORS})
    for it in (_of_file(path) for folder in folders for path in files(folder)):
        yield it, it.refusal or over_nothing(it.name, executors, targets)


def _of_file(path: Path) -> Candidate:
    """Return an override of one file as if a distribution provided it."""
    return Candidate(
        group=OVERRIDES,
        name=path.stem,
        distribution=_NONE,
        version=_NONE,
        value="",
        origin=str(path),
        refusal=ownership.refusal(path),
    )


def _judged(
    candidates: Sequence[Candidate], group: str, constraints: Mapping[str, str | None]
) -> Iterator[tuple[Candidate, str | None]]:
    if group in {OVERRIDES, OBSERVERS}:  # all of them are used, not only the requested one
        yield from itertools.chain.from_iterable(by_distribution(candidates))
        return
    for name in sorted({candidate.name.lower() for candidate in candidates}):
        constraint = constraints.get(name) if group == EXECUTORS else None
        judged = verdicts([it for it in candidates if it.is_called(name)], constraint)
        best = [candidate for candidate, why_not in judged if why_not is None]
        several = conflict(best) if len(best) > 1 else None
        yield from ((candidate, why_not or several) for candidate, why_not in judged)


def over_nothing(name: str, executors: Collection[str], targets: Collection[str]) -> str | None:
    """Return why an override of one file with this name overrides no executor; None if it does.

    >>> over_nothing("klep", ["kelp", "local"], [])
    "overrides nothing: there is no executor 'klep'; did you mean 'kelp'?"
    """
    if name.lower() in {ALL, *map(str.lower, executors)}:
        return None
    if name.lower() in targets:
        advice = "; an override is named after an executor, not after a target"
    else:
        advice = did_you_mean(name.lower(), executors)
    return f"overrides nothing: there is no executor {name!r}{advice}"


def _load_error(plugins: Plugins, candidate: Candidate, folders: Sequence[Path]) -> str | None:
    try:
        if candidate.group == EXECUTORS:
            # with its overrides: they may supply hooks that it lacks, or be broken
            executor_layers(plugins, candidate, folders)
        elif candidate.group == FAKES:
            _check_fake(candidate)
        elif candidate.distribution == _NONE:
            file_layer(Path(candidate.origin or "")).check(LAID_OVER)
        else:
            checked(candidate)
    except PluginError as e:
        return str(e)
    return None


def _check_fake(candidate: Candidate) -> None:
    plugin = load_plugin(candidate)
    if missing := [name for name in ("commands", "unreachable") if not hasattr(plugin, name)]:
        raise PluginError(f"{candidate.label} cannot be used: it lacks {' and '.join(missing)}")

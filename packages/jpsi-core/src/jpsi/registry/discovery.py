"""Finds the plugins of the environment and of the plugin path, without importing them."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from jpsi.contract import ownership
from jpsi.registry import metadata
from jpsi.registry.candidate import Candidate
from jpsi.registry.loading import added_to_path, own_modules
from jpsi.registry.metadata import FOUNDATIONS, Distribution
from jpsi.registry.versions import choose, unmet_requirement

#: The environment variable with further directories of plugins.
PLUGIN_PATH = "JPSI_PLUGIN_PATH"


@attrs.frozen(slots=True)
class Plugins:
    """The installed plugins at one moment."""

    #: All candidates: first those of the environment, then in the order of the directories.
    candidates: tuple[Candidate, ...]
    #: The versions of the running jpsi-core and jpsi-engine, by name; without those that were not installed.
    running: Mapping[str, str] = attrs.field(factory=dict)

    def of(self, group: str) -> list[Candidate]:
        """Return the candidates of a group, each with a refusal if it must not be loaded."""
        return [self._judged(candidate) for candidate in self.candidates if candidate.group == group]

    def named(self, group: str, name: str) -> list[Candidate]:
        """Return the candidates of a group with this name, case ignored, with their refusals."""
        return [self._judged(it) for it in self.candidates if it.group == group and it.is_called(name)]

    def find(
        self, group: str, name: str, constraint: str | None = None, targets: Collection[str] = ()
    ) -> Candidate:
        """Return the candidate of a group for a name and a version constraint; see `choose`."""
        found = self.named(group, name) or [it for it in self.candidates if it.group == group]
        return choose(found, group, name, constraint, targets)

    def _judged(self, candidate: Candidate) -> Candidate:
        unmet = unmet_requirement(candidate.requires, self.running)
        return attrs.evolve(candidate, refusal=candidate.refusal or unmet or _unsafe(candidate))


def installed(plugin_path: Iterable[str | os.PathLike[str]] = ()) -> Plugins:
    """Find the plugins that are installed now; the plugin path is searched after that of JPSI_PLUGIN_PATH."""
    added = added_to_path()
    environment = [directory for directory in sys.path if directory not in added]
    found = metadata.of_path(environment)
    own = {metadata.canonical(it.name): it.version for it in reversed(found)}
    running = {name: own[name] for name in FOUNDATIONS if name in own}
    candidates = list(_candidates(found, None, 0))
    further = _directories(plugin_path)
    # they are resolved only if there is something to compare with them, as that takes long
    seen = {os.path.realpath(directory) for directory in environment} if further else set()
    for place, directory in enumerate(further, 1):
        if os.path.realpath(directory) in seen:
            continue
        seen.add(os.path.realpath(directory))
        # pip installs copies with plugins that require them; jpsi runs those of the environment
        there = metadata.distributions(directory)
        others = [it for it in there if metadata.canonical(it.name) not in FOUNDATIONS]
        candidates += _candidates(others, directory, place)
    return Plugins(tuple(candidates), running)


def _directories(plugin_path: Iterable[str | os.PathLike[str]]) -> list[str]:
    texts = filter(None, os.environ.get(PLUGIN_PATH, "").split(os.pathsep))
    return [*(str(Path(it).expanduser().absolute()) for it in texts), *(os.fspath(it) for it in plugin_path)]


def _candidates(found: Sequence[Distribution], origin: str | None, place: int) -> Iterator[Candidate]:
    for distribution in found:
        for entry in distribution.entry_points:
            same = [it for it in distribution.entry_points if it.group == entry.group]
            yield Candidate(
                group=entry.group,
                name=entry.name,
                aliases=tuple(it.name for it in same if it.value == entry.value),
                distribution=distribution.name,
                version=distribution.version,
                value=entry.value,
                origin=origin,
                folder=distribution.folder,
                place=place,
                requires=distribution.requires,
                refusal=_rivals(distribution) if distribution.rivals else None,
            )


def _rivals(distribution: Distribution) -> str:
    several = " and ".join(distribution.rivals)
    advice = f"remove all, then install one: pip install --upgrade --target {distribution.directory} ..."
    return f"{distribution.directory} has {distribution.name} {several}, but files of one version; {advice}"


def _unsafe(candidate: Candidate) -> str | None:
    """Return why the files of a plugin on the plugin path must not be loaded."""
    if candidate.origin is None:
        return None
    origin = Path(candidate.origin)
    found = ownership.refusal(origin) or ownership.refusal_within(candidate.folder)
    tops = sorted({module.partition(".")[0] for module in own_modules(candidate)})
    files = [path for top in tops for path in (origin / top, origin / f"{top}.py") if path.exists()]
    return found or next(filter(None, map(ownership.refusal_within, files)), None)

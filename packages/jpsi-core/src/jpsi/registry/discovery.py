"""Finds plugins by their entry points; imports none of them before it is asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs

from jpsi.model.errors import PluginError

if TYPE_CHECKING:
    from importlib_metadata import EntryPoint

EXECUTORS = "jpsi.executors"
LAUNCHERS = "jpsi.launchers"

#: Which distribution brings which plugin of this project, for the message about a missing one.
KNOWN_DISTRIBUTIONS = {
    "slurm": "jpsi-slurm",
    "pbs": "jpsi-pbs",
    "pbspro": "jpsi-pbs",
    "openpbs": "jpsi-pbs",
    "torque": "jpsi-pbs",
    "pbs_classic": "jpsi-pbs",
    "lsf": "jpsi-lsf",
    "flux": "jpsi-flux",
    "gridengine": "jpsi-gridengine",
    "sge": "jpsi-gridengine",
}
_LAUNCHER_DISTRIBUTION = "jpsi-launchers"
_KNOWN_LAUNCHERS = frozenset({"multiple", "mpirun", "mpiexec", "srun", "jsrun", "aprun", "flux", "script"})


@attrs.frozen(slots=True)
class Candidate:
    """A plugin that is installed, not yet imported."""

    #: The name it is asked for by.
    name: str
    distribution: str
    version: str
    entry_point: EntryPoint

    def load(self) -> Any:  # noqa: ANN401  pluggy takes any object
        """Import the plugin.

        Raises:
            PluginError: it cannot be imported, whatever the reason.
        """
        try:
            return self.entry_point.load()
        except Exception as e:
            msg = (
                f"the plugin {self.name!r} of {self.distribution} {self.version} cannot be loaded: "
                f"{type(e).__name__}: {e}"
            )
            raise PluginError(msg, e) from e


def candidates(group: str) -> list[Candidate]:
    """The plugins of a group that are installed."""
    from importlib_metadata import entry_points

    return [
        Candidate(
            entry.name,
            entry.dist.name if entry.dist is not None else "?",
            entry.dist.version if entry.dist is not None else "0",
            entry,
        )
        for entry in entry_points(group=group)
    ]


def find(group: str, name: str, constraint: str | None = None) -> Candidate:
    """The candidate of a group with this name, case ignored, whose version fits and is the highest.

    Raises:
        PluginError: there is none, or several of the same version.
        ValueError: the constraint is not a PEP 440 version specifier.
    """
    installed = candidates(group)
    return choose(installed, group, name, constraint)


def choose(installed: Iterable[Candidate], group: str, name: str, constraint: str | None) -> Candidate:
    """The candidate that `find` would pick among `installed`: a pure function."""
    installed = list(installed)
    named = [candidate for candidate in installed if candidate.name.lower() == name.lower()]
    if not named:
        raise PluginError(_missing(installed, group, name))
    if len(named) == 1 and not constraint:
        return named[0]
    best = _best(named, constraint)
    if not best:
        found = ", ".join(sorted(candidate.version for candidate in named))
        wanted = f"with version {constraint}" if constraint else "with a version of PEP 440"
        msg = f"no {_kind(group)} {name!r} {wanted}; installed: {found}"
        raise PluginError(msg)
    if len(best) > 1:
        sources = " and ".join(sorted(candidate.distribution for candidate in best))
        msg = f"the {_kind(group)} {name!r} {best[0].version} is offered by {sources}; uninstall one of them"
        raise PluginError(msg)
    return best[0]


def _best(named: list[Candidate], constraint: str | None) -> list[Candidate]:
    """Those of the highest version that fits; of a pre-release only if nothing else does (PEP 440)."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # slow to import, and rarely needed
    from packaging.version import InvalidVersion, Version

    try:
        specifier = SpecifierSet(constraint or "")
    except InvalidSpecifier as e:
        msg = f"{constraint!r} is not a version constraint such as '>= 0.2' or '>= 0.2, < 1'"
        raise ValueError(msg) from e
    versions: dict[Version, list[Candidate]] = {}
    for candidate in named:
        with contextlib.suppress(InvalidVersion):  # not by any rule; it costs the others nothing
            versions.setdefault(Version(candidate.version), []).append(candidate)
    fitting = [version for version in versions if specifier.contains(version, prereleases=True)]
    final = [version for version in fitting if not version.is_prerelease]
    highest = max(final or fitting, default=None)
    return [] if highest is None else versions[highest]


def _missing(installed: list[Candidate], group: str, name: str) -> str:
    names = ", ".join(sorted({candidate.name for candidate in installed})) or "none"
    message = f"no {_kind(group)} {name!r}; installed: {names}"
    if group == LAUNCHERS:
        known = _LAUNCHER_DISTRIBUTION if name.lower() in _KNOWN_LAUNCHERS else None
    else:
        known = KNOWN_DISTRIBUTIONS.get(name.lower())
    return f"{message}; try: pip install {known}" if known else message


def _kind(group: str) -> str:
    return group.rpartition(".")[2].removesuffix("s")

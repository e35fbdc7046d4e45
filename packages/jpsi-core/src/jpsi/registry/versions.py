"""Chooses among the candidates of one name by version, and checks what they require."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from jpsi.document import did_you_mean
from jpsi.model import PluginError
from jpsi.registry.candidate import BARS, ENGINES, EXECUTORS, FAKES, LAUNCHERS, TRANSPORTS, Candidate, kind
from jpsi.registry.metadata import canonical, install_command

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

# The distributions of this project, with the names of their plugins.
_DISTRIBUTIONS = {
    "jpsi-engine": {ENGINES: "batch", EXECUTORS: "local", LAUNCHERS: "single"},
    "jpsi-slurm": {EXECUTORS: "slurm", FAKES: "slurm"},
    "jpsi-pbs": {EXECUTORS: "pbs pbspro openpbs torque pbs_classic", FAKES: "pbs torque"},
    "jpsi-lsf": {EXECUTORS: "lsf", FAKES: "lsf volclava"},
    "jpsi-flux": {EXECUTORS: "flux", FAKES: "flux"},
    "jpsi-gridengine": {EXECUTORS: "gridengine sge", FAKES: "gridengine"},
    "jpsi-oar": {EXECUTORS: "oar", FAKES: "oar"},
    "jpsi-pilot": {EXECUTORS: "pilot"},
    "jpsi-launchers": {LAUNCHERS: "multiple mpirun mpiexec srun jsrun aprun flux script"},
    "jpsi-cli": {BARS: "progress"},
    "jpsi-ssh": {TRANSPORTS: "ssh"},
}
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_RELEASE = re.compile(r"\d+(\.\d+)*", re.ASCII)
_BOUND = re.compile(rf"(>=|<)\s*({_RELEASE.pattern})", re.ASCII)
#: A name with lower and upper bounds, as jpsi's own distributions have them: `jpsi-core>=0.2,<0.3`.
_PLAIN = re.compile(rf"{_NAME.pattern}\s*{_BOUND.pattern}(\s*,\s*{_BOUND.pattern})*", re.ASCII)
# Versions that can be validated without the parser; there are others (PEP 440).
_PLAIN_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?", re.ASCII)


def choose(
    installed: Iterable[Candidate],
    group: str,
    name: str,
    constraint: str | None,
    targets: Collection[str] = (),
) -> Candidate:
    """Return the candidate with this name, case ignored, of the highest version that fits the constraint.

    Final releases come before pre-releases (PEP 440); among equal versions, the first in the search order.
    PluginError if there is none, with the configured targets, which the user may have meant, or if one place
    provides several of the same version; ValueError if the constraint is none.
    """
    installed = list(installed)
    named = [candidate for candidate in installed if candidate.is_called(name)]
    if not named:
        raise PluginError(_missing(installed, group, name, targets))
    judged = verdicts(named, constraint)
    best = [candidate for candidate, why_not in judged if why_not is None]
    if not best:
        raise PluginError(_unfit(judged, group, name, constraint))
    if len(best) > 1:
        raise PluginError(conflict(best))
    return best[0]


def known_plugins(group: str) -> dict[str, str]:
    """Return the names of this project's plugins in a group, each with its distribution."""
    found = _DISTRIBUTIONS.items()
    return {name: distribution for distribution, names in found for name in names.get(group, "").split()}


def verdicts(named: Sequence[Candidate], constraint: str | None) -> list[tuple[Candidate, str | None]]:
    """Return the candidates of one name, each with why it is not chosen; None for the chosen one.

    Several None are a conflict.
    """
    usable = [candidate for candidate in named if candidate.refusal is None]
    if len(usable) == 1 and not constraint and _PLAIN_VERSION.fullmatch(usable[0].version):
        return [(candidate, candidate.refusal) for candidate in named]
    versions = {candidate.version: _version(candidate.version) for candidate in usable}
    specifier = _specifier(constraint)
    fitting = {it for it in versions.values() if it is not None and specifier.contains(it, prereleases=True)}
    final = {version for version in fitting if not version.is_prerelease}
    highest = max(final or fitting, default=None)
    first = min((it.place for it in usable if versions[it.version] in {highest} - {None}), default=0)

    def why_not(candidate: Candidate) -> str | None:
        if candidate.refusal is not None:
            return candidate.refusal
        version = versions[candidate.version]
        if version is None:
            return f"its version {candidate.version!r} is not valid by PEP 440"
        if version not in fitting:
            return f"its version is not {constraint}"
        if version != highest:
            return "it is a pre-release" if final and version.is_prerelease else f"{highest} is higher"
        return None if candidate.place == first else "the same version comes earlier on the search path"

    return [(candidate, why_not(candidate)) for candidate in named]


def is_constraint(text: str) -> bool:
    """Return True if `text` is a version constraint.

    >>> is_constraint(">= 0.2, < 1"), is_constraint("newest")
    (True, False)
    """
    try:
        _specifier(text)
    except ValueError:
        return False
    return True


def _missing(installed: Iterable[Candidate], group: str, name: str, targets: Collection[str]) -> str:
    names = sorted({candidate.name for candidate in installed})
    configured = f"; targets: {', '.join(targets)}" if targets else ""
    known = known_plugins(group).get(name.lower())
    advice = f"; try: {install_command(known)}" if known else did_you_mean(name.lower(), [*targets, *names])
    return f"no {kind(group)} {name!r}; installed: {', '.join(names) or 'none'}{configured}{advice}"


def conflict(best: Sequence[Candidate]) -> str:
    """Return the message that several distributions provide the same plugin, and what to do."""
    sources = " and ".join(sorted(candidate.distribution for candidate in best))
    what = f"{kind(best[0].group)} {best[0].name!r} {best[0].version}"
    return f"the {what} is offered by {sources}{best[0].where}; uninstall one of them"


def _unfit(
    judged: Sequence[tuple[Candidate, str | None]], group: str, name: str, constraint: str | None
) -> str:
    wanted = f" with version {constraint}" if constraint else " that can be used"
    found = ", ".join(sorted(candidate.version for candidate, _ in judged))
    refused = [
        f"{candidate.distribution} {candidate.version}{candidate.where}: {why}"
        for candidate, why in judged
        if candidate.refusal is not None or not constraint or "PEP 440" in (why or "")
    ]
    message = f"no {kind(group)} {name!r}{wanted}; installed: {found}"
    return message + "".join(f"\n  - {sentence}" for sentence in refused)


def _version(text: str) -> Version | None:
    from packaging.version import InvalidVersion, Version  # slow to import, and rarely needed

    try:
        return Version(text)
    except InvalidVersion:
        return None


def _specifier(constraint: str | None) -> SpecifierSet:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(constraint or "")
    except InvalidSpecifier as e:
        msg = f"{constraint!r} is not a version constraint such as '>= 0.2' or '>= 0.2, < 1'"
        raise ValueError(msg) from e


def unmet_requirement(requires: Iterable[str], running: Mapping[str, str]) -> str | None:
    """Return why a distribution with these `Requires-Dist` lines refuses a running version, or None.

    The running versions are by canonical name; requirements of other distributions are ignored.

    >>> unmet_requirement(["jpsi-core>=1,<2", "numpy"], {"jpsi-core": "0.9"})
    'it requires jpsi-core>=1,<2, but jpsi-core 0.9 runs'
    """
    for text in requires:
        match = _NAME.match(text)
        name = canonical(match[1]) if match else ""
        if name in running and (why := _unmet(text, name, running[name])):
            return why
    return None


def _plainly_fits(text: str, version: str) -> bool:
    """Return True if a simple requirement is met; avoids its full parser, which is slow to import."""
    if not _PLAIN.fullmatch(text) or not _RELEASE.fullmatch(version):
        return False
    runs = _release(version)
    bounds = ((operator, _release(bound)) for operator, bound, _ in _BOUND.findall(text))
    return all(runs >= bound if operator == ">=" else runs < bound for operator, bound in bounds)


def _release(text: str) -> tuple[int, ...]:
    """Return a release in the form in which PEP 440 compares it: 1.0 is 1."""
    return tuple(int(number) for number in re.sub(r"(\.0+)+\Z", "", text).split("."))


def _unmet(text: str, name: str, version: str) -> str | None:
    if _plainly_fits(text, version):
        return None
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.version import InvalidVersion, Version

    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        return f"its requirement {text!r} cannot be parsed"
    if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
        return None
    try:
        # parsed first: releases of packaging differ in how they treat text that is no version
        fits = wanted.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        fits = True  # a source checkout without a version
    return None if fits else f"it requires {text}, but {name} {version} runs"

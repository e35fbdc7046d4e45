"""Decides whether a plugin's distribution can do with the jpsi-core and the jpsi-engine that run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from jpsi.registry.metadata import canonical

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_RELEASE = re.compile(r"\d+(\.\d+)*", re.ASCII)
#: A name with lower and upper bounds, as jpsi's own distributions have them: `jpsi-core>=0.2,<0.3`.
_PLAIN = re.compile(
    rf"[A-Za-z0-9][A-Za-z0-9._-]*\s*(?P<bounds>(>=|<)\s*{_RELEASE.pattern}(\s*,\s*(>=|<)\s*{_RELEASE.pattern})*)",
    re.ASCII,
)
_BOUND = re.compile(r"(>=|<)\s*([\d.]+)", re.ASCII)


def unmet(requires: Iterable[str], running: Mapping[str, str]) -> str | None:
    """Return why a distribution with these `Requires-Dist` lines refuses what runs; None if it does not.

    Args:
        requires: the lines.
        running: the versions of the distributions that run, by canonical name; others are not looked at.

    >>> unmet(["jpsi-core>=1,<2", "numpy"], {"jpsi-core": "0.9"})
    'it requires jpsi-core>=1,<2, but jpsi-core 0.9 runs'
    """
    for text in requires:
        match = _NAME.match(text)
        name = canonical(match[1]) if match else ""
        if name in running and not _plainly_fits(text, running[name]):
            why = _unmet(text, name, running[name])
            if why is not None:
                return why
    return None


def _plainly_fits(text: str, version: str) -> bool:
    """Return True if a requirement is met for certain; its parser is slow to import, and rarely needed."""
    match = _PLAIN.fullmatch(text)
    if match is None or not _RELEASE.fullmatch(version):
        return False
    runs = _release(version)
    bounds = _BOUND.findall(match["bounds"])
    return all(
        runs >= _release(bound) if operator == ">=" else runs < _release(bound) for operator, bound in bounds
    )


def _release(text: str) -> tuple[int, ...]:
    """Return a release as PEP 440 compares it: 1.0 is 1."""
    numbers = [int(number) for number in text.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _unmet(text: str, name: str, version: str) -> str | None:
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.version import InvalidVersion, Version

    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        return f"its requirement {text!r} cannot be understood"
    if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
        return None
    try:
        # parsed here: what becomes of text that is no version depends on the release of packaging
        fits = wanted.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        fits = True  # a checkout that knows no version of its own
    return None if fits else f"it requires {text}, but {name} {version} runs"

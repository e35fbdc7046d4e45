"""Checks if a plugin's distribution accepts the running versions of jpsi-core and jpsi-engine."""

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
    """Return why a distribution with these `Requires-Dist` lines refuses a running version, or None.

    Args:
        requires: the lines.
        running: the versions of the running distributions, by canonical name; requirements of others are
            ignored.

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
    """Return True if a simple requirement is met; avoids its full parser, which is slow to import."""
    match = _PLAIN.fullmatch(text)
    if match is None or not _RELEASE.fullmatch(version):
        return False
    runs = _release(version)
    bounds = _BOUND.findall(match["bounds"])
    return all(
        runs >= _release(bound) if operator == ">=" else runs < _release(bound) for operator, bound in bounds
    )


def _release(text: str) -> tuple[int, ...]:
    """Return a release in the form in which PEP 440 compares it: 1.0 is 1."""
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
        # parsed first: releases of packaging differ in how they treat text that is no version
        fits = wanted.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        fits = True  # a source checkout without a version
    return None if fits else f"it requires {text}, but {name} {version} runs"

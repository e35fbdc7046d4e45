"""Whether a plugin's distribution can do with the jpsi-core that runs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jpsi.registry.metadata import canonical

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_CORE = "jpsi-core"


def unmet(requires: Iterable[str], core: str | None) -> str | None:
    """Why a distribution with these `Requires-Dist` lines refuses this version of jpsi-core; None if not.

    >>> unmet(["jpsi-core>=1,<2", "numpy"], "0.9")
    'it requires jpsi-core>=1,<2, but jpsi-core 0.9 runs'
    """
    if core is None:
        return None
    return next(filter(None, (_unmet(text, core) for text in requires if _is_of_core(text))), None)


def _is_of_core(text: str) -> bool:
    match = _NAME.match(text)
    return match is not None and canonical(match[1]) == _CORE


def _unmet(text: str, core: str) -> str | None:
    from packaging.requirements import InvalidRequirement, Requirement  # slow to import, and rarely needed
    from packaging.version import InvalidVersion, Version

    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        return f"its requirement {text!r} cannot be understood"
    if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
        return None
    try:
        # parsed here: what becomes of text that is no version depends on the release of packaging
        fits = wanted.specifier.contains(Version(core), prereleases=True)
    except InvalidVersion:
        fits = True  # a checkout that knows no version of its own
    return None if fits else f"it requires {text}, but jpsi-core {core} runs"

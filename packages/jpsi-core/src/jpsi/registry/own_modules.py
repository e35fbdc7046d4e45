"""Finds the modules that a plugin's distribution has installed into its directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi.registry.candidate import Candidate


def own_modules(candidate: Candidate) -> set[str]:
    """Return the top modules of a candidate's distribution, which may import each other only relatively.

    They are packages or single modules; of a namespace that several distributions share, the part that
    contains the plugin.
    """
    origin = Path(candidate.origin or "")
    own = set()
    names = candidate.value.partition(":")[0].strip().split(".")
    for length in range(1, len(names) + 1):
        path = origin.joinpath(*names[:length])
        if path.joinpath("__init__.py").exists() or not path.is_dir():
            own.add(".".join(names[:length]))
            break
    for line in _record(candidate):
        top, _, rest = line.partition("/")
        if rest == "__init__.py":
            own.add(top)
        elif not rest and top.endswith(".py"):
            own.add(top.removesuffix(".py"))
    return own


def _record(candidate: Candidate) -> list[str]:
    """Return the files of a distribution, as its installer recorded them."""
    try:
        text = Path(candidate.folder, "RECORD").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line.partition(",")[0] for line in text.splitlines()]

"""Finds probable mistakes in the names of custom attributes: attributes that no system reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from jpsi.registry.candidate import EXECUTORS, LAUNCHERS
from jpsi.registry.versions import KNOWN_DISTRIBUTIONS

if TYPE_CHECKING:
    from jpsi.registry.discovery import Plugins

# Prefixes for parts of a job document that jpsi keeps and does not read.
_OF_DOCUMENTS = ("job", "count")


def systems(plugins: Plugins) -> frozenset[str]:
    """Return the systems that custom attributes may be for: the installed and the known ones."""
    groups = (EXECUTORS, LAUNCHERS)
    there = frozenset(it.name.lower() for it in plugins.candidates if it.group in groups)
    return there.union(_OF_DOCUMENTS, *(KNOWN_DISTRIBUTIONS.get(group, {}) for group in groups))


def doubts(names: Iterable[str], known: frozenset[str], executor: str) -> Iterator[str]:
    """Yield a sentence for each custom attribute whose name is probably mistyped.

    Attributes for another known system, or with a prefix of a site's own, are not reported.

    >>> list(doubts(["slurm.qos", "slrum.qos", "qos", "ours.x"], frozenset({"slurm"}), "slurm"))
    ["nobody reads the custom attribute 'slrum.qos'; did you mean 'slurm.qos'?", \
"nobody reads the custom attribute 'qos'; did you mean 'slurm.qos'?"]
    """
    for name in names:
        system, dot, option = name.partition(".")
        if not dot:
            meant: str | None = f"{executor}.{name}"
        elif system.lower() in known:
            meant = None
        else:
            close = _closest(system.lower(), known)
            meant = None if close is None else f"{close}.{option}"
        if meant is not None:
            yield f"nobody reads the custom attribute {name!r}; did you mean {meant!r}?"


def _closest(word: str, known: Iterable[str]) -> str | None:
    import difflib  # most programs never need it

    return next(iter(difflib.get_close_matches(word, known, n=1)), None)

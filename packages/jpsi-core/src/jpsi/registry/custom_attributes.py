"""Finds probable mistakes in the names of custom attributes: attributes that no system reads."""

from __future__ import annotations

import difflib
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
    installed = {it.name.lower() for it in plugins.candidates if it.group in {EXECUTORS, LAUNCHERS}}
    return frozenset(
        {*installed, *KNOWN_DISTRIBUTIONS[EXECUTORS], *KNOWN_DISTRIBUTIONS[LAUNCHERS], *_OF_DOCUMENTS}
    )


def doubts(names: Iterable[str], known: frozenset[str], executor: str) -> Iterator[str]:
    """Yield a sentence for each custom attribute whose name is probably mistyped.

    Attributes for another known system, or with a prefix of a site's own, are not reported.

    >>> list(doubts(["slurm.qos", "slrum.qos", "qos", "ours.x"], frozenset({"slurm"}), "slurm"))
    ["no plugin reads the custom attribute 'slrum.qos'; did you mean 'slurm.qos'?", \
"no plugin reads the custom attribute 'qos'; did you mean 'slurm.qos'?"]
    """
    for name in names:
        system, dot, option = name.partition(".")
        if not dot:
            meant = [f"{executor}.{name}"]
        elif system.lower() in known:
            meant = []
        else:
            meant = [f"{it}.{option}" for it in difflib.get_close_matches(system.lower(), known, n=1)]
        yield from (f"no plugin reads the custom attribute {name!r}; did you mean {it!r}?" for it in meant)

"""What a group needs to use several nodes: a pilot with an engine, and which of them are here."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from importlib.metadata import entry_points

from .nodes import is_spread, spanning
from .planned import Kind, Plan

#: The engines of jpsi-pilot: one runs a task on one node, the other also on several.
DASK, FLUX = "dask", "flux"
_NEEDED = {DASK: ("distributed", "cryptography"), FLUX: ("jpsi_flux", "cryptography")}


def usable() -> frozenset[str]:
    """The engines that can be used here."""
    found = {it.name for it in entry_points(group="jpsi.pilot_engines")} & _NEEDED.keys()
    if shutil.which("flux") is None:
        found.discard(FLUX)
    return frozenset(it for it in found if all(importlib.util.find_spec(name) for name in _NEEDED[it]))


def shortcomings(plan: Plan, engines: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    """Why groups of a plan cannot run by these engines: the group, what is wrong, and what to do."""
    for group in plan.entries:
        if group.kind is not Kind.ALLOCATION or not is_spread(group) or group.shape is None:
            continue
        wide = list(spanning(group))
        if wide and FLUX not in engines:
            names = ", ".join(it.id for it in wide)
            says = f"has tasks that need several of its nodes each, for which Flux is not here: {names}"
            yield group.id, says, "ask for one node, or move them to the top, or install jpsi-pilot and Flux"
        elif not engines:
            says = f"has {group.shape.nodes} nodes, which its tasks can use only by jpsi-pilot and dask"
            yield group.id, says, "try: pip install 'jpsi-pilot[dask]'"

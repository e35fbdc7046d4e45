"""What a group needs to use several nodes: a pilot with an engine, and which of them are here."""

from __future__ import annotations

from collections.abc import Iterator

from .nodes import is_spread, spanning
from .planned import Kind, Plan

#: The engines of jpsi-pilot: one runs a task on one node, the other also on several.
DASK, FLUX = "dask", "flux"


def usable() -> frozenset[str]:
    """The engines that can be used here; none without jpsi-pilot."""
    try:
        from jpsi_pilot import engines  # noqa: PLC0415  it may not be installed
    except ImportError:
        return frozenset()
    return engines.usable()


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

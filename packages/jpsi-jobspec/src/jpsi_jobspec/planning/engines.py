"""Engines of pilots, which a group needs to use several nodes, and which of them are installed.

A group of several nodes that no installed engine could run is refused by it before the run begins.
"""

from __future__ import annotations

from collections.abc import Iterator

from jpsi import Launcher
from jpsi.plugin import install_command

from .allocations import is_spread, multinode_entries
from .plan import Entry, Kind, Plan
from .site import query_system

#: The engines of jpsi-pilot. Flux starts the processes of a task on several nodes itself, dask by a launcher.
DASK, FLUX = "dask", "flux"
#: The launcher for dask: it reaches nodes that the pilot has chosen, from any of them.
SRUN = "srun"


def install_hint() -> str:
    """Return which command installs all that groups of several nodes need."""
    return f"try: {install_command('jpsi-jobspec[groups]')}"


def usable_engines() -> frozenset[str]:
    """Return the engines that can be used on this machine; none without jpsi-pilot."""
    try:
        from jpsi_pilot import engines  # noqa: PLC0415  it may not be installed
    except ImportError:
        return frozenset()
    return engines.usable_engines()


def launcher_of(target: str) -> str:
    """Return the launcher that reaches the nodes of a target's jobs; empty if it is not installed."""
    return query_system(target, lambda it: Launcher.get_instance(it.capabilities.default_launcher).name, "")


def engine_for(allocation: Entry, engines: frozenset[str]) -> str:
    """Return the engine that runs the tasks of a group on several nodes."""
    needs_flux = FLUX in engines and multinode_entries(allocation)
    return FLUX if needs_flux or DASK not in engines else DASK


def multinode_groups(plan: Plan) -> list[Entry]:
    """Return the groups that ask for several nodes."""
    return [it for it in plan.entries if it.kind is Kind.ALLOCATION and is_spread(it)]


def find_unsupported_groups(
    plan: Plan, engines: frozenset[str], launcher: str
) -> Iterator[tuple[str, str, str]]:
    """Yield why groups of a plan cannot run: the group, what is wrong, and what to do.

    Args:
        plan: of a document.
        engines: those that can be used.
        launcher: reaches the nodes of an allocation; empty if it is not installed.
    """
    for group in multinode_groups(plan):
        names = ", ".join(it.id for it in multinode_entries(group))
        if not engines or not launcher:
            nodes = None if group.shape is None else group.shape.nodes
            needed = "its tasks can use only by jpsi-pilot, dask and jpsi-launchers"
            yield group.id, f"has {nodes} nodes, which {needed}", install_hint()
        elif names and engine_for(group, engines) == DASK and launcher != SRUN:
            message = (
                f"has tasks that need several of its nodes each, which {launcher} does not start: {names}"
            )
            hint = "ask for one node, or move them to the top, or install jpsi-pilot and Flux"
            yield group.id, message, hint

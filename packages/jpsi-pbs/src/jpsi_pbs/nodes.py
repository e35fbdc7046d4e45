"""Writes and reads the resources of jobs for Torque: `-l nodes` and `mem`; reads `-l procs`.

Only the executor `torque` uses it; the executor `pbs` has `chunks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from jpsi.plugin import JobSpec, ResourceSpecV1, ShellLine, components, units
from jpsi.plugin.kit import Draft, JobRequest, Option, count_option, read_amount, read_count, read_exclusive

from .custom_options import system_options
from .layout import NOT_EXPRESSIBLE, Layout, Part, lay_out, merge_kinds, set_resources, split_count
from .sizes import UNITS

_KIBIBYTE = 1 << 10
# The options by which users request nodes themselves, or cores on any nodes.
_NODES, _PROCS = "l.nodes", "l.procs"

#: The custom attributes of the executor `torque`.
CUSTOM = system_options(("torque", "pbs_classic"))


class _Node(NamedTuple):
    """The processes of a job on one of its nodes, and the resources of each."""

    processes: int
    cores: int
    gpus: int


def _write_nodes(request: JobRequest) -> str | None:
    """Return the nodes, with a virtual processor per core; "Requesting Resources" in the Torque manual.

    Processes without a layout are not `procs`, which only Moab and Maui can place: pbs_sched of Torque 6.1.3
    never starts such a job. All nodes are alike: Torque 6.1.3 may place several kinds, as in
    `1:ppn=2+1:ppn=1`, on one host, where the job never starts (src/server/node_manager.c,
    select_from_all_nodes).
    """
    if _PROCS in CUSTOM.of(request.spec):
        return None
    nodes = _nodes(_spread_layouts(request.spec, request.config.cores_per_node))
    gpus = max(it.processes * it.gpus for it in nodes)
    return f"{len(nodes)}:ppn={_cores_per_node(nodes)}{f':gpus={gpus}' if gpus else ''}"


def _cores_per_node(nodes: Sequence[_Node]) -> int:
    return max(it.processes * it.cores for it in nodes)


def _nodes(layouts: Sequence[Layout]) -> list[_Node]:
    """Return the nodes of a job in the order of the ranks.

    Torque cannot choose the number of nodes: it is one, or follows from `cores_per_node`.
    """
    return [
        _Node(part.processes, it.cpu_cores_per_process or 1, it.gpu_cores_per_process or 0)
        for it, parts in layouts
        for part in parts or [Part(1, it.computed_process_count)]
        for _ in range(part.nodes)
    ]


def _spread_layouts(spec: JobSpec, cores_per_node: int | None) -> list[Layout]:
    """Return the components, spread over as many nodes of `cores_per_node` cores as they need."""
    return [it if cores_per_node is None else _spread_layout(it, cores_per_node) for it in lay_out(spec)]


def _spread_layout(layout: Layout, cores_per_node: int) -> Layout:
    per_node = max(1, cores_per_node // (layout.requested.cpu_cores_per_process or 1))
    if layout.parts is not None or layout.requested.computed_process_count <= per_node:
        return layout
    full, remainder = divmod(layout.requested.computed_process_count, per_node)
    return Layout(layout.requested, [Part(full, per_node), *([Part(1, remainder)] if remainder else [])])


def _write_memory(request: JobRequest) -> str | None:
    """Return the memory of the whole job, as Torque cannot reserve memory for a part of it.

    Raises:
        ValueError: only some components say how much memory they need.
    """
    amounts = [it.memory for it in components(request.spec.resources)]
    known = [it for it in amounts if it is not None]
    if known and len(known) < len(amounts):
        raise ValueError(
            f"resources.components[{amounts.index(None)}].memory: Torque has one memory limit for the whole "
            "job; set it for every component, or for none"
        )
    return f"{units(sum(known), _KIBIBYTE)}kb" if known else None


def read_memory(draft: Draft, value: str) -> None:
    """Read the memory of the whole job."""
    draft.resources.memory = read_amount(value, UNITS)


def read_nodes(draft: Draft, value: str) -> None:
    """Read `-l nodes`: nodes of one kind or of several; "Requesting Resources" in the Torque manual."""
    kinds, resources = merge_kinds([_parse_nodes(text) for text in value.split("+")]), draft.resources
    if len(kinds) > 1 and (resources.process_count, resources.cpu_cores_per_process) != (None, None):
        raise ValueError(NOT_EXPRESSIBLE)
    if len(kinds) == 1:
        kinds[0].process_count = kinds[0].process_count or resources.process_count
        kinds[0].cpu_cores_per_process = resources.cpu_cores_per_process
    for kind, share in zip(kinds, _shares(resources.memory, kinds), strict=True):
        kind.memory = share
    set_resources(draft, kinds)


def _parse_nodes(text: str) -> ResourceSpecV1:
    """Parse one term of `nodes`: a number of identical nodes."""
    nodes, resources = split_count(text)
    processes = read_count(resources.pop("ppn", "1"))
    gpus, remainder = divmod(int(resources.pop("gpus", "0")), processes)
    if resources or remainder:
        raise ValueError(NOT_EXPRESSIBLE)
    return ResourceSpecV1(node_count=nodes, processes_per_node=processes, gpu_cores_per_process=gpus or None)


def _shares(memory: int | None, kinds: Sequence[ResourceSpecV1]) -> Iterator[int | None]:
    """Yield each kind's share of the whole job's memory, proportional to its processes."""
    total, start = sum(it.computed_process_count for it in kinds), 0
    for kind in kinds:
        end = start + kind.computed_process_count
        yield None if memory is None else memory * end // total - memory * start // total
        start = end


def process_lines(spec: JobSpec, cores_per_node: int | None) -> ShellLine:
    """Return shell that picks one line per process from the node file, which has one line per core."""
    nodes = _nodes(_spread_layouts(spec, cores_per_node))
    core_counts = [
        (it.computed_process_count, it.cpu_cores_per_process or 1) for it in components(spec.resources)
    ]
    custom = CUSTOM.of(spec)
    if _PROCS in custom and core_counts[0][1] == len(core_counts) == 1:
        # the file has one line more if the queue has a default for nodes, which Torque adds to procs
        awk = f"NR <= {core_counts[0][0]}"
    elif len(set(nodes)) > 1 and not {_NODES, _PROCS} & custom.keys():
        awk = _awk_of_nodes(nodes)
    elif len(core_counts) == 1:
        awk = f"NR % {core_counts[0][1]} == 0"
    else:
        awk = _awk_rules(core_counts)
    return ShellLine(f"awk '{awk}' \"$PBS_NODEFILE\"")


def _awk_of_nodes(nodes: Sequence[_Node]) -> str:
    """Return awk that picks the lines of the processes from those of nodes that are alike.

    >>> _awk_of_nodes([_Node(2, 2, 0), _Node(1, 1, 0)])
    '{ n = (NR - 1) % 4 + 1 } NR <= 4 { if (n <= 4 && n % 2 == 0) print; next } \
NR <= 8 { if (n <= 1 && n % 1 == 0) print; next }'
    """
    size, rules = _cores_per_node(nodes), []
    for number, it in enumerate(nodes, 1):
        if number < len(nodes) and nodes[number] == it:
            continue
        picked = f"n <= {it.processes * it.cores} && n % {it.cores} == 0"
        rules.append(f"NR <= {number * size} {{ if ({picked}) print; next }}")
    return " ".join([f"{{ n = (NR - 1) % {size} + 1 }}", *rules])


def _awk_rules(core_counts: Sequence[tuple[int, int]]) -> str:
    """Return awk that picks one line per process from the lines per core, component by component.

    It is for nodes that the user has requested by a custom attribute.

    >>> _awk_rules([(1, 4), (2, 1)])
    'NR <= 4 { if ((NR - 0) % 4 == 0) print; next } NR <= 6 { if ((NR - 4) % 1 == 0) print; next }'

    Args:
        core_counts: the number of processes of each component, and the cores per process.
    """
    rules, start = [], 0
    for processes, cores in core_counts:
        end = start + processes * cores
        rules.append(f"NR <= {end} {{ if ((NR - {start}) % {cores} == 0) print; next }}")
        start = end
    return " ".join(rules)


def _report_select(draft: Draft, value: str) -> None:
    draft.lose("l.select", value, "it is for PBS, and not for Torque")


#: The options for resources, in the order in which they are written and read.
RESOURCE_OPTIONS: Mapping[str, Option] = {
    # it may have nodes of several kinds, which the other readers cannot handle
    _NODES: Option(_write_nodes, read_nodes, is_read_last=True),
    _PROCS: count_option("process_count", lambda _: None),
    "l.mem": Option(_write_memory, read_memory),
    "n": Option(
        lambda it: any(kind.exclusive_node_use for kind in components(it.spec.resources)), read_exclusive
    ),
    "l.select": Option(None, _report_select),
}

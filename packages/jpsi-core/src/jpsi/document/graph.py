"""Converts the resource graph (nodes, slots, cores) of a job document to a ResourceSpecV1, and back.

    slot graph   slot > core [+ gpu]          `count` slots, on nodes of the batch system's choice
    node graph   node > slot > core [+ gpu]   `count` nodes with as many slots on each

(J/PSI Appendix A, Resources and Tasks.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from jpsi.document.values import Problems, Value, did_you_mean, shown
from jpsi.model import ResourceSpecV1

#: The label of the slot in written documents.
LABEL = "task"
#: The keys of tasks.count that have a meaning.
COUNT_KEYS = ("per_slot", "total")


def write_graph(resources: ResourceSpecV1) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the `resources` and the `tasks[0].count` for valid resources.

    There is one slot for each process, so that only an uneven last node needs a total.
    """
    # J/PSI A: "a slot can have an out edge to a core. If a slot has an out edge to a core, it can also,
    # optionally, have an out edge to a gpu as well."
    inside = [{"type": "core", "count": resources.cpu_cores_per_process or 1}]
    if resources.gpu_cores_per_process:
        inside.append({"type": "gpu", "count": resources.gpu_cores_per_process})
    slot = {"type": "slot", "label": LABEL, "count": resources.computed_process_count, "with": inside}
    if resources.node_count is None and resources.processes_per_node is None:
        return [slot], {"per_slot": 1}
    nodes, per_node = resources.computed_node_count, resources.computed_processes_per_node
    node = {"type": "node", "count": nodes, "with": [{**slot, "count": per_node}]}
    total = resources.computed_process_count
    return [node], {"per_slot": 1} if total == nodes * per_node else {"total": total}


def derive(resources: object, count: object) -> ResourceSpecV1:
    """Return the resources that `read_graph` reads from the output of `write_graph`."""
    document = Value(None, (), Problems(""))
    found = read_graph(
        document.child("resources", resources), document.child("slot", LABEL), document.child("count", count)
    )
    if found is None:
        raise document.problems.error()
    return found


def read_graph(resources: Value, slot: Value, count: Value) -> ResourceSpecV1 | None:
    """Return the resources of a document from its `resources`, `tasks[0].slot` and `tasks[0].count`.

    Returns None if they contain a problem.
    """
    # J/PSI A: "The resources list MUST contain exactly one element, which MUST be either node or slot."
    root = _vertex(resources.only("vertex, a node or a slot"), ("node", "slot"))
    _check_labels(_all(root), slot)
    # J/PSI A: "a dictionary supporting at least the keys per_slot and total, with other keys reserved"
    counts = {key: value.integer(1) for key, value in count.mapping().items() if key in COUNT_KEYS}
    if not counts:
        count.wrong("must have per_slot or total")
    if resources.is_wrong or count.is_wrong:
        return None
    return _resources(root, counts, count)


@attrs.frozen(slots=True)
class _Vertex:
    at: Value
    type: str
    count: int
    label: str | None
    inside: list[_Vertex]


#: The types that a vertex may contain; a node and a slot must contain the first.
_INSIDE: Mapping[str, Sequence[str]] = {
    "node": ("slot",),
    "slot": ("core", "gpu"),
    "core": (),
    "gpu": (),
    "unknown": ("node", "slot", "core", "gpu"),
}


def _vertex(at: Value, types: Sequence[str]) -> _Vertex:
    # J/PSI A: "A resource vertex SHALL contain only the following keys"
    fields = at.fields(("type", "count"), ("with", "label"))
    type_ = fields["type"].one_of(types)
    if type_ != fields["type"].raw:
        type_ = "unknown"
    edge = fields.get("with", at.child("with"))
    inside: list[_Vertex] = []
    if "with" in fields and not _INSIDE[type_]:
        edge.wrong(f"is not allowed here: a {type_} cannot contain anything")
    elif "with" in fields:
        # J/PSI A: "the value of the with key SHALL be a dictionary"; a slot with core and gpu needs a list.
        contents = [edge] if isinstance(edge.raw, dict) else edge.items()
        inside = [_vertex(inner, _INSIDE[type_]) for inner in contents]
    label = fields["label"].text() if "label" in fields else None
    # J/PSI A: "label SHALL be mandatory in resource vertices of type slot."
    if type_ == "slot" and label is None:
        at.child("label").wrong("is missing; a slot needs one")
    found = [inner.type for inner in inside]
    # J/PSI A: "the resource graph MUST contain the core type"
    if type_ in ("node", "slot") and not {_INSIDE[type_][0], "unknown"} & {*found}:
        edge.wrong(f"must contain a {_INSIDE[type_][0]}")
    for index, inner in enumerate(inside):
        if inner.type in found[:index] and inner.type != "unknown":
            inner.at.wrong(f"is one too many: there can be one {inner.type} here")
    return _Vertex(at, type_, fields["count"].integer(1), label, inside)


def _all(vertex: _Vertex) -> list[_Vertex]:
    return [vertex, *(it for inner in vertex.inside for it in _all(inner))]


def _check_labels(vertices: Sequence[_Vertex], slot: Value) -> None:
    types: dict[str, str] = {}
    for vertex in vertices:
        # J/PSI A: "each label in the current job specification must be unique"
        if vertex.label in types:
            vertex.at.child("label").wrong(f"must be unique, but a {types[vertex.label]} has it, too")
        if vertex.label is not None:
            types.setdefault(vertex.label, vertex.type)
    slots = [vertex.at.child("label") for vertex in vertices if vertex.type == "slot"]
    known = slots and not any(label.is_wrong for label in slots)
    name = slot.text()
    # J/PSI A: "The value of the slot key SHALL match a label of a resource vertex of type slot."
    if types.get(name) != "slot" and known:
        labels = [label for label, type_ in types.items() if type_ == "slot"]
        hint = did_you_mean(name, labels) or f"; there is {', '.join(map(shown, labels))}"
        slot.wrong(f"must be the label of a slot, not {shown(name)}{hint}")


def _resources(root: _Vertex, counts: Mapping[str, int], at: Value) -> ResourceSpecV1 | None:
    nodes = root.count if root.type == "node" else None
    slot = root if nodes is None else root.inside[0]
    slots = slot.count * (nodes or 1)
    total = counts.get("total", counts.get("per_slot", 0) * slots)
    # J/PSI A: "The number of tasks executed per task slot SHALL be a function of the number of resource
    # slots and total number of tasks requested to execute."
    per_slot = -(-total // slots)
    if counts.get("per_slot", per_slot) != per_slot:
        at.wrong(f"contradicts itself: {total} tasks on {slots} slots are not {counts['per_slot']} per slot")
    shares = {}
    for inner in slot.inside:
        shares[inner.type], rest = divmod(inner.count, per_slot)
        if rest:
            what = f"{per_slot} tasks in a slot do not get equal parts of its {inner.count} {inner.type}s"
            at.wrong(f"cannot be expressed: {what}")
    resources = _counts(nodes, slot.count * per_slot, total)
    if resources is None:
        where = "" if nodes is None else f" on {nodes} nodes"
        at.wrong(f"cannot be expressed: {total} tasks do not fill {slots} slots{where}")
    if resources is None or at.is_wrong:
        return None
    resources.cpu_cores_per_process = shares["core"]
    resources.gpu_cores_per_process = shares.get("gpu")
    return resources


def _counts(nodes: int | None, each: int, total: int) -> ResourceSpecV1 | None:
    """Return the counts for `total` processes, at most `each` of them on a node (in all, without nodes)."""
    if nodes is None:
        return ResourceSpecV1(process_count=total) if total == each else None
    if total == nodes * each:
        return ResourceSpecV1(node_count=nodes, processes_per_node=each)
    # All nodes but the last are full.
    if -(-total // each) == nodes:
        return ResourceSpecV1.uneven(process_count=total, processes_per_node=each)
    # The processes are spread as evenly as possible.
    if total >= nodes and -(-total // nodes) == each:
        return ResourceSpecV1.uneven(node_count=nodes, process_count=total)
    return None

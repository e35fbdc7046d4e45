"""Plans as text for a terminal, and as JSON for programs. Pure.

`jpsi workflow plan` and `graph` print them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from ..document import Shape, as_one_kind
from ..planning import After, Entry, Plan

#: The colours of states: on a terminal, and of a box.
COLOURS: Mapping[str, tuple[str, str]] = {
    "COMPLETED": ("green", "#c9e7c9"),
    "FAILED": ("red", "#f2c4c0"),
    "CANCELED": ("yellow", "#f4e3b2"),
    "ACTIVE": ("cyan", "#c4dcf2"),
    "QUEUED": ("blue", "#dcdcf4"),
}


def render_plan(plan: Plan, *, is_explained: bool = False) -> Iterator[str]:
    """Yield a line for each entry that is submitted or runs inside, with reasons if `is_explained`."""
    jobs = "1 job" if plan.requests == 1 else f"{plan.requests} jobs"
    yield f"{plan.source} on {plan.target}: {jobs}"
    for entry in plan.entries:
        yield from _entry_lines(entry, 1, is_explained=is_explained)


def _entry_lines(entry: Entry, depth: int, *, is_explained: bool) -> Iterator[str]:
    indent = "  " * depth
    parts = [f"{indent}{entry.name}: {entry.label}"]
    if entry.shape is not None:
        parts.append(str(entry.shape))
    if entry.after:
        parts.append(f"after {', '.join(map(_render_dependency, entry.after))}")
    yield ", ".join(parts)
    if is_explained:
        for sentence in entry.why:
            yield f"{indent}  because {sentence}"
        for name, shape in entry.others:
            yield f"{indent}  or {name}: {shape}"
    for sentence in entry.files:
        yield f"{indent}  file: {sentence}"
    for sentence in entry.lost:
        yield f"{indent}  note: {sentence}"
    for inner in entry.inside:
        yield from _entry_lines(inner, depth + 1, is_explained=is_explained)


def _render_dependency(after: After) -> str:
    name = after.id.rpartition("/")[2]
    return name if after.when == "ok" else f"{name} ({after.when})"


def render_tree(plan: Plan, states: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield the dependency graph as lines: below each entry those inside, beside it its dependencies."""
    states = states or {}
    for entry in plan.entries:
        yield from _branch(entry, "", states)


def _branch(entry: Entry, indent: str, states: Mapping[str, str]) -> Iterator[str]:
    state = states.get(entry.id, "")
    after = f"  <- {', '.join(map(_render_dependency, entry.after))}" if entry.after else ""
    mark = f"  {state}" if state else ""
    yield f"{indent}{entry.name} [{entry.label}]{mark}{after}"
    for inner in entry.inside:
        yield from _branch(inner, f"{indent}   ", states)


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """Return a plan as values of JSON."""
    return {
        "source": plan.source,
        "target": plan.target,
        "entries": [_entry_to_dict(it) for it in plan.entries],
    }


def _entry_to_dict(entry: Entry) -> dict[str, Any]:
    attributes = entry.attributes
    return {
        "id": entry.id,
        "kind": entry.kind.value,
        "command": list(entry.command),
        "replicas": entry.replicas,
        "resources": entry.resources,
        "shape": None if entry.shape is None else _shape_to_dict(entry.shape),
        "after": [attrs.asdict(it) for it in entry.after],
        "when": entry.when.value,
        "duration": None if attributes.duration is None else attributes.duration.total_seconds(),
        "environment": dict(attributes.environment),
        "cwd": attributes.cwd,
        "options": {**entry.constraints, **attributes.options},
        "job": dict(attributes.job),
        "why": list(entry.why),
        "lost": list(entry.lost),
        "files": list(entry.files),
        "inside": [_entry_to_dict(it) for it in entry.inside],
    }


def _shape_to_dict(shape: Shape) -> dict[str, Any]:
    if shape.pieces:
        return {"components": [_shape_to_dict(it) for it in shape.pieces]}
    return {key: it for key, it in attrs.asdict(as_one_kind(shape)).items() if it is not None}

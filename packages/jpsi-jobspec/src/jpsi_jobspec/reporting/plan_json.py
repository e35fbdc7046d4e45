"""Plans as JSON, for programs. Pure."""

from __future__ import annotations

from typing import Any

import attrs

from ..document import Shape, as_one_kind
from ..planning import Entry, Plan


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
        "asks": None if entry.shape is None else _shape_to_dict(entry.shape),
        "after": [attrs.asdict(it) for it in entry.after],
        "when": entry.when.value,
        "duration": None if attributes.duration is None else attributes.duration.total_seconds(),
        "environment": dict(attributes.environment),
        "cwd": attributes.cwd,
        "options": {**entry.constraints, **attributes.options},
        "why": list(entry.why),
        "lost": list(entry.lost),
        "files": list(entry.files),
        "inside": [_entry_to_dict(it) for it in entry.inside],
    }


def _shape_to_dict(shape: Shape) -> dict[str, Any]:
    if shape.pieces:
        return {"components": [_shape_to_dict(it) for it in shape.pieces]}
    return {key: it for key, it in attrs.asdict(as_one_kind(shape)).items() if it is not None}

"""The identity of a computation: a canonical, versioned text of all that it means, and its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from ..model import Computation, Purity, Topology, canonical

#: Of the form of pre-images. A member at its default is left out, so that a new one changes nothing.
VERSION = 1

#: What a mount is once nothing in it floats, by target.
Resolved = Mapping[str, Mapping[str, Any]]


def preimage(computation: Computation, mounts: Resolved) -> str:
    """All that a computation means: equal for two of them exactly when they mean the same."""
    is_exact = computation.topology is Topology.EXACT
    members = {
        "command": list(computation.command),
        "environment": dict(computation.environment),
        "container_image": computation.image_digest,
        "cwd": computation.cwd,
        "mounts": {target: dict(mount) for target, mount in mounts.items()},
        "output_path": computation.output_path,
        "output_globs": list(computation.output_globs),
        "processes": computation.processes if is_exact else "any",
        "threads": computation.threads if is_exact else "any",
        "purity": computation.purity.value,
    }
    kept = {name: value for name, value in members.items() if value != _DEFAULTS.get(name)}
    return canonical({"v": VERSION, **kept})


_DEFAULTS: Mapping[str, Any] = {
    "environment": {},
    "container_image": None,
    "cwd": "/",
    "mounts": {},
    "output_path": None,
    "output_globs": [],
    "processes": 1,
    "threads": 1,
    "purity": Purity.DECLARED.value,
}


def fingerprint(text: str) -> str:
    """The digest of a pre-image, by which equal computations find each other."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def recalled(text: str) -> dict[str, Any]:
    """Every member of a pre-image, those at their defaults included."""
    members: dict[str, Any] = {**_DEFAULTS, **json.loads(text)}
    return members


@attrs.frozen(slots=True)
class Difference:
    """One place in which two pre-images differ."""

    #: Where, such as `environment.LC_ALL`.
    where: str
    #: What the one says, as JSON, or `nothing`.
    wanted: str
    #: What the other says, likewise.
    found: str

    def __str__(self) -> str:
        return f"{self.where}: {self.wanted}, there {self.found}"


def differences(wanted: str, found: str) -> list[Difference]:
    """Where two pre-images differ, member by member."""
    return list(_differences("", recalled(wanted), recalled(found)))


_NOTHING = object()


def _differences(where: str, wanted: Any, found: Any) -> Iterator[Difference]:  # noqa: ANN401  values of JSON
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted({*wanted, *found}):
            inner = f"{where}.{key}" if where else key
            yield from _differences(inner, wanted.get(key, _NOTHING), found.get(key, _NOTHING))
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from _differences(f"{where}[{index}]", one, other)
    elif wanted != found:
        yield Difference(where, _told(wanted), _told(found))


def _told(value: Any) -> str:  # noqa: ANN401  a value of JSON, or none
    return "nothing" if value is _NOTHING else canonical(value)

"""Writes the canonical key of a computation, a versioned text; its digest finds equal computations.

An execution holds the key (`preimage`) and its digest (`fingerprint`). The key also tells what a job has to
run, and where two computations differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from ..files import digest_of
from ..model import Computation, Purity, Topology, canonical

#: The version of the format. Members at their defaults are left out, so that new ones change no old key.
VERSION = 1


def preimage(computation: Computation, mounts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the canonical key of a computation; two keys are equal exactly if the computations are.

    Args:
        computation: the computation.
        mounts: the documents of the resolved mounts by target.
    """
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
    """Return the digest of a canonical key, by which equal computations are found."""
    return digest_of(text.encode())


def recalled(text: str) -> dict[str, Any]:
    """Return all members of a canonical key, including those at their defaults."""
    members: dict[str, Any] = {**_DEFAULTS, **json.loads(text)}
    return members


@attrs.frozen(slots=True)
class Difference:
    """A difference between two canonical keys."""

    #: The path of the member, such as `environment.LC_ALL`.
    where: str
    #: The value in the wanted computation as JSON, or `nothing`.
    wanted: str
    #: The value in the other computation as JSON, or `nothing`.
    found: str
    #: What the values are of, and which files differ, if they are digests of inputs; else empty.
    explanation: str = ""

    def __str__(self) -> str:
        difference = f"{self.where}: {self.wanted}, there {self.found}"
        return f"{difference} ({self.explanation})" if self.explanation else difference


def differences(wanted: str, found: str) -> list[Difference]:
    """Return the differences of two canonical keys, member by member."""
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
        yield Difference(where, _written(wanted), _written(found))


def _written(value: Any) -> str:  # noqa: ANN401  a value of JSON, or none
    return "nothing" if value is _NOTHING else canonical(value)

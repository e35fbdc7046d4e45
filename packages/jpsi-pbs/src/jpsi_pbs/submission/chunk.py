"""Reads the custom attribute `pbs.chunk`, resources that a user adds to every chunk of a job."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..qsub_options import CUSTOM

#: The attribute's name; qsub has no such option.
CHUNK = "chunk"
_SELECT = "l.select"
# pbs_resources(7B): without characters that end a resource, a chunk or a list, or that need quotes
_RESOURCE = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_-]*)=[^\s:+,=\"'\\]+")
_FIELDS = {
    "mem": "memory",
    "mpiprocs": "process_count",
    "ncpus": "cpu_cores_per_process",
    "ngpus": "gpu_cores_per_process",
    "ompthreads": "cpu_cores_per_process",
}


def chunk_resources(custom: Mapping[str, Any]) -> list[str]:  # Any: whatever users wrote
    """Return the resources that these custom attributes add to each chunk.

    >>> chunk_resources({"chunk": "host_type=fast:ib=true"})
    ['host_type=fast', 'ib=true']

    Raises:
        ValueError: the resources are malformed, or jpsi sets them, or another attribute replaces the chunks.
    """
    value = custom.get(CHUNK)
    if value is None or value is False:
        return []
    replacement = next((it for it in custom if it == _SELECT or _SELECT in CUSTOM.excludes.get(it, ())), None)
    if replacement is not None:
        msg = (
            f"custom attributes pbs.{CHUNK} and pbs.{replacement} cannot be given both: the one adds to the "
            "chunks that jpsi requests, and the other replaces them"
        )
        raise ValueError(msg)
    resources = str(value).split(":")
    for resource in resources:
        _check_resource(resource)
    return resources


def _check_resource(resource: str) -> None:
    match = _RESOURCE.fullmatch(resource)
    if match is None:
        msg = (
            f"custom attribute pbs.{CHUNK} must be resources such as host_type=fast:ib=true, and "
            f"{resource!r} is none that a chunk can have"
        )
        raise ValueError(msg)
    field = _FIELDS.get(match["name"])
    if field is not None:
        msg = f"custom attribute pbs.{CHUNK} cannot set {match['name']}: set resources.{field}"
        raise ValueError(msg)

"""The native ids of Slurm jobs."""

from __future__ import annotations

from jpsi.plugin import IdForm, hookimpl

#: A job, an element of an array, a component of a heterogeneous job.
IDS = IdForm("Slurm", r"[1-9][0-9]{0,9}([_+][0-9]{1,9})?", largest=0xFFFFFFFF)


@hookimpl
def canonical_id(native_id: str) -> str:
    """The id, if it is one."""
    return IDS.canonical(native_id)

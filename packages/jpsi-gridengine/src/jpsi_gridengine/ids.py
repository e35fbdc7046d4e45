"""The native ids of Grid Engine jobs."""

from __future__ import annotations

from jpsi.plugin import IdForm, hookimpl

# A job, or a task of an array. Anything else is a pattern for names, with which qdel would end other jobs.
_IDS = IdForm("Grid Engine", r"[1-9][0-9]{0,9}(\.[1-9][0-9]{0,9})?")


@hookimpl
def canonical_id(native_id: str) -> str:
    """The id, if it is one."""
    return _IDS.canonical(native_id)

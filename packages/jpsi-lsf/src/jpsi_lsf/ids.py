"""The native ids of LSF jobs."""

from __future__ import annotations

from jpsi.plugin import IdForm, hookimpl

#: A job, or an element of an array, as part of a pattern. The id 0 would mean all jobs.
ID_PATTERN = r"[1-9][0-9]{0,9}(?:\[[1-9][0-9]{0,9}\])?"
# lsb.params of LSF 10.1: MAX_JOBID
_IDS = IdForm("LSF", ID_PATTERN, largest=2147483646)


@hookimpl
def canonical_id(native_id: str) -> str:
    """The id, if it is one."""
    return _IDS.canonical(native_id)

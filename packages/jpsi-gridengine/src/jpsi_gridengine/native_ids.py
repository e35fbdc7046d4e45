"""The native ids of Grid Engine jobs, arrays and array tasks."""

from __future__ import annotations

from jpsi.plugin import hookimpl
from jpsi.plugin.kit import ArrayIds, IdForm

# A job or an array task. qdel takes any other text as a pattern for names, and would end other jobs.
_IDS = IdForm("Grid Engine", r"[1-9][0-9]{0,9}(\.[1-9][0-9]{0,9})?")
# a comma would separate two jobs
_TASK_IDS = ArrayIds(_IDS, "{}.{}", "{}.{}", most_ranges=1)
element_ids, arrays_of, compress_ids = _TASK_IDS.element_ids, _TASK_IDS.arrays_of, _TASK_IDS.compress
#: The number of a job, which all tasks of an array share, from its id.
job_number = _TASK_IDS.array_of


@hookimpl
def canonical_id(native_id: str) -> str:
    """Return the id in its canonical form; raise ValueError if it is none."""
    return _IDS.canonical(native_id)

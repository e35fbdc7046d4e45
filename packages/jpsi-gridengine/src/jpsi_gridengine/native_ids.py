"""The native ids of Grid Engine jobs, arrays and array tasks.

Hooks check every id by it before it becomes an argument of a command, and build the ids of array tasks.
"""

from __future__ import annotations

from jpsi.plugin.kit import ArrayIds

# A job or an array task. qdel takes any other text as a pattern for names, and would end other jobs.
_PATTERN = r"[1-9][0-9]{0,9}(\.[1-9][0-9]{0,9})?"
# one range, as a comma would separate two jobs
_IDS = ArrayIds("Grid Engine", _PATTERN, "{}.{}", "{}.{}", most_ranges=1)
canonical_id, element_ids = _IDS.canonical_id, _IDS.element_ids
arrays_of, compress_ids = _IDS.arrays_of, _IDS.compress
#: The number of a job, which all tasks of an array share, from its id.
job_number = _IDS.array_of

"""The native ids of OAR's jobs, and the SQL conditions that select them from its table of jobs.

OAR gives a number of its own to each element of an array, and to each resubmission of a job. But the
`array_id` of all is the number of the first, and a resubmission has the `array_index` of the job. So jpsi
names a job by its array id, and an element by that and the index: 34.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jpsi.plugin import Observation
from jpsi.plugin.kit import ArrayIds

# OAR's array_id has 32 bits.
_PATTERN = r"[1-9][0-9]{0,9}(\.[1-9][0-9]{0,9})?"
_IDS = ArrayIds("OAR", _PATTERN, "{}.{}", "{}.{}", largest=(1 << 31) - 1)
canonical_id, element_ids, arrays_of = _IDS.canonical_id, _IDS.element_ids, _IDS.arrays_of

#: A condition that holds for the newest job alone. With it, an answer of OAR's database is never empty; if
#: the database does not answer, oarstat may print nothing and succeed.
NEWEST = "job_id = (SELECT MAX(job_id) FROM jobs)"
#: A condition for jobs that have not ended.
UNFINISHED = "state NOT IN ('Terminated', 'Error')"


def with_arrays(native_ids: Sequence[str]) -> str:
    """Return the condition for jobs, and for all elements of the arrays with these ids.

    >>> with_arrays(["57", "34"])
    'job_id IN (57, 34) OR array_id IN (57, 34)'
    """
    numbers = ", ".join(native_ids)
    return f"job_id IN ({numbers}) OR array_id IN ({numbers})"


def exactly(native_ids: Sequence[str], seen: Mapping[str, Observation]) -> str:
    """Return the condition for unfinished jobs and elements; those with a known tag must still carry it.

    >>> exactly(["57", "34.2", "34.3"], {})
    "state NOT IN ('Terminated', 'Error') AND (job_id = 57 OR array_id = 57 AND array_index IN (1) OR \
array_id = 34 AND array_index IN (2, 3))"
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for native_id in native_ids:
        tag = seen[native_id].tag if native_id in seen else None
        array, _, index = native_id.partition(".")
        groups.setdefault((array if index else native_id + ".", tag or ""), []).append(index or "1")
    return f"{UNFINISHED} AND ({' OR '.join(_group(*key, indices) for key, indices in groups.items())})"


def _group(array: str, tag: str, indices: Sequence[str]) -> str:
    number = array.removesuffix(".")
    condition = f"array_id = {number} AND array_index IN ({', '.join(indices)})"
    if number != array:
        condition = f"job_id = {number} OR {condition}"
    # a tag is made of letters, digits and `-`
    return f"({condition}) AND job_name LIKE '%{tag}'" if tag else condition

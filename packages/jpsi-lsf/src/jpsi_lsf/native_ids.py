"""The native ids of LSF jobs, of arrays and of their elements.

Hooks check every id by it before it becomes an argument of a command, and read the ids that LSF prints.
"""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin.kit import ArrayIds

#: A pattern for the id of a job or an array element. LSF takes the id 0 for all jobs.
ID_PATTERN = r"[1-9][0-9]{0,9}(?:\[[1-9][0-9]{0,9}\])?"
# lsb.params of LSF 10.1: MAX_JOBID
_MAX_ID = 2147483646
# Measured on volclava 2.2: it refuses lists of more than 73 ranges, and its buffer has 512 characters, which
# it does not check.
IDS = ArrayIds("LSF", ID_PATTERN, "{}[{}]", "{}[{}]", largest=_MAX_ID, most_ranges=40)
canonical_id, element_ids, arrays_of = IDS.canonical_id, IDS.element_ids, IDS.arrays_of
array_of, expand_ids, compress_ids = IDS.array_of, IDS.expand, IDS.compress


def is_lone_element(native_ids: Sequence[str]) -> bool:
    """Return True if a query is about one array element alone, which it then names by its own id.

    >>> is_lone_element(["17[3]"]), is_lone_element(["17"]), is_lone_element(["17[3]", "17[4]"])
    (True, False, False)
    """
    return len(native_ids) == 1 and array_of(native_ids[0]) != native_ids[0]

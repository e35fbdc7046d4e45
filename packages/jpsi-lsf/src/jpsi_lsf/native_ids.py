"""The native ids of LSF jobs, of arrays and of their elements.

Hooks check every id by it before it becomes an argument of a command, and read the ids that LSF prints.
"""

from __future__ import annotations

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

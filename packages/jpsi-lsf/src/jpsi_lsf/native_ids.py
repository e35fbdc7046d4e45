"""The native ids of LSF jobs, of arrays and of their elements."""

from __future__ import annotations

from jpsi.plugin import hookimpl
from jpsi.plugin.kit import ArrayIds, IdForm

#: A pattern for the id of a job or an array element. LSF takes the id 0 for all jobs.
ID_PATTERN = r"[1-9][0-9]{0,9}(?:\[[1-9][0-9]{0,9}\])?"
# lsb.params of LSF 10.1: MAX_JOBID
IDS = IdForm("LSF", ID_PATTERN, largest=2147483646)
# Measured on volclava 2.2: it refuses lists of more than 73 ranges, and its buffer has 512 characters, which
# it does not check.
_ARRAY_IDS = ArrayIds(IDS, "{}[{}]", "{}[{}]", most_ranges=40)
element_ids, arrays_of, array_of = _ARRAY_IDS.element_ids, _ARRAY_IDS.arrays_of, _ARRAY_IDS.array_of
expand_ids, compress_ids = _ARRAY_IDS.expand, _ARRAY_IDS.compress


@hookimpl
def canonical_id(native_id: str) -> str:
    """Return the id in its canonical form; raise ValueError if it is none."""
    return IDS.canonical(native_id)

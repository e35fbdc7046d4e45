"""The native ids of Slurm jobs, of arrays and of their elements.

Hooks check every id by it before it becomes an argument of a command, and read the ids that Slurm prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jpsi.plugin import hookimpl
from jpsi.plugin.kit import ArrayIds

# The id of a job (`17`), an array element (`17_1`) or a component of a heterogeneous job (`17+1`).
_PATTERN = r"[1-9][0-9]{0,9}([_+][0-9]{1,9})?"
IDS = ArrayIds("Slurm", _PATTERN, "{}_{}", "{}_[{}]", largest=0xFFFFFFFF)
element_ids, arrays_of, compress_ids = IDS.element_ids, IDS.arrays_of, IDS.compress

# The suffix of the first component of a heterogeneous job, which runs the script
_FIRST_COMPONENT = "+0"
_ARRAY = re.compile(r"([1-9][0-9]{0,9})_\[")


@hookimpl
def canonical_id(native_id: str) -> str:
    """Return the id in its canonical form; the first component of a heterogeneous job has the job's id.

    >>> canonical_id("17+0"), canonical_id("17+1")
    ('17', '17+1')
    """
    return IDS.canonical(native_id).removesuffix(_FIRST_COMPONENT)


def expand_ids(text: str) -> Iterable[str]:
    """Return the native ids that a text names: one job, or several elements of one array.

    >>> expand_ids("17_[1-3,7%2]"), expand_ids("17_1"), expand_ids("all")
    (['17_1', '17_2', '17_3', '17_7'], ['17_1'], [])

    The first component of a heterogeneous job runs the script and stands for the job.

    >>> expand_ids("17+0"), expand_ids("17+1")
    (['17'], ['17+1'])
    """
    return IDS.expand(text.removesuffix(_FIRST_COMPONENT))


def parent_id(text: str) -> str:
    """Return the job that an element or component belongs to; return any other id itself.

    >>> parent_id("17_1"), parent_id("17+1"), parent_id("17")
    ('17', '17', '17')
    """
    return re.split("[_+]", text, maxsplit=1)[0]


def truncated_array(text: str) -> str | None:
    """Return the array of a text whose list of elements Slurm has cut short; None for any other text.

    >>> truncated_array("17_[1,3,5,7..."), truncated_array("17_[1-3]"), truncated_array("17_1")
    ('17', None, None)
    """
    match = _ARRAY.match(text)
    return match[1] if match is not None and not expand_ids(text) else None

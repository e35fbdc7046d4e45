"""Runtime constraints of a request: resources that the execution to reuse must have, or must not have.

`problems` checks them when a request is made; `unmet_constraints` compares them with the recorded resources
of an execution; a new execution gets resources that meet them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from .field_checks import is_number

#: The resources that can be constrained, as they are recorded with each execution.
KNOWN = {
    "vcpus": "the cores of all processes together",
    "ram": "the bytes of memory that the job was given",
    "gpus": "the GPUs of all processes together",
}
# The least and the most.
_ENDS = 2


def problems(constraints: Mapping[str, Any]) -> Iterator[str]:
    """Yield every problem of constraints, including resources that executions do not record."""
    for name, wanted in constraints.items():
        if name not in KNOWN:
            yield f"runtime_constraints: {name!r} is not recorded of executions; what is: {', '.join(KNOWN)}"
        elif not (isinstance(wanted, bool) or is_number(wanted) or _is_range(wanted)):
            accepted = "true, false, a number or [least, most]"
            ends = wanted if isinstance(wanted, list | tuple) else [wanted]
            is_text = any(isinstance(it, str) for it in ends)
            hint = "; 8e9 is text in YAML, 8000000000 is a number" if is_text else ""
            yield f"runtime_constraints: {name} is {accepted}, not {wanted!r}{hint}"


def _is_range(wanted: Any) -> bool:  # noqa: ANN401  as above
    if not isinstance(wanted, list | tuple) or len(wanted) != _ENDS:
        return False
    least, most = wanted
    if not all(end is None or is_number(end) for end in wanted):
        return False
    return least is None or most is None or least <= most


def unmet_constraints(constraints: Mapping[str, Any], recorded: Mapping[str, Any]) -> Iterator[str]:
    """Yield the constraints that the recorded resources of an execution do not meet, as sentences.

    >>> list(unmet_constraints({"vcpus": [2, None], "ram": True}, {"vcpus": 1, "ram": 10**9}))
    ['vcpus is 1, not [2, None]']
    """
    for name, wanted in constraints.items():
        found = recorded.get(name)
        if not _meets(name, found, wanted):
            yield f"{name} is {'not recorded' if found is None else found}, not {wanted}"


def _meets(name: str, found: Any, wanted: Any) -> bool:  # noqa: ANN401  values of JSON
    if isinstance(wanted, bool):
        # Every job has cores and memory; it has GPUs only if it has requested them.
        return (bool(found) if name == "gpus" else True) is wanted
    if found is None and name == "gpus":
        found = 0
    if found is None:
        return False
    if isinstance(wanted, list | tuple):
        least, most = wanted
        return (least is None or found >= least) and (most is None or found <= most)
    return bool(found == wanted)


def memory_of(wanted: Any) -> int | None:  # noqa: ANN401  values of JSON
    """Return the bytes of memory to request: the value, or an end of the range; None without a limit.

    >>> memory_of([4, None]), memory_of(3e9), memory_of([None, 8]), memory_of(True)
    (4, 3000000000, 8, None)
    """
    if wanted is None or isinstance(wanted, bool) or wanted in ([None, None], (None, None)):
        return None
    least, most = wanted if isinstance(wanted, list | tuple) else (wanted, None)
    memory: int = math.floor(most) if least is None else math.ceil(least)
    return max(1, memory)


def count_of(wanted: Any) -> int:  # noqa: ANN401  values of JSON
    """Return the smallest number that meets a constraint.

    >>> count_of(3), count_of(True), count_of([None, 8]), count_of(False)
    (3, 1, 0, 0)
    """
    least = wanted[0] if isinstance(wanted, list | tuple) else wanted
    count: int = math.ceil(max(0, least or 0))
    return count

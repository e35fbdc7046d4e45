"""The nodes of a job, as squeue and sacct list them."""

from __future__ import annotations

from jpsi.plugin import hostlist

# squeue, sacct and scontrol where a job has no nodes
_NONE = frozenset({"", "(null)", "None assigned", "n/a"})


def nodes(text: str) -> tuple[str, ...]:
    """The nodes that a list names (scontrol(1): show hostnames).

    >>> nodes("None assigned"), nodes("node[08-09]")
    ((), ('node08', 'node09'))
    """
    return () if text in _NONE else hostlist(text)

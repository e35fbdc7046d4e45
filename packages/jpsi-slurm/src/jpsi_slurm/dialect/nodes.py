"""The nodes of a fake cluster, which are this machine under other names."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence


def node_names(count: int) -> tuple[str, ...]:
    """The names of the first nodes.

    >>> node_names(2)
    ('node01', 'node02')
    """
    return tuple(f"node{at:02}" for at in range(1, count + 1))


def node_list(names: Sequence[str]) -> str:
    """Some of them, as Slurm lists them.

    >>> node_list(["node02"]), node_list(["node01", "node02", "node03"]), node_list(["node01", "node03"])
    ('node02', 'node[01-03]', 'node[01,03]')
    """
    if len(names) == 1:
        return names[0]
    numbers = [name.removeprefix("node") for name in names]
    is_range = [int(it) for it in numbers] == list(range(int(numbers[0]), int(numbers[0]) + len(numbers)))
    return f"node[{numbers[0]}-{numbers[-1]}]" if is_range else f"node[{','.join(numbers)}]"


def tasks_of(options: Mapping[str, str], nodes: int) -> int:
    """How many tasks options ask for on so many nodes; one if they leave it open, as to the batch script."""
    if "ntasks" in options:
        return int(options["ntasks"])
    return nodes * int(options["ntasks-per-node"]) if "ntasks-per-node" in options else 1


def tasks_per_node(counts: Sequence[int]) -> str:
    """How many tasks there are on each node, as Slurm tells it.

    >>> tasks_per_node([2]), tasks_per_node([2, 2, 1])
    ('2', '2(x2),1')
    """
    told = [(count, len(list(same))) for count, same in itertools.groupby(counts)]
    return ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in told)

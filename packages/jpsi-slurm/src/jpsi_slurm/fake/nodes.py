"""The nodes of the fake cluster, all of which are this machine under other names.

Tests and `jpsi fake` run jobs on the fake, without a real Slurm.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from jpsi_testing.fake import node_name


def node_names(count: int) -> tuple[str, ...]:
    """Return the names of the first nodes.

    >>> node_names(2)
    ('node01', 'node02')
    """
    return tuple(map(node_name, range(count)))


def node_list(names: Sequence[str]) -> str:
    """Return nodes in Slurm's notation.

    >>> node_list(["node02"]), node_list(["node01", "node02", "node03"]), node_list(["node01", "node03"])
    ('node02', 'node[01-03]', 'node[01,03]')
    """
    if len(names) == 1:
        return names[0]
    numbers = [name.removeprefix("node") for name in names]
    is_range = [int(number) - index for index, number in enumerate(numbers)] == [int(numbers[0])] * len(names)
    return f"node[{numbers[0]}-{numbers[-1]}]" if is_range else f"node[{','.join(numbers)}]"


#: The name of the cluster.
CLUSTER = "ci"

_COUNTS = ("ntasks", "cpus-per-task", "ntasks-per-node")
_NODES = re.compile(r"([1-9][0-9]*)(?:-([1-9][0-9]*))?")


def count_error(options: Mapping[str, str]) -> str | None:
    """Return the message of sbatch and srun about an invalid number of tasks, processors or nodes.

    >>> count_error({"ntasks": "two"}), count_error({"nodes": "1-4"})
    ('Invalid numeric value "two" for --ntasks.', None)
    """
    for name in _COUNTS:
        value = options.get(name, "1")
        if not (value.isascii() and value.isdecimal() and int(value)):
            return f'Invalid numeric value "{value}" for --{name}.'
    match = _NODES.fullmatch(options.get("nodes", "1"))
    if match is None or int(match[2] or match[1]) < int(match[1]):
        return "Invalid --nodes specification"
    return None


def count_tasks(options: Mapping[str, str], nodes: int) -> int:
    """Return the number of tasks that options request on these nodes; 1 if they leave it open."""
    if "ntasks" in options:
        return int(options["ntasks"])
    return nodes * int(options["ntasks-per-node"]) if "ntasks-per-node" in options else 1


def tasks_per_node(counts: Sequence[int]) -> str:
    """Return the tasks of each node in Slurm's notation.

    >>> tasks_per_node([2]), tasks_per_node([2, 2, 1])
    ('2', '2(x2),1')
    """
    runs = [(count, len(list(same))) for count, same in itertools.groupby(counts)]
    return ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in runs)

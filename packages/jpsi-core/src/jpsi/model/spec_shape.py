"""The shape of a spec: what jobs have in common for which a backend answers the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: The fields of a spec of which a batch system is told nothing: the hooks which tell it do not look at them.
FREE = frozenset(
    {"executable", "arguments", "environment", "stdin_path", "stdout_path", "stderr_path"}
    | {"stage_in", "stage_out", "cleanup", "cleanup_flags"}
)


def shape(plain: Mapping[str, Any]) -> str:
    """What jobs have in common for which a backend answers the same.

    >>> shape({"executable": "a", "arguments": ["1"], "name": "n"}) == shape({"executable": "b", "name": "n"})
    True

    Args:
        plain: a spec as plain values.
    """
    return repr([(name, value) for name, value in plain.items() if name not in FREE])

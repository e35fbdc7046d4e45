"""The shape of a spec: equal for jobs for which a backend's hooks return the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: The fields of a spec that a batch system does not receive: the hooks that write its scripts do not use
#: them.
FREE = frozenset(
    {"executable", "arguments", "environment", "stdin_path", "stdout_path", "stderr_path"}
    | {"stage_in", "stage_out", "cleanup", "cleanup_flags"}
)


def shape(plain: Mapping[str, Any]) -> str:
    """Return a text that is equal for jobs for which a backend's hooks return the same.

    >>> shape({"executable": "a", "arguments": ["1"], "name": "n"}) == shape({"executable": "b", "name": "n"})
    True

    Args:
        plain: a spec as plain values.
    """
    return repr([(name, value) for name, value in plain.items() if name not in FREE])

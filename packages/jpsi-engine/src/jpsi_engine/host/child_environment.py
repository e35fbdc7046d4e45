"""The environment of the processes that jpsi starts, which may run in other directories than this one."""

from __future__ import annotations

import os
from collections.abc import Mapping

from jpsi.plugin.engine import named_file


def child_environment() -> Mapping[str, str]:
    """Return this process's environment, with the absolute path of the configuration file that it names."""
    if not os.environ.get("JPSI_CONFIG"):
        return os.environ
    return {**os.environ, "JPSI_CONFIG": str(named_file())}

"""The conformance tests of backends and launchers: one module for each group of clauses."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_testing.conformance.executor import (
        ExecutorConformance,
    )
    from jpsi_testing.conformance.hook_helpers import (
        answered,
        hooks_of,
    )
    from jpsi_testing.conformance.launcher import (
        LauncherConformance,
    )
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "hook_helpers": "answered hooks_of",
            "executor": "ExecutorConformance",
            "launcher": "LauncherConformance",
        },
    )

__all__ = [
    "ExecutorConformance",
    "LauncherConformance",
    "answered",
    "hooks_of",
]

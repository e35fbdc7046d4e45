"""The conformance tests of backends and launchers: one module for each group of clauses."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jpsi_testing.conformance.executor import ExecutorConformance
    from jpsi_testing.conformance.hook_caller import command_result, executor_hooks
    from jpsi_testing.conformance.launcher import LauncherConformance
    from jpsi_testing.conformance.table import format_table, read_outcomes
else:
    from jpsi.plugin.engine import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            ".hook_caller": "command_result executor_hooks",
            ".executor": "ExecutorConformance",
            ".launcher": "LauncherConformance",
            ".table": "format_table read_outcomes",
        },
    )

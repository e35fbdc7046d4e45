"""Helpers for tests of hooks: the result of a command, and the hooks of one plugin."""

from __future__ import annotations

from typing import cast

import pluggy

from jpsi.plugin import CommandResult, ExecutorHooks


def command_result(stdout: str = "", stderr: str = "", returncode: int = 0) -> CommandResult:
    """Return the result of a command that has ended in time.

    >>> command_result("job 17").checked().stdout
    'job 17'
    """
    return CommandResult(returncode=returncode, stdout=stdout, stderr=stderr)


def executor_hooks(plugin: object) -> ExecutorHooks:
    """Return the hooks of one executor plugin, which take all arguments by name and use some of them.

    Raises:
        pluggy.PluginValidationError: the plugin has an unknown hook, or a hook with an unknown argument.
    """
    manager = pluggy.PluginManager("jpsi")
    manager.add_hookspecs(ExecutorHooks)
    manager.register(plugin)
    manager.check_pending()
    return cast("ExecutorHooks", manager.hook)

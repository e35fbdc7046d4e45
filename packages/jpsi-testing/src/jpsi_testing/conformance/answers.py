"""What tests of hooks say again and again: how a command ended, and who is asked what to make of that."""

from __future__ import annotations

from typing import cast

import pluggy

from jpsi.plugin import CommandResult, ExecutorHooks


def answered(stdout: str = "", stderr: str = "", returncode: int = 0) -> CommandResult:
    """A command that has ended in time.

    >>> answered("job 17").checked().stdout
    'job 17'
    """
    return CommandResult(returncode=returncode, stdout=stdout, stderr=stderr)


def hooks_of(plugin: object) -> ExecutorHooks:
    """The hooks of one executor plugin, which take all arguments by name, whichever of them it uses.

    Raises:
        pluggy.PluginValidationError: it has a hook that there is not, or with an argument that there is not.
    """
    manager = pluggy.PluginManager("jpsi")
    manager.add_hookspecs(ExecutorHooks)
    manager.register(plugin)
    manager.check_pending()
    return cast("ExecutorHooks", manager.hook)

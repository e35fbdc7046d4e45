"""Assembles the layers of one executor or launcher into one small plugin manager of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from jpsi.model.errors import PluginError
from jpsi.registry.discovery import EXECUTORS, LAUNCHERS, find

if TYPE_CHECKING:
    from jpsi.contract.hookspecs import ExecutorHooks, LauncherHooks
    from jpsi.registry.discovery import Candidate


def executor_hooks(name: str, constraint: str | None = None) -> tuple[Candidate, ExecutorHooks]:
    """The executor plugin of this name, and its hooks ready to be called.

    Raises:
        PluginError: there is no such plugin, or it cannot be loaded.
    """
    from jpsi.contract.hookspecs import ExecutorHooks

    candidate = find(EXECUTORS, name, constraint)
    return candidate, cast("ExecutorHooks", _relay(candidate, ExecutorHooks))


def launcher_hooks(name: str) -> LauncherHooks:
    """The hooks of the launcher plugin of this name; it may carry a version constraint (`mpirun>=0.2`).

    Raises:
        PluginError: there is no such plugin, or it cannot be loaded.
    """
    from jpsi.contract.hookspecs import LauncherHooks

    candidate = find(LAUNCHERS, *_name_and_constraint(name))
    return cast("LauncherHooks", _relay(candidate, LauncherHooks))


def _name_and_constraint(text: str) -> tuple[str, str]:
    if text.isidentifier():
        return text, ""
    from packaging.requirements import InvalidRequirement, Requirement  # slow to import, and rarely needed

    try:
        wanted = Requirement(text)
    except InvalidRequirement as e:
        msg = f"{text!r} is not a launcher's name, with or without a version constraint"
        raise PluginError(msg, e) from e
    return wanted.name, str(wanted.specifier)


def _relay(candidate: Candidate, specification: type) -> object:
    from pluggy import PluginManager, PluginValidationError

    from jpsi.contract.hookspecs import PROJECT

    manager = PluginManager(PROJECT)
    manager.add_hookspecs(specification)
    try:
        manager.register(candidate.load(), name=candidate.name)
        manager.check_pending()
    except PluginValidationError as e:
        msg = f"the plugin {candidate.name!r} of {candidate.distribution} {candidate.version} is wrong: {e}"
        raise PluginError(msg, e) from e
    return manager.hook

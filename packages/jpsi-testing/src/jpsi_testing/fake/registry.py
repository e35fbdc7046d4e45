"""Dialects: the functions that answer a batch system's commands in tests, which its backend ships."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, cast

from jpsi.plugin import CommandResult, PluginError
from jpsi_testing.fake.invocation import Invocation

if TYPE_CHECKING:
    from jpsi_testing.fake.scheduler import FakeScheduler

#: The entry-point group in which backends offer their fakes.
GROUP = "jpsi.fakes"


#: A command: it applies the request to the scheduler, and returns what the real command would print, or a
#: `TaskLaunch` for processes that it starts. It is called under the scheduler's lock, so that nothing else
#: changes meanwhile and it never runs in two threads.
CommandFunction = Callable[["FakeScheduler", Invocation], CommandResult]


class FakeSystem(Protocol):
    """A module with these two names, or an object, that an entry point of the group `jpsi.fakes` names."""

    @property
    def commands(self) -> Mapping[str, CommandFunction]:
        """The commands of this batch system by name, such as `sbatch`."""

    def unreachable(self, command: str) -> CommandResult:
        """Return the result of this command if it cannot contact the batch system."""


def find_fake(name: str) -> FakeSystem:
    """Return the fake that a backend offers under this name, installed or on the plugin path.

    Case does not matter.

    Raises:
        PluginError: no backend offers it, it cannot be loaded, or it is no fake.
    """
    from jpsi.plugin.engine import installed, load_plugin  # noqa: PLC0415  slow to import, and rarely needed

    candidate = installed().find(GROUP, name)
    found = load_plugin(candidate)
    if wrong := _missing(found):
        lacks = f"{candidate.value} has no {' and no '.join(wrong)}"
        msg = f"{candidate.label} is not a fake of a batch system: {lacks}"
        raise PluginError(msg)
    return cast("FakeSystem", found)


def _missing(found: object) -> list[str]:
    has_commands = isinstance(getattr(found, "commands", None), Mapping)
    return [
        *([] if has_commands else ["`commands`, a mapping of names to functions"]),
        *([] if callable(getattr(found, "unreachable", None)) else ["function `unreachable`"]),
    ]

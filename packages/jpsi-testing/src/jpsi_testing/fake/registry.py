"""How a batch system's commands read and answer: what a backend ships to be tested without a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, cast

from jpsi.plugin import CommandResult, PluginError
from jpsi_testing.fake.invocation import Invocation

if TYPE_CHECKING:
    from jpsi_testing.fake.scheduler import FakeScheduler

#: The entry-point group in which backends offer their dialects.
GROUP = "jpsi.fakes"


#: A command: does to the scheduler what it is asked to, and returns what the real one would print, or a
#: `TaskLaunch` for processes that it starts. It is called under the scheduler's lock, so that it sees one
#: moment and is never in two threads.
CommandFunction = Callable[["FakeScheduler", Invocation], CommandResult]


class Dialect(Protocol):
    """What an entry point of the group `jpsi.fakes` leads to: a module with these two names, or an object."""

    @property
    def commands(self) -> Mapping[str, CommandFunction]:
        """The commands of this batch system by name, such as `sbatch`."""

    def unreachable(self, command: str) -> CommandResult:
        """What this command prints, and returns, when it cannot contact the batch system."""


def dialect(name: str) -> Dialect:
    """The dialect of this name that a backend offers, installed or on the plugin path; case does not matter.

    Raises:
        PluginError: no backend offers it, it cannot be loaded, or it is no dialect.
    """
    from jpsi.plugin.engine import installed, load_plugin  # noqa: PLC0415  slow to import, and rarely needed

    candidate = installed().find(GROUP, name)
    found = load_plugin(candidate)
    if wrong := _missing(found):
        msg = f"{candidate.label} is no dialect: {candidate.value} has no {' and no '.join(wrong)}"
        raise PluginError(msg)
    return cast("Dialect", found)


def _missing(found: object) -> list[str]:
    has_commands = isinstance(getattr(found, "commands", None), Mapping)
    return [
        *([] if has_commands else ["`commands`, a mapping of names to functions"]),
        *([] if callable(getattr(found, "unreachable", None)) else ["function `unreachable`"]),
    ]

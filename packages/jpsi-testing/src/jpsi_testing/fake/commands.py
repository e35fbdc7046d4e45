"""The commands of fake batch systems: how a backend offers them (`FakeSystem`), and how a call is answered.

`answer` applies planned faults and calls the backend's function.
"""

from __future__ import annotations

import posixpath
import signal
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, cast

import attrs

from jpsi.plugin import CommandResult, PluginError
from jpsi_testing.fake.faults import Effect, Fault
from jpsi_testing.fake.invocation import CommandError, Invocation
from jpsi_testing.fake.scheduler import FakeScheduler

#: The entry-point group in which backends offer their fakes.
GROUP = "jpsi.fakes"
#: The result of a command that never answers: it has timed out.
NO_ANSWER = CommandResult(returncode=-signal.SIGKILL, timed_out=True)

#: A command: it applies the request to the scheduler, and returns what the real command would print; text is
#: the output of a command that succeeds, and a `TaskLaunch` starts processes. It may raise `CommandError`. It
#: is called under the scheduler's lock, so that nothing else changes meanwhile and it never runs in two
#: threads.
CommandFunction = Callable[[FakeScheduler, Invocation], CommandResult | str]


class FakeSystem(Protocol):
    """A module with these two names, or an object, that an entry point of the group `jpsi.fakes` names."""

    @property
    def commands(self) -> Mapping[str, CommandFunction]:
        """The commands of this batch system by name, such as `sbatch`."""

    def unreachable(self, command: str) -> CommandResult:
        """Return the result of this command if it cannot contact the batch system."""


def find_fake(fake_system: str | FakeSystem, group: str = GROUP) -> FakeSystem:
    """Return the fake that a backend offers under this name, installed or on the plugin path.

    Case does not matter. A fake itself is returned as it is. `group` is the group of entry points.

    Raises:
        PluginError: no backend offers it, it cannot be loaded, or it is no fake.
    """
    from jpsi.plugin.engine import installed, load_plugin  # noqa: PLC0415  slow to import, and rarely needed

    if not isinstance(fake_system, str):
        return fake_system
    candidate = installed().find(group, fake_system)
    found = load_plugin(candidate)
    has_commands = isinstance(getattr(found, "commands", None), Mapping)
    missing = [] if has_commands else ["`commands`, a mapping of names to functions"]
    missing += [] if callable(getattr(found, "unreachable", None)) else ["function `unreachable`"]
    if missing:
        lacks = f"{candidate.value} has no {' and no '.join(missing)}"
        raise PluginError(f"{candidate.label} is not a fake of a batch system: {lacks}")
    return cast("FakeSystem", found)


def answer(scheduler: FakeScheduler, fake_system: FakeSystem, invocation: Invocation) -> CommandResult:
    """Return the result of a call of a command; `NO_ANSWER` if it hangs.

    Raises:
        KeyError: the fake has no such command.
    """
    name = posixpath.basename(invocation.argv[0])
    function = fake_system.commands[name]
    invocation = attrs.evolve(invocation, argv=(name, *invocation.argv[1:]))
    with scheduler.lock:
        scheduler.note(invocation)
        fault = scheduler.faults.next_fault(name)
        if fault is None or fault.effect in (Effect.ACCEPT_AND_HANG, Effect.CUT):
            scheduler.settle()
            result = call_command(function, scheduler, invocation)
            scheduler.settle()
        else:
            result = fault.result or fake_system.unreachable(name)
        return _apply_fault(scheduler.faults.with_banner(result), fault)


def call_command(
    function: CommandFunction, scheduler: FakeScheduler, invocation: Invocation
) -> CommandResult:
    """Return the result of a command, also if it refuses its request; without faults."""
    try:
        result = function(scheduler, invocation)
    except CommandError as e:
        return e.result
    return CommandResult(returncode=0, stdout=result) if isinstance(result, str) else result


def _apply_fault(result: CommandResult, fault: Fault | None) -> CommandResult:
    if fault is not None and fault.effect in (Effect.HANG, Effect.ACCEPT_AND_HANG):
        return NO_ANSWER
    if fault is not None and fault.effect is Effect.CUT:
        half = result.stdout[: len(result.stdout) // 2]
        return CommandResult(returncode=-signal.SIGKILL, stdout=half, stderr=result.stderr)
    return result


def refuse_if(refusals: Mapping[str, object], returncode: int, form: str = "{}\n") -> None:
    """Raise the error of a command about the first of these messages whose value is true.

    Raises:
        CommandError: there is one.
    """
    message = next((text for text, is_refused in refusals.items() if is_refused), None)
    if message is not None:
        raise CommandError(returncode, form.replace("{}", message))


def join_lines(lines: Iterable[str]) -> str:
    """Return lines as text."""
    return "".join(f"{line}\n" for line in lines)


def node_name(index: int) -> str:
    """Return the name of a node of a fake batch system; the first is 0.

    >>> node_name(0)
    'node01'
    """
    return f"node{index + 1:02d}"

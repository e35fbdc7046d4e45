"""Answers one call of a command, through the fake and its faults."""

from __future__ import annotations

import posixpath
import signal

import attrs

from jpsi.plugin import CommandResult
from jpsi_testing.fake.faults import Effect, Fault
from jpsi_testing.fake.invocation import Invocation
from jpsi_testing.fake.registry import FakeSystem
from jpsi_testing.fake.scheduler import FakeScheduler

#: The result of a command that never answers: it has timed out.
NO_ANSWER = CommandResult(returncode=-signal.SIGKILL, timed_out=True)


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
            result = function(scheduler, invocation)
            scheduler.settle()
        else:
            result = fault.result or fake_system.unreachable(name)
        return _apply_fault(scheduler.faults.with_banner(result), fault)


def _apply_fault(result: CommandResult, fault: Fault | None) -> CommandResult:
    if fault is not None and fault.effect in (Effect.HANG, Effect.ACCEPT_AND_HANG):
        return NO_ANSWER
    if fault is not None and fault.effect is Effect.CUT:
        half = result.stdout[: len(result.stdout) // 2]
        return CommandResult(returncode=-signal.SIGKILL, stdout=half, stderr=result.stderr)
    return result

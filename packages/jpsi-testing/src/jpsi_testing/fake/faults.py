"""Injects faults into the commands of a fake batch system: refusals, hangs, half answers, outages.

A test plans them with `scheduler.faults`, to prove that a backend survives them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

import attrs

from jpsi.plugin import CommandResult

#: Stands for every command.
EVERY = "*"


class Effect(enum.Enum):
    """The effect of a fault on a command, instead of its own or besides it."""

    ANSWER = "answer"
    HANG = "hang"
    ACCEPT_AND_HANG = "accept_and_hang"
    CUT = "cut"
    UNREACHABLE = "unreachable"


@attrs.define(slots=True)
class Fault:
    """A planned fault of a command."""

    command: str
    effect: Effect
    #: The number of further calls that it affects; None is all until `clear`.
    times: int | None
    result: CommandResult | None = None


class Faults:
    """The faults of a fake batch system; each affects the next `times` calls of a command (None: all).

    The command `"*"` is any. Several faults of one command take effect one after the other, in the order in
    which a test planned them. Once a fake is connected to the batch system, a fault of a command that it does
    not have raises `ValueError`: it would never take effect, and the test would prove nothing.
    """

    def __init__(self) -> None:
        self._commands: set[str] = set()
        self._planned: list[Fault] = []
        self._down: Effect | None = None
        self._banner = ("", "")

    def know(self, commands: Iterable[str]) -> None:
        """Add the commands of a fake that is connected to the batch system from now on."""
        self._commands.update(commands)

    def fail(
        self,
        command: str,
        times: int | None = 1,
        *,
        returncode: int = 1,
        stdout: str = "",
        stderr: str = "error: injected failure\n",
    ) -> None:
        """Let the command do nothing and print this; with returncode 0 it reports a false success."""
        result = CommandResult(returncode=returncode, stdout=stdout, stderr=stderr)
        self._plan(Fault(command, Effect.ANSWER, times, result))

    def hang(self, command: str, times: int | None = 1) -> None:
        """Let the command do nothing and never answer."""
        self._plan(Fault(command, Effect.HANG, times))

    def accept_and_hang(self, command: str, times: int | None = 1) -> None:
        """Let the command carry out its request and never answer."""
        self._plan(Fault(command, Effect.ACCEPT_AND_HANG, times))

    def cut(self, command: str, times: int | None = 1) -> None:
        """Let the command carry out its request, print half of its answer, and be killed."""
        self._plan(Fault(command, Effect.CUT, times))

    def banner(self, stdout: str = "", stderr: str = "") -> None:
        """Let every command print this first, as login scripts and wrappers of sites do."""
        self._banner = (stdout, stderr)

    def down(self, *, hangs: bool = False) -> None:
        """Let no command reach the batch system until `up`: each prints an error, or hangs. Jobs run on."""
        self._down = Effect.HANG if hangs else Effect.UNREACHABLE

    def up(self) -> None:
        """Let commands reach the batch system again."""
        self._down = None

    def clear(self) -> None:
        """Remove all faults and the banner."""
        self._planned.clear()
        self._down = None
        self._banner = ("", "")

    def next_fault(self, command: str) -> Fault | None:
        """Return the fault of this call of a command, and count the call; None if there is none."""
        for fault in self._planned:
            if fault.command in (command, EVERY) and fault.times != 0:
                if fault.times is not None:
                    fault.times -= 1
                return fault
        return None if self._down is None else Fault(command, self._down, None)

    def with_banner(self, result: CommandResult) -> CommandResult:
        """Return a result with the banner before it."""
        stdout, stderr = self._banner
        return attrs.evolve(result, stdout=stdout + result.stdout, stderr=stderr + result.stderr)

    def _plan(self, fault: Fault) -> None:
        if self._commands and fault.command not in {*self._commands, EVERY}:
            known = ", ".join(sorted(self._commands))
            msg = f"no command {fault.command!r} can fail: the fake has {known}; {EVERY!r} means all"
            raise ValueError(msg)
        self._planned.append(fault)

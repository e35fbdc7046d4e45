"""What can go wrong with a command, whatever the batch system."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import attrs

from jpsi.plugin import CommandResult

#: Stands for every command.
EVERY = "*"


class Effect(enum.Enum):
    """What happens instead of, or besides, what the command does."""

    ANSWER = "answer"
    HANG = "hang"
    ACCEPT_AND_HANG = "accept_and_hang"
    CUT = "cut"
    UNREACHABLE = "unreachable"


@attrs.define(slots=True)
class Fault:
    """One fault that was asked for."""

    command: str
    effect: Effect
    #: How many more calls it strikes; None is all until `clear`.
    times: int | None
    result: CommandResult | None = None


class Faults:
    """The faults of a fake batch system; each strikes the next `times` calls of a command, or all for None.

    The command `"*"` is any. Several faults of one command strike one after the other, in the order in which
    they were asked for. Once a dialect speaks to the batch system, a command that it does not have is refused
    with `ValueError`: such a fault would strike nothing, and a test that asks for it would prove nothing.
    """

    def __init__(self) -> None:
        self._commands: set[str] = set()
        self._planned: list[Fault] = []
        self._down: Effect | None = None
        self._banner = ("", "")

    def know(self, commands: Iterable[str]) -> None:
        """Hear of the commands of a dialect that speaks to the batch system from now on."""
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
        """The command does nothing and answers this; with returncode 0 it lies."""
        result = CommandResult(returncode=returncode, stdout=stdout, stderr=stderr)
        self._plan(Fault(command, Effect.ANSWER, times, result))

    def hang(self, command: str, times: int | None = 1) -> None:
        """The command does nothing and never answers."""
        self._plan(Fault(command, Effect.HANG, times))

    def accept_and_hang(self, command: str, times: int | None = 1) -> None:
        """The command does what it is asked to and never answers."""
        self._plan(Fault(command, Effect.ACCEPT_AND_HANG, times))

    def cut(self, command: str, times: int | None = 1) -> None:
        """The command does what it is asked to, prints half of its answer, and is killed."""
        self._plan(Fault(command, Effect.CUT, times))

    def banner(self, stdout: str = "", stderr: str = "") -> None:
        """Have every command print this first, as login scripts and wrappers of sites do."""
        self._banner = (stdout, stderr)

    def down(self, *, hangs: bool = False) -> None:
        """No command reaches the batch system until `up`: each says so, or hangs. Jobs run on."""
        self._down = Effect.HANG if hangs else Effect.UNREACHABLE

    def up(self) -> None:
        """Commands reach the batch system again."""
        self._down = None

    def clear(self) -> None:
        """Nothing goes wrong any more."""
        self._planned.clear()
        self._down = None
        self._banner = ("", "")

    def strike(self, command: str) -> Fault | None:
        """The fault that this call of a command meets, which is thereby used up."""
        for fault in self._planned:
            if fault.command in (command, EVERY) and fault.times != 0:
                if fault.times is not None:
                    fault.times -= 1
                return fault
        return None if self._down is None else Fault(command, self._down, None)

    def decorated(self, result: CommandResult) -> CommandResult:
        """A result with the banner before it."""
        stdout, stderr = self._banner
        return attrs.evolve(result, stdout=stdout + result.stdout, stderr=stderr + result.stderr)

    def _plan(self, fault: Fault) -> None:
        if self._commands and fault.command not in {*self._commands, EVERY}:
            known = ", ".join(sorted(self._commands))
            msg = f"no command {fault.command!r} can go wrong; the dialect has {known}, and {EVERY!r} is any"
            raise ValueError(msg)
        self._planned.append(fault)

"""Runs the commands of a backend's fake in this process, for tests of executors."""

from __future__ import annotations

import itertools
import os
import posixpath
import subprocess
from collections.abc import Callable

from jpsi.plugin import Command, CommandResult, TransportError
from jpsi_engine.host import environment_of
from jpsi_testing.fake import (
    NO_ANSWER,
    FakeScheduler,
    FakeSystem,
    Invocation,
    answer,
    command_folder,
    find_fake,
)
from jpsi_testing.transports.fake import SCHEME, transports

# Backends may run a shell that calls commands of the fake.
_SHELL = "sh"
_numbers = itertools.count(1)


class FakeTransport:
    """A transport to the commands of a fake over a fake batch system; implements `jpsi.plugin.Transport`.

    A command that hangs times out at once. A shell runs as a process, which finds the commands of the fake
    first on PATH. An executor finds the transport by its `url`, for as long as it is referenced:

        transport = FakeTransport(scheduler, "slurm")
        executor = JobExecutor.get_instance("slurm", url=transport.url)

    Args:
        scheduler: the batch system.
        fake_system: the functions that answer commands, or the name under which a backend offers them.
        name: the name in the url; None is a number.
    """

    def __init__(
        self, scheduler: FakeScheduler, fake_system: str | FakeSystem, name: str | None = None
    ) -> None:
        #: The batch system.
        self.scheduler = scheduler
        self._fake_system = find_fake(fake_system)
        scheduler.faults.know(self._fake_system.commands)
        #: The url of this transport within this process.
        self.url = f"{SCHEME}{name or next(_numbers)}"
        transports[self.url] = self

    @property
    def is_local(self) -> bool:
        """Always True: jobs with real processes run on this machine."""
        return True

    def run(
        self, command: Command, keep: int | None = None, ready: Callable[[], None] | None = None
    ) -> CommandResult:
        """Answer a command; see `jpsi.plugin.Transport`."""
        name = posixpath.basename(command.argv[0])
        if name not in (*self._fake_system.commands, _SHELL):
            raise TransportError(f"the command {command.argv[0]} was not found on PATH")
        if ready is not None:
            ready()
        if name not in self._fake_system.commands:
            return self._run_in_shell(command)
        invocation = Invocation(
            argv=command.argv,
            stdin=command.stdin or "",
            environment=environment_of(command, os.environ),
            directory=os.getcwd(),  # noqa: PTH109  a text is wanted
        )
        return answer(self.scheduler, self._fake_system, invocation)

    def _run_in_shell(self, command: Command) -> CommandResult:
        hung: list[bool] = []
        environment = dict(environment_of(command, os.environ))
        with command_folder(self._fake_system, self.scheduler, lambda: hung.append(True)) as folder:
            environment["PATH"] = os.pathsep.join([str(folder), environment.get("PATH", os.defpath)])
            done = subprocess.run(  # noqa: S603  a backend asks for it
                command.argv,
                check=False,
                capture_output=True,
                encoding="utf-8",
                env=environment,
                errors="replace",
                input=command.stdin or "",
            )
        if hung:
            return NO_ANSWER
        return CommandResult(returncode=done.returncode, stdout=done.stdout, stderr=done.stderr)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

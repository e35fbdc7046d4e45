"""Facts about a batch system for people, such as its queues: `JobExecutor.system`. Monitoring uses none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import attrs

from jpsi.contract import (
    BatchConfig,
    Capabilities,
    Command,
    CommandResult,
    ExecutorHooks,
    NotOffered,
    Queue,
    Site,
    Transport,
    default_walltime,
)
from jpsi.model import SubmitException


@attrs.frozen(slots=True, kw_only=True)
class System:
    """The batch system behind one executor. Each call of a method queries it; any thread may call them."""

    #: The executor's name.
    name: str
    #: The hooks of the backend, with those of the layers above it.
    hooks: ExecutorHooks
    #: The transport that runs its commands.
    transport: Transport
    #: Returns the configuration of the executor, and what the probe has found at the site so far.
    site: Callable[[], Site]
    #: True if the executor runs commands; an engine in this process, or of its machine's processes, does not.
    has_commands: bool

    @property
    def capabilities(self) -> Capabilities:
        """The features of the backend, including what the probe has found at the site so far."""
        return self.hooks.capabilities(site=self.site())

    @property
    def default_duration(self) -> timedelta | None:
        """The walltime of a job that asks for none; None if there is no such limit."""
        return default_walltime(self.site().config)

    @property
    def is_remote(self) -> bool:
        """True if its commands run on a remote host."""
        return not self.transport.is_local

    def queues(self) -> Sequence[Queue]:
        """Return the queues, with their limits and states.

        Raises:
            SubmitException: the batch system does not offer queues, or does not answer.
            TransportError: the command could not be run.
        """
        site = self.site()
        command = self.hooks.queues(site=site)
        if isinstance(command, NotOffered):
            raise SubmitException(f"the executor {self.name} has no queues")
        return list(self.hooks.parse_queues(result=self.query(command), site=site))

    def query(self, command: Command) -> CommandResult:
        """Run a command as `run` does, and raise SubmitException if it does not end in time."""
        result = self.run(command)
        if result.timed_out:
            raise SubmitException(result.complaint, transient=True)
        return result

    def run(self, command: Command) -> CommandResult:
        """Run a command where the batch system's commands run, with their configured timeout.

        Raises:
            TransportError: the command could not be run.
        """
        config = self.site().config
        timeout = config.command_timeout if isinstance(config, BatchConfig) else None
        return self.transport.run(attrs.evolve(command, timeout=command.timeout or timeout))

"""The hooks: everything that the core ever asks of a plugin, as typed protocols.

Hooks take values and return values; they run nothing, read no file and never sleep. An implementation
asks only for the arguments it uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import attrs
import pluggy

from jpsi.contract.config import ExecutorConfig
from jpsi.contract.protocols import Engine, EngineSetup
from jpsi.contract.shell import ShellLine
from jpsi.model.spec import JobSpec

#: The project name that pluggy knows jpsi by.
PROJECT = "jpsi"

hookspec = pluggy.HookspecMarker(PROJECT)
#: Decorates the functions of a plugin that implement hooks.
hookimpl = pluggy.HookimplMarker(PROJECT)


@attrs.frozen(slots=True, kw_only=True)
class Capabilities:
    """What a backend offers."""

    #: The launcher for jobs of more than one process that name none.
    default_launcher: str


class ExecutorHooks(Protocol):
    """What an executor plugin may implement (entry-point group `jpsi.executors`)."""

    @hookspec(firstresult=True)
    def config_class(self) -> type[ExecutorConfig]:
        """The configuration class of this executor."""

    @hookspec(firstresult=True)
    def capabilities(self) -> Capabilities:
        """What this backend offers."""

    @hookspec
    def check_spec(self, spec: JobSpec) -> Iterable[str]:
        """Why `spec`, which is valid in itself, can never run here; one sentence each."""

    @hookspec(firstresult=True)
    def make_engine(self, setup: EngineSetup) -> Engine | None:
        """An engine of the plugin's own, only where no command line serves."""


class LauncherHooks(Protocol):
    """What a launcher plugin implements (entry-point group `jpsi.launchers`)."""

    @hookspec
    def check_spec(self, spec: JobSpec) -> Iterable[str]:
        """Why this launcher can never launch `spec`; one sentence each."""

    @hookspec(firstresult=True)
    def launch(self, spec: JobSpec) -> Sequence[ShellLine]:
        """POSIX shell that runs every process of the job.

        The job's command line is in `"$@"`. The lines run in a subshell of their own, with the job's
        directory, environment and streams, and leave its exit code in `$?` at their end.
        """

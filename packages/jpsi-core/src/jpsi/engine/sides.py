"""Where jobs run, as seen from where they are submitted: where files are seen here, or are elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import attrs

from jpsi.contract.command import Command, CommandResult
from jpsi.contract.private_files import check_way
from jpsi.contract.protocols import EngineSetup, FileTransport, Transport
from jpsi.engine.claims import Claim
from jpsi.engine.layout import Layout
from jpsi.engine.prechecks import problems_here
from jpsi.engine.roots import WORK_DIRECTORY, folder_name
from jpsi.engine.spool import Spool
from jpsi.engine.tracking import Tracking
from jpsi.engine.work_directory import work_directory
from jpsi.engine.written_down import Written
from jpsi.model.errors import SubmitException
from jpsi.model.spec import JobSpec

if TYPE_CHECKING:
    from jpsi.engine.carrying import Carrying


class UnsentError(SubmitException):
    """Nothing of what was to be submitted is over there, but for what another machine has made."""


class TakenError(UnsentError):
    """Another machine has made an attempt that was to be submitted, and has it."""


class Listening(Protocol):
    """Hears of markers on files that are elsewhere."""

    def begin(self) -> None:
        """There are jobs to hear of.

        Raises:
            RuntimeError: no thread can be started now.
        """

    def passed(self, since: float, now: float) -> float:
        """How many of the seconds between these times jobs could be heard of."""


class Side(Protocol):
    """Where the jobs of one executor run. Methods may be called from any thread.

    Methods raise JpsiError where what they ask is not to be known now.
    """

    @property
    def spool(self) -> Spool:
        """What is remembered here."""

    @property
    def is_here(self) -> bool:
        """Whether jobs see the files of the spool."""

    def layout(self) -> Layout:
        """Where the spool is, for jobs."""

    def directory(self) -> str:
        """Where a job runs that names no directory."""

    def said(self) -> Mapping[str, object]:
        """What an intent says about this side."""

    @property
    def carrying(self) -> Carrying | None:
        """Carries files there and back; None if jobs see those of this machine, or nothing can be carried."""

    def problems(self, spec: JobSpec) -> list[str]:
        """Why a job cannot run there as things are now."""

    def carry_out(
        self, command: Command, written: Sequence[Written], lock: int | None, ready: Callable[[], None] | None
    ) -> CommandResult:
        """Run the command that submits what is written down; see `Transport.run`.

        Raises:
            UnsentError: it was certainly not submitted, and there is nothing to withdraw.
        """

    def claim(self, written: Written) -> Claim | None:
        """Who runs it, if anybody does."""

    def revoke(self, written: Written) -> bool:
        """Make sure that nobody ever runs it; False if somebody does."""

    def forget(self, written: Collection[Written]) -> None:
        """These were discarded: nothing of them is needed; never raises."""

    def refresh(self, folders: Collection[str]) -> bool:
        """See to it that the spool has what jobs have left in these folders; never raises.

        Returns whether it has: otherwise nothing follows from what it has not.
        """

    def pass_on(self, names: Collection[str]) -> None:
        """See to it that other machines find these files, named as below the root; never raises."""

    def find_others(self) -> None:
        """See to it that the spool has the jobs of this target which other machines have submitted."""

    def remove(self, names: Collection[str]) -> Collection[str]:
        """Jobs and arrays of these names were removed from the spool; returns those that are still there."""

    def listening(self, tracking: Tracking) -> Listening | None:
        """What hears of markers for the spool; None if they appear there by themselves."""


@attrs.frozen(slots=True)
class ThisSide:
    """Jobs run on this machine, or on others that see its files."""

    spool: Spool
    transport: Transport

    @property
    def is_here(self) -> bool:
        """Always true."""
        return True

    def layout(self) -> Layout:
        """See `Side`."""
        return Layout(self.spool.root)

    def directory(self) -> str:
        """See `Side`."""
        return os.getcwd()  # noqa: PTH109  as it is now, not resolved

    def said(self) -> Mapping[str, object]:
        """Nothing, as that is the usual case."""
        return {}

    @property
    def carrying(self) -> Carrying | None:
        """There is nothing to carry."""
        return None

    def problems(self, spec: JobSpec) -> list[str]:
        """See `Side`."""
        return problems_here(spec, "/bin/sh")

    def carry_out(
        self, command: Command, written: Sequence[Written], lock: int | None, ready: Callable[[], None] | None
    ) -> CommandResult:
        """See `Side`."""
        del written
        return self.transport.run(command, lock, ready)

    def claim(self, written: Written) -> Claim | None:
        """See `Side`."""
        return written.claim()

    def revoke(self, written: Written) -> bool:
        """See `Side`."""
        return written.revoke()

    def forget(self, written: Collection[Written]) -> None:
        """There is nothing but the spool."""

    def refresh(self, folders: Collection[str]) -> bool:
        """Jobs leave it there themselves."""
        del folders
        return True

    def pass_on(self, names: Collection[str]) -> None:
        """They see the spool itself."""

    def find_others(self) -> None:
        """They are there."""

    def remove(self, names: Collection[str]) -> Collection[str]:
        """There is nothing but the spool."""
        del names
        return ()

    def listening(self, tracking: Tracking) -> Listening | None:
        """See `Side`."""
        del tracking
        return None


def side_of(setup: EngineSetup) -> Side:
    """Where the jobs of an executor run.

    Raises:
        ConfigError: others can change what leads to the work directory.
    """
    name, configured = folder_name(setup.executor, setup.target), setup.config.work_directory
    is_far = isinstance(setup.transport, FileTransport)
    check_way(work_directory(None if is_far else configured) / name, WORK_DIRECTORY)
    if isinstance(setup.transport, FileTransport):
        # most programs need nothing of that
        from jpsi.engine.mirrored_side import MirroredSide  # noqa: PLC0415

        return MirroredSide(Spool(work_directory(None) / name), setup.transport, setup.config)
    return ThisSide(Spool(work_directory(configured) / name), setup.transport)

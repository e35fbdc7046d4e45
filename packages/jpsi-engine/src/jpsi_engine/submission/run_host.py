"""Where jobs run, as seen from where they are submitted: where files are seen here, or are elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

import attrs

from jpsi.plugin import Command, CommandResult, JobSpec, SubmitException, Transport
from jpsi_engine.monitor import Tracking
from jpsi_engine.runner import problems_here
from jpsi_engine.spool import Claim, JobAttempt, Layout, Spool
from jpsi_engine.transfer import Carriage, FarPlan, Plan, Told


class UnsentError(SubmitException):
    """Nothing of what was to be submitted is over there, but for what another machine has made."""


class TakenError(UnsentError):
    """Another machine has made an attempt that was to be submitted, and has it."""


class RemoteStaging(Protocol):
    """Carries staged files to the machine where jobs run, and back. Any thread may call its methods.

    Methods raise `TransportError` if the connection broke, and `TransferError` if a file is what is wrong.
    """

    def planned(self, plan: Plan, job_id: str, attempt: int) -> FarPlan:
        """Return what is to be done for an attempt."""

    def put(self, job_id: str, puts: Collection[Carriage], told: Told) -> None:
        """Put there what a job needs; one that fails leaves the others where they are."""

    def found(self, gets: Collection[Carriage]) -> Mapping[int, bool]:
        """Return the numbers of those of which there is something, each with whether that is a directory."""

    def get(self, get: Carriage, told: Told, *, is_directory: bool) -> None:
        """Get what a job has left; it goes on where an earlier one was cut short."""

    def last_words(self, job_id: str, name: str, most: int) -> bytes:
        """Return the end of a file in the folder of a job; nothing if there is none."""

    def remove(self, job_ids: Collection[str]) -> bool:
        """Remove what was carried for these jobs; returns whether it is gone and never raises."""


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
    def carrying(self) -> RemoteStaging | None:
        """Carries files there and back; None if jobs see those of this machine, or nothing can be carried."""

    def problems(self, spec: JobSpec) -> list[str]:
        """Why a job cannot run there as things are now."""

    def carry_out(
        self,
        command: Command,
        written: Sequence[JobAttempt],
        lock: int | None,
        ready: Callable[[], None] | None,
    ) -> CommandResult:
        """Run the command that submits what is written down; see `Transport.run`.

        Raises:
            UnsentError: it was certainly not submitted, and there is nothing to withdraw.
        """

    def claim(self, written: JobAttempt) -> Claim | None:
        """Who runs it, if anybody does."""

    def revoke(self, written: JobAttempt) -> bool:
        """Make sure that nobody ever runs it; False if somebody does."""

    def forget(self, written: Collection[JobAttempt]) -> None:
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
    def carrying(self) -> RemoteStaging | None:
        """There is nothing to carry."""
        return None

    def problems(self, spec: JobSpec) -> list[str]:
        """See `Side`."""
        return problems_here(spec, "/bin/sh")

    def carry_out(
        self,
        command: Command,
        written: Sequence[JobAttempt],
        lock: int | None,
        ready: Callable[[], None] | None,
    ) -> CommandResult:
        """See `Side`."""
        del written
        return self.transport.run(command, lock, ready)

    def claim(self, written: JobAttempt) -> Claim | None:
        """See `Side`."""
        return written.claim()

    def revoke(self, written: JobAttempt) -> bool:
        """See `Side`."""
        return written.revoke()

    def forget(self, written: Collection[JobAttempt]) -> None:
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

"""The interface to the place where jobs run, and its implementation for hosts that see this machine's files.

`jpsi_engine.remote` implements it for remote hosts, whose files this machine cannot see.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

import attrs

from jpsi.plugin import Command, CommandResult, JobSpec, SubmitException, Transport
from jpsi_engine.monitor import JobMonitor
from jpsi_engine.runner import local_problems
from jpsi_engine.spool import Claim, JobAttempt, Layout, Spool
from jpsi_engine.transfer import Plan, ProgressCallback, RemotePlan, RemoteTransfer


class UnsentError(SubmitException):
    """Nothing of the submission exists on the remote host, except what another machine has made there."""


class TakenError(UnsentError):
    """Another machine has made this attempt on the remote host, and owns it."""


class RemoteStaging(Protocol):
    """The interface of a transfer of staged files to a remote host and back. Any thread may call its methods.

    Methods raise `TransportError` if the connection broke, and `TransferError` if there is a problem with a
    file.
    """

    def plan_transfers(self, plan: Plan, job_id: str, attempt: int) -> RemotePlan:
        """Return the transfers of an attempt."""

    def put(self, job_id: str, puts: Collection[RemoteTransfer], report: ProgressCallback) -> None:
        """Copy a job's input files to the remote host; if one fails, the files copied before stay there."""

    def find_sources(self, gets: Collection[RemoteTransfer]) -> Mapping[int, bool]:
        """Return the numbers of the transfers whose source exists, each with True if that is a directory."""

    def get(self, get: RemoteTransfer, report: ProgressCallback, *, is_directory: bool) -> None:
        """Copy one output of a job to this machine; resume an earlier transfer that was cut short."""

    def read_tail(self, job_id: str, name: str, most: int) -> bytes:
        """Return the end of a file in the folder of a job; nothing if there is no such file."""

    def remove(self, job_ids: Collection[str]) -> bool:
        """Remove the staged files of these jobs; return True if they are gone. Never raises."""


class MarkerSource(Protocol):
    """The interface of a receiver of markers of jobs on a remote host."""

    def start(self) -> None:
        """Start to receive markers, as there are jobs to follow.

        Raises:
            RuntimeError: no thread can be started now.
        """

    def counted_seconds(self, since: float, now: float) -> float:
        """Return for how many of the seconds between these times markers could be received."""


class RunHost(Protocol):
    """The interface of the host where an executor's jobs run. Methods may be called from any thread.

    Methods raise JpsiError if the host does not answer.
    """

    @property
    def spool(self) -> Spool:
        """The spool on this machine."""

    @property
    def is_local(self) -> bool:
        """True if jobs see the files of this machine's spool."""

    def layout(self) -> Layout:
        """Return the paths of the spool as jobs see it."""

    def directory(self) -> str:
        """Return the directory in which a job runs whose spec names none."""

    def intent_entries(self) -> Mapping[str, object]:
        """Return the entries that an intent gets for this host."""

    @property
    def remote_staging(self) -> RemoteStaging | None:
        """The transfer of staged files there and back.

        None if jobs see this machine's files, or if the transport cannot transfer files.
        """

    def problems(self, spec: JobSpec) -> list[str]:
        """Return the reasons why a job cannot run there at present."""

    def run_submit(
        self,
        command: Command,
        attempts: Sequence[JobAttempt],
        lock: int | None,
        ready: Callable[[], None] | None,
    ) -> CommandResult:
        """Run the command that submits recorded attempts; see `Transport.run`.

        Raises:
            UnsentError: it was certainly not submitted, and there is nothing to withdraw.
        """

    def claim(self, attempt: JobAttempt) -> Claim | None:
        """Return the claim of an attempt; None if no process has claimed it."""

    def revoke(self, attempt: JobAttempt) -> bool:
        """Claim an attempt so that it can never run; False if another process has claimed it."""

    def clean_up(self, attempts: Collection[JobAttempt]) -> None:
        """Clean up after discarded attempts, of which nothing is needed; never raises."""

    def refresh(self, folders: Collection[str]) -> bool:
        """Update the spool with the files that jobs have left in these folders; never raises.

        Returns True if that succeeded. If False, a file missing from the spool does not mean that it is
        missing there.
        """

    def share_files(self, names: Collection[str]) -> None:
        """Copy files to where other machines find them; names are relative to the root. Never raises."""

    def import_other_jobs(self) -> None:
        """Add to the spool the jobs of this target which other machines have submitted."""

    def remove(self, names: Collection[str]) -> Collection[str]:
        """Remove there the jobs and arrays that were removed from the spool; return those that remain."""

    def marker_source(self, monitor: JobMonitor) -> MarkerSource | None:
        """Return the receiver of markers for the spool; None if markers appear there by themselves."""


@attrs.frozen(slots=True)
class LocalHost:
    """The host for jobs that run on this machine, or on others that see its files."""

    spool: Spool
    transport: Transport

    @property
    def is_local(self) -> bool:
        """Always True."""
        return True

    def layout(self) -> Layout:
        """See `RunHost`."""
        return Layout(self.spool.root)

    def directory(self) -> str:
        """See `RunHost`."""
        return os.getcwd()  # noqa: PTH109  as it is now, not resolved

    def intent_entries(self) -> Mapping[str, object]:
        """Return nothing, as that is the usual case."""
        return {}

    @property
    def remote_staging(self) -> RemoteStaging | None:
        """Always None, as jobs see the files of this machine."""
        return None

    def problems(self, spec: JobSpec) -> list[str]:
        """See `RunHost`."""
        return local_problems(spec, "/bin/sh")

    def run_submit(
        self,
        command: Command,
        attempts: Sequence[JobAttempt],
        lock: int | None,
        ready: Callable[[], None] | None,
    ) -> CommandResult:
        """See `RunHost`."""
        del attempts
        return self.transport.run(command, lock, ready)

    def claim(self, attempt: JobAttempt) -> Claim | None:
        """See `RunHost`."""
        return attempt.claim()

    def revoke(self, attempt: JobAttempt) -> bool:
        """See `RunHost`."""
        return attempt.revoke()

    def clean_up(self, attempts: Collection[JobAttempt]) -> None:
        """Do nothing, as there are no files but the spool's."""

    def refresh(self, folders: Collection[str]) -> bool:
        """Return True, as jobs write into the spool themselves."""
        del folders
        return True

    def share_files(self, names: Collection[str]) -> None:
        """Do nothing, as other machines see the spool itself."""

    def import_other_jobs(self) -> None:
        """Do nothing, as the spool has the jobs of other machines."""

    def remove(self, names: Collection[str]) -> Collection[str]:
        """Do nothing, as there are no files but the spool's."""
        del names
        return ()

    def marker_source(self, monitor: JobMonitor) -> MarkerSource | None:
        """See `RunHost`."""
        del monitor
        return None

"""Represents the host where an executor's jobs run, for a host that sees the files of this machine.

The batch engine submits and follows jobs through it. `remote.RemoteHost` replaces it for a host that has only
files of its own; the protocols in this module are what that host adds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from jpsi import StagingProgress
from jpsi.plugin import Command, CommandResult, JobSpec, SubmitException, Transport
from jpsi_engine.monitor import EventStream, JobMonitor
from jpsi_engine.runner import local_problems
from jpsi_engine.spool import Claim, JobAttempt, Layout, Spool
from jpsi_engine.transfer import Plan, ProgressCallback, RemotePlan, RemoteTransfer


class UnsentError(SubmitException):
    """Nothing of the submission exists on the remote host, except what another machine has made there."""


class TakenError(UnsentError):
    """Another machine has made this attempt on the remote host, and owns it."""


class RemoteStaging(Protocol):
    """The interface by which files are staged on a remote host. Any thread may call its methods.

    Methods raise `TransportError` if the connection broke, and `TransferError` if there is a problem with a
    file.
    """

    def plan_transfers(self, plan: Plan, job_id: str, attempt: int) -> RemotePlan:
        """Return the transfers of an attempt."""

    def put(self, job_id: str, puts: Collection[RemoteTransfer], report: ProgressCallback) -> None:
        """Copy a job's input files to the remote host; if one fails, the files copied before stay there."""

    def remove(self, job_ids: Collection[str]) -> bool:
        """Remove the staged files of these jobs; return True if they are gone. Never raises."""


class RunHost:
    """The host where an executor's jobs run: this machine, or others that see its files.

    `jpsi_engine.remote` has that for hosts whose files this machine cannot see. Methods may be called from
    any thread, and raise JpsiError if the host does not answer.

    Args:
        spool: the spool on this machine.
        transport: runs commands there.
    """

    #: True if jobs see the files of this machine's spool.
    is_local = True

    def __init__(self, spool: Spool, transport: Transport) -> None:
        self.spool = spool
        self.transport = transport

    def layout(self) -> Layout:
        """Return the paths of the spool as jobs see it."""
        return Layout(self.spool.root)

    def directory(self) -> str:
        """Return the directory in which a job runs whose spec names none."""
        return os.getcwd()  # noqa: PTH109  as it is now, not resolved

    def intent_entries(self) -> Mapping[str, object]:
        """Return the entries that an intent gets for this host."""
        return {}

    @property
    def remote_staging(self) -> RemoteStaging | None:
        """The transfer of staged files there and back.

        None if jobs see this machine's files, or if the transport cannot transfer files.
        """
        return None

    def problems(self, spec: JobSpec) -> list[str]:
        """Return the reasons why a job cannot run there at present."""
        return local_problems(spec, "/bin/sh")

    def run_submit(
        self,
        command: Command,
        attempts: Sequence[JobAttempt],  # noqa: ARG002  their files are in place
        lock: int | None,
        ready: Callable[[], None] | None,
    ) -> CommandResult:
        """Run the command that submits recorded attempts; see `Transport.run`.

        Raises:
            UnsentError: it was certainly not submitted, and there is nothing to withdraw.
        """
        return self.transport.run(command, lock, ready)

    def claim(self, attempt: JobAttempt) -> Claim | None:
        """Return the claim of an attempt; None if no process has claimed it."""
        return attempt.claim()

    def revoke(self, attempt: JobAttempt) -> bool:
        """Claim an attempt so that it can never run; False if another process has claimed it."""
        return attempt.revoke()

    def clean_up(self, attempts: Collection[JobAttempt]) -> None:
        """Clean up after discarded attempts, of which nothing is needed; never raises."""

    def refresh(self, folders: Collection[str]) -> bool:  # noqa: ARG002  jobs write into the spool itself
        """Update the spool with the files that jobs have left in these folders; never raises.

        Returns True if that succeeded. If False, a file missing from the spool does not mean that it is
        missing there.
        """
        return True

    def share_files(self, names: Collection[str], *, make_folders: bool = False) -> bool:  # noqa: ARG002  all see them
        """Copy files to where jobs and other machines find them; never raises.

        Names are relative to the root. Returns True if all of them are there, but for those whose folders do
        not exist there, unless these are made.
        """
        return True

    def import_other_jobs(self) -> None:
        """Add to the spool the jobs of this target which other machines have submitted."""

    def remove(self, names: Collection[str]) -> Collection[str]:  # noqa: ARG002  the spool has all files
        """Remove there the jobs and arrays that were removed from the spool; return those that remain."""
        return ()

    def connect(
        self,
        monitor: JobMonitor,  # noqa: ARG002  markers appear by themselves
        staged: Callable[[str, StagingProgress], None],  # noqa: ARG002  no file is staged out
    ) -> EventStream | None:
        """Connect the monitor with what jobs leave there; return the receiver of their markers.

        The result is None if markers appear in the spool by themselves.

        Args:
            monitor: the jobs to follow.
            staged: called with a job id and the progress of one of the job's files.
        """
        return None

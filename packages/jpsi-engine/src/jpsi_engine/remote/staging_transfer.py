"""Transfers staged files to a remote host before a job runs, and back to this machine after it.

`RemoteHost` puts the input files there before it submits; `stage_out` gets the output files. Both go through
a folder of the job on the remote host; see `transfer.remote_plan`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

import attrs

from jpsi import JobFiles
from jpsi.plugin import CommandResult, JpsiError, TransportError, line, word
from jpsi_engine import transfer
from jpsi_engine.remote.folders import STAGED, render_removal
from jpsi_engine.spool import Layout

log = logging.getLogger(__name__)

_DIRECTORY, _FILE, _END = "directory", "file", "end"


@attrs.frozen(slots=True)
class StagingTransfer:
    """The transfer of staged files through a folder on the remote host. Any thread may call its methods.

    Methods raise `TransportError` if the connection broke, and `TransferError` if there is a problem with a
    file.

    Args:
        files: the files of the remote host.
        run: runs shell text on the remote host.
        layout: returns the paths of the remote spool.
    """

    _files: JobFiles
    _run: Callable[[str], CommandResult]
    _layout: Callable[[], Layout]

    def plan_transfers(self, plan: transfer.Plan, job_id: str, attempt: int) -> transfer.RemotePlan:
        """Return the transfers of an attempt."""
        return transfer.split_plan(plan, self._layout().path(f"{STAGED}/{job_id}"), attempt)

    def put(
        self, job_id: str, puts: Collection[transfer.RemoteTransfer], report: transfer.ProgressCallback
    ) -> None:
        """Copy a job's input files to the remote host; if one fails, the files copied before stay there.

        Args:
            job_id: the job.
            puts: its input files.
            report: called with the progress.
        """
        if not puts:
            return
        folder = self._layout().path(f"{STAGED}/{job_id}")
        # make a private directory first, as the transfer makes missing directories with the user's umask
        result = self._run(f"umask 077\n{line('mkdir', '-p', folder)}\n")
        if result.timed_out or result.returncode != 0:
            raise TransportError(f"{folder} could not be made: {result.complaint}", transient=True)
        for put in puts:
            self._files.put(
                put.local_path, put.remote_path, transfer.ProgressReport(report, put.local_path, is_in=True)
            )

    def find_sources(self, gets: Collection[transfer.RemoteTransfer]) -> Mapping[int, bool]:
        """Return the numbers of the transfers whose source exists, each with True if that is a directory."""
        if not gets:
            return {}
        *lines, last = self._run(render_find(gets)).stdout.splitlines() or [""]
        if last != _END:
            msg = "the jobs' output files on the remote host could not be listed"
            raise TransportError(msg, transient=True)
        words = (it.split() for it in lines)
        return {int(number): kind == _DIRECTORY for kind, number in words}

    def get(
        self, get: transfer.RemoteTransfer, report: transfer.ProgressCallback, *, is_directory: bool
    ) -> None:
        """Copy one output of a job to this machine; resume an earlier transfer that was cut short.

        Args:
            get: the transfer.
            report: called with the progress.
            is_directory: True if the remote source is a directory.
        """
        target = transfer.local_target(get, is_directory=is_directory)
        self._files.get(get.remote_path, target, transfer.ProgressReport(report, target, is_in=False))

    def read_tail(self, job_id: str, name: str, most: int) -> bytes:
        """Return the end of a file in the folder of a job; nothing if there is no such file."""
        found = self._files.read(self._layout().path(f"jobs/{job_id}/{name}"), -most, most)
        return b"" if found is None else found.data

    def remove(self, job_ids: Collection[str]) -> bool:
        """Remove the staged files of these jobs from the remote host; never raises.

        Returns True if they are gone.
        """
        try:
            result = self._run(render_removal(self._layout().root, [f"{STAGED}/{it}" for it in job_ids]))
        except JpsiError as e:
            log.info("the staged files of %s could not be removed: %s", ", ".join(job_ids), e)
            return False
        return not result.timed_out and result.returncode == 0


def render_find(gets: Collection[transfer.RemoteTransfer]) -> str:
    """Return shell text that prints which of these sources exist, and which are directories."""
    lines = []
    for get in gets:
        there, number = word(get.remote_path), get.number
        lines += [
            f"if [ -d {there} ]; then echo '{_DIRECTORY} {number}'",
            f"elif [ -e {there} ] || [ -h {there} ]; then echo '{_FILE} {number}'; fi",
        ]
    return "\n".join(["{", *lines, f"echo {_END}", "}", ""])

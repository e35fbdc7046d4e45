"""Carries what is staged where files are elsewhere: there before a job, and from there after it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

from jpsi import JobFiles
from jpsi.plugin import CommandResult, JpsiError, TransportError, line, word
from jpsi_engine.remote.folders import STAGED, removing_text
from jpsi_engine.spool import Layout
from jpsi_engine.transfer import Carriage, FarPlan, Plan, Telling, Told, far_plan, where

log = logging.getLogger(__name__)

_DIRECTORY, _FILE, _END = "directory", "file", "end"


class Carrying:
    """The files of jobs, and the folders over there that they go by. Any thread may call its methods.

    Methods raise `TransportError` if the connection broke, and `TransferError` if a file is what is wrong.

    Args:
        files: the files over there.
        run: has shell text carried out over there.
        layout: where the spool is over there.
    """

    def __init__(
        self, files: JobFiles, run: Callable[[str], CommandResult], layout: Callable[[], Layout]
    ) -> None:
        self._files = files
        self._run = run
        self._layout = layout

    def planned(self, plan: Plan, job_id: str, attempt: int) -> FarPlan:
        """What is to be done for an attempt."""
        return far_plan(plan, self._layout().path(f"{STAGED}/{job_id}"), attempt)

    def put(self, job_id: str, puts: Collection[Carriage], told: Told) -> None:
        """Put there what a job needs; one that fails leaves the others where they are.

        Args:
            job_id: the job.
            puts: what it needs.
            told: told how far it is.
        """
        if not puts:
            return
        folder = self._layout().path(f"{STAGED}/{job_id}")
        # files themselves are put into directories that are anybody's to read
        result = self._run(f"umask 077\n{line('mkdir', '-p', folder)}\n")
        if result.timed_out or result.returncode != 0:
            msg = f"{folder} could not be made: {result.complaint}"
            raise TransportError(msg, transient=True)
        for put in puts:
            self._files.put(put.here, put.there, Telling(told, put.here, is_in=True))

    def found(self, gets: Collection[Carriage]) -> Mapping[int, bool]:
        """The numbers of those of which there is something, each with whether that is a directory."""
        if not gets:
            return {}
        *lines, last = self._run(finding_text(gets)).stdout.splitlines() or [""]
        if last != _END:
            msg = "what jobs have left could not be looked for"
            raise TransportError(msg, transient=True)
        words = (it.split() for it in lines)
        return {int(number): kind == _DIRECTORY for kind, number in words}

    def get(self, get: Carriage, told: Told, *, is_directory: bool) -> None:
        """Get what a job has left; it goes on where an earlier one was cut short.

        Args:
            get: what it is.
            told: told how far it is.
            is_directory: whether it is one over there.
        """
        target = where(get, is_directory=is_directory)
        self._files.get(get.there, target, Telling(told, target, is_in=False))

    def last_words(self, job_id: str, name: str, most: int) -> bytes:
        """The end of a file in the folder of a job; nothing if there is none."""
        found = self._files.read(self._layout().path(f"jobs/{job_id}/{name}"), -most, most)
        return b"" if found is None else found.data

    def remove(self, job_ids: Collection[str]) -> bool:
        """Nothing of what was carried for these jobs is needed over there any more; never raises.

        Returns whether it is gone.
        """
        try:
            result = self._run(removing_text(self._layout().root, [f"{STAGED}/{it}" for it in job_ids]))
        except JpsiError as e:
            log.info("the staged files of %s stay where they are: %s", ", ".join(job_ids), e)
            return False
        return not result.timed_out and result.returncode == 0


def finding_text(gets: Collection[Carriage]) -> str:
    """Shell text that tells of which of these there is something, and what."""
    lines = []
    for get in gets:
        there, number = word(get.there), get.number
        lines += [
            f"if [ -d {there} ]; then echo '{_DIRECTORY} {number}'",
            f"elif [ -e {there} ] || [ -h {there} ]; then echo '{_FILE} {number}'; fi",
        ]
    return "\n".join(["{", *lines, f"echo {_END}", "}", ""])

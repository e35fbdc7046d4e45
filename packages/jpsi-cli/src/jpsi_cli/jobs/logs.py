"""Implements `jpsi logs`: shows the output of a job so far, or with `-f` also what it writes from now on."""

from __future__ import annotations

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

from .. import exit_codes, messages
from ..output import Follower
from ..stored_jobs import await_submission, recall_jobs, select_job

# The seconds between two checks if the output can still be written.
_POLL_SECONDS = 0.5


def logs(*, job: str, is_following: bool, is_stderr: bool) -> int:
    """Show the output of a job and return the exit code."""
    found = select_job(job, job_store.jobs(), "jpsi logs")
    output = found.output("stderr" if is_stderr else "stdout")
    if is_following and not found.status.final:
        return _follow(found, output)
    return _copy(found, output)


def _copy(job: StoredJob, output: jpsi.Output) -> int:
    exists = output.read(0, 0) is not None
    if not exists and not job.status.final:
        messages.error(f"job {job.id} is {job.status.state} and has written nothing yet")
        return 0
    if not exists:
        messages.error(f"there is no output: {output.path} does not exist")
        return exit_codes.JPSI
    return _finish(*_start(output))


def _follow(job: StoredJob, output: jpsi.Output) -> int:
    (job,) = await_submission([job])
    recalled = recall_jobs([] if job.status.final else [job])
    recalled.report_failures()
    if recalled.failures:
        return exit_codes.JPSI
    follower, refusals = _start(output)
    while job.id in recalled.jobs and not refusals and recalled.jobs[job.id].wait(_POLL_SECONDS) is None:
        pass
    return _finish(follower, refusals)


def _start(output: jpsi.Output) -> tuple[Follower, list[OSError]]:
    """Begin to copy the output; return also a list to which the follower adds the error of a failed write."""
    refusals: list[OSError] = []
    follower = Follower(output, messages.STDOUT, refusals.append)
    follower.start()
    return follower, refusals


def _finish(follower: Follower, refusals: list[OSError]) -> int:
    follower.finish()
    if refusals and not isinstance(refusals[0], BrokenPipeError):
        raise messages.UnwritableError(refusals[0])
    if refusals:
        raise refusals[0]
    if follower.unreadable is not None:
        messages.error(f"not all output is shown: {follower.unreadable}")
        return exit_codes.JPSI
    return 0

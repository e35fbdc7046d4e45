"""`jpsi logs`: the output of a job, as far as it came, or as it comes."""

from __future__ import annotations

from pathlib import Path

from jpsi import spooled
from jpsi.spooled import SpooledJob

from . import codes, messages
from .fence import fenced
from .follow import Follower
from .picking import picked
from .recalling import recalled

_LOOK_SECONDS = 0.5


def logs(word: str, *, is_following: bool, is_stderr: bool) -> int:
    """Show the output of a job and return the exit code."""

    def command() -> int:
        (job,) = picked([word], spooled.jobs())
        path = job.streams.stderr if is_stderr else job.streams.stdout
        if is_following and not job.status.final:
            return _follow(job, path)
        return _copy(job, path)

    return fenced(command)


def _copy(job: SpooledJob, path: Path) -> int:
    if not path.exists() and not job.status.final:
        messages.error(f"job {job.id} is {job.status.state} and has written nothing yet")
        return 0
    refusals: list[OSError] = []
    follower = Follower(path, messages.STDOUT, refusals.append)
    return _finished(follower, refusals, must_exist=True)


def _follow(job: SpooledJob, path: Path) -> int:
    live = recalled([job])
    live.tell_failures()
    if live.failures:
        return codes.JPSI
    refusals: list[OSError] = []
    follower = Follower(path, messages.STDOUT, refusals.append)
    follower.start()
    while not refusals and live.jobs[job.id].wait(_LOOK_SECONDS) is None:
        pass
    return _finished(follower, refusals, must_exist=False)


def _finished(follower: Follower, refusals: list[OSError], *, must_exist: bool) -> int:
    if must_exist and not follower.path.exists():
        messages.error(f"there is no output: {follower.path} does not exist")
        return codes.JPSI
    if must_exist:
        follower.start()
    follower.finish()
    if refusals and not isinstance(refusals[0], BrokenPipeError):
        raise messages.UnwritableError(refusals[0])
    if refusals:
        raise refusals[0]
    if follower.unreadable is not None:
        messages.error(f"the output in {follower.path} cannot be read: {follower.unreadable}")
        return codes.JPSI
    return 0

"""Implements `jpsi logs`: shows the output of a job so far, or with `-f` also what it writes from now on."""

from __future__ import annotations

import time
from collections.abc import Sequence

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

from .. import exit_codes, messages
from ..error_boundary import SelectionError
from ..output import Follower
from ..stored_jobs import (
    Stream,
    await_submission,
    job_title,
    job_with_index,
    named_path,
    reasons_reported,
    recall_jobs,
    report_failures,
    select_job,
    select_jobs,
    short_ids,
    shown_ids,
    was_not_opened,
)

# The seconds between two checks if the output can still be written.
_POLL_SECONDS = 0.5
# How much of the output is read at a time to find the last lines.
_CHUNK = 1 << 16
_NEWLINE = ord("\n")


def logs(*, jobs: Sequence[str], is_following: bool, is_stderr: bool, tail: int | None) -> int:
    """Show the output of jobs one after the other, and return the exit code."""
    stored = job_store.jobs()
    stream: Stream = "stderr" if is_stderr else "stdout"
    if is_following:
        if len(jobs) > 1:
            msg = f"-f follows one job, and not {len(jobs)}: name one of them"
            raise SelectionError(msg)
        followed = select_job(jobs[0], stored, "jpsi logs -f")
        _report_rewritten([followed], stored, stream)
        return _follow(followed, stream, tail)
    found, ids = select_jobs(jobs, stored), short_ids(it.id for it in stored)
    _report_rewritten(found, stored, stream)
    codes = []
    for it in found:
        if len(found) > 1:
            messages.show(messages.printable(f"==> {job_title(it, ids[it.id])} <==\n"))
        codes.append(_copy(it, stream, tail))
    return max(codes)


def _report_rewritten(jobs: Sequence[StoredJob], stored: Sequence[StoredJob], stream: Stream) -> None:
    """Name the jobs whose files others have written since that repeat them, or repeat such a job."""
    originals = {it.id: it for it in jobs if named_path(it, stream) is not None}
    if not originals:
        return
    # by the id of a job, that of the one among these that it repeats, directly or not
    repeating, last = {it: it for it in originals}, dict[str, StoredJob]()
    for it in stored:
        original = repeating.get(it.repeats or "")
        if original is None:
            continue
        repeating.setdefault(it.id, original)
        path = getattr(originals[original].streams, stream)
        if it.started is not None and getattr(it.streams, stream) == path:
            last[original] = it
    ids = shown_ids(stored) if last else {}
    for original, it in last.items():
        who = f"{job_with_index(originals[original])}: {ids[it.id]}"
        messages.error(f"{who} has repeated it since, and wrote to the same file")


def _copy(job: StoredJob, stream: Stream, tail: int | None) -> int:
    output = job.output(stream)
    exists = output.read(0, 0) is not None
    is_old = exists and was_not_opened(job, stream)
    has_written = exists and not is_old
    if not has_written and not job.status.final:
        messages.error(f"{job_with_index(job)} is {job.status.state} and has written nothing yet")
        return 0
    if not has_written and job.started is None:
        messages.error(f"{job_with_index(job)} never started, and so has no output")
        return exit_codes.JPSI
    if is_old:
        messages.error(f"there is no output: the job did not open {output.path}, which was there before")
        return exit_codes.JPSI
    if not exists:
        messages.error(f"there is no output: {output.path} does not exist")
        return exit_codes.JPSI
    return _finish(*_start(output, tail))


def _follow(job: StoredJob, stream: Stream, tail: int | None) -> int:
    if not job.status.final:
        awaited = await_submission([job])
        (job,) = awaited.jobs
        if awaited.failures:
            report_failures(awaited.failures)
            return exit_codes.JPSI
    job = _await_attempt(job)
    if job.status.final:
        return _copy(job, stream, tail)
    recalled = recall_jobs([job])
    recalled.report_failures()
    if recalled.failures:
        return exit_codes.JPSI
    followed = recalled.jobs[job.id]
    with reasons_reported([job], recalled):
        while was_not_opened(job, stream) and followed.wait(_POLL_SECONDS) is None:
            (job,) = job_store.reread([job]) or [job]
        if followed.status.final and was_not_opened(job, stream):
            return _copy((job_store.reread([job]) or [job])[0], stream, tail)
        follower, refusals = _start(job.output(stream), tail)
        while not refusals and followed.wait(_POLL_SECONDS) is None:
            pass
    return _finish(follower, refusals)


def _await_attempt(job: StoredJob) -> StoredJob:
    """Wait until the next attempt of a job was made, or the job has ended; this process does not make it."""
    if job.awaits_retry:
        messages.error(f"{job_with_index(job)}: {job.remark}")
    while job.awaits_retry and (found := job_store.reread([job])):
        (job,) = found
        time.sleep(_POLL_SECONDS)
    return job


def _start(output: jpsi.Output, tail: int | None) -> tuple[Follower, list[OSError]]:
    """Begin to copy the output; return also a list to which the follower adds the error of a failed write."""
    refusals: list[OSError] = []
    begin = 0 if tail is None else _tail_offset(output, tail)
    follower = Follower(output, messages.STDOUT, refusals.append, begin)
    follower.start()
    return follower, refusals


def _tail_offset(output: jpsi.Output, lines: int) -> int:
    """Return where the last lines of an output begin."""
    size = part.size if (part := output.read(0, 0)) is not None else 0
    end, newlines = size, 0
    while end > 0:
        begin = max(0, end - _CHUNK)
        part = output.read(begin, end - begin)
        data = b"" if part is None else part.data
        for position in range(len(data) - 1, -1, -1):
            # the end of the last line begins no further line
            if data[position] == _NEWLINE and begin + position != size - 1:
                newlines += 1
                if newlines == lines:
                    return begin + position + 1
        end = begin
    return 0 if lines else size


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

"""Gets what jobs have left elsewhere for this machine, before it is told that they have ended."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator

import attrs

from jpsi import JobStatus, StagingProgress, TransferError
from jpsi.plugin import JpsiError
from jpsi.plugin.engine import plain_values
from jpsi_engine.host import NoAnswerError, exists, take_lock, write
from jpsi_engine.monitor import Judging
from jpsi_engine.runner import SAID_BYTES, explained, staging
from jpsi_engine.scheduler import Tracked
from jpsi_engine.spool import Spool
from jpsi_engine.submission import RemoteStaging
from jpsi_engine.transfer import Carriage, left, plan, record, recorded
from jpsi_engine.verdict import ALSO, STAGE_IN, STAGE_OUT, what_failed, with_staging

log = logging.getLogger(__name__)

# Of how many jobs files are on their way at a time.
_AT_A_TIME = 2
# How long to wait for a line that was cut, or for whoever gets the same: from the first to the last.
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 10.0
# How often something is tried that may come right by itself, as where there is no room.
_TRIES = 3
# How long it is asked for a file that does not answer while all else does. One that comes from a tape, or
# from a file server that is started again, takes less.
_SILENT_SECONDS = 3600.0


@attrs.define(slots=True)
class _Course:
    """How it has gone with the files of one job, since this process began to get them."""

    #: How often a file could not be got, by its number.
    failures: dict[int, int] = attrs.field(factory=dict)
    #: How many bytes of a file are here, by its path.
    reached: dict[str, int] = attrs.field(factory=dict)
    #: Since when they do not get on, in seconds of the monotonic clock.
    silent_since: float | None = None


class Bringing:
    """Gets files on threads of its own, which end with whoever holds it. Any thread may call its methods.

    While there is the file `get.<n>` in the folder of a job, its files are not all here; whoever has the lock
    on that gets them. A line that is cut is waited for as long as it takes, a file that does not answer for
    an hour.

    Args:
        spool: the jobs.
        carrying: gets files.
        judging: knows the jobs, and tells of their ends.
        staged: called with a job id and how far a file of the job is.
        wait: waits for so many seconds, or until the event is set.
    """

    def __init__(
        self,
        spool: Spool,
        carrying: RemoteStaging,
        judging: Judging,
        staged: Callable[[str, StagingProgress], None],
        wait: Callable[[threading.Event, float], object] = threading.Event.wait,
    ) -> None:
        self.wait = wait
        self._spool = spool
        self._carrying = carrying
        self._staged = staged
        # it holds this one
        self._judging = weakref.ref(judging)
        self._lock = threading.Lock()
        # the jobs whose files are to be got
        self._courses: dict[str, _Course] = {}
        self._waiting: deque[tuple[Tracked, JobStatus]] = deque()
        self._threads = 0
        self._closed = threading.Event()
        weakref.finalize(self, self._closed.set)

    def holds(self, job: Tracked, status: JobStatus) -> bool:
        """Whether the end of a job cannot be told yet; it is told once its files are here.

        Args:
            job: what is known of it.
            status: how it ended, but for what becomes of its files.
        """
        if not job.has_runner or not exists(self._spool.awaited(job.spool_id, job.attempt)):
            return False
        with self._lock:
            if job.job_id not in self._courses:
                self._courses[job.job_id] = _Course()
                self._waiting.append((job, status))
            self._begin()
        return True

    def _begin(self) -> None:
        if not self._waiting or self._threads >= _AT_A_TIME:
            return
        work = threading.Thread(
            target=_work, args=(weakref.ref(self), self._closed), name="jpsi-bring", daemon=True
        )
        # without a thread, the next look at the job brings one
        with contextlib.suppress(RuntimeError):
            work.start()
            self._threads += 1

    def next(self) -> tuple[Tracked, JobStatus] | None:
        """The job whose files are to be got next; None if the thread that asks is not needed any more."""
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._threads -= 1
            return None

    def bring(self, job: Tracked, status: JobStatus) -> bool:
        """Get the files of a job, and tell of its end; returns whether that is done, or nobody's to do."""
        judging = self._judging()
        if judging is None:
            return True
        if judging.get(job.job_id) is job:
            try:
                with self._locked(job) as is_ours:
                    if is_ours is False:
                        return False
                    if is_ours:
                        status = self._settled(job, status)
            except JpsiError as e:
                log.info("the files of job %s are waited for: %s", job.job_id, e)
                self._spool.tell_awaited(job.spool_id, job.attempt, str(e))
                if not isinstance(e, NoAnswerError):
                    # nobody answers where the line is cut
                    self._courses[job.job_id].silent_since = None
                return False
            judging.end(job, status)
        with self._lock:
            self._courses.pop(job.job_id, None)
        return True

    @contextlib.contextmanager
    def _locked(self, job: Tracked) -> Iterator[bool | None]:
        """Keep others from getting the same; yields None if they have got it, False while they do."""
        path = self._spool.awaited(job.spool_id, job.attempt)
        try:
            fd = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            yield None
            return
        try:
            if take_lock(fd, 0.0):
                yield exists(path) or None
            else:
                yield False
        finally:
            os.close(fd)

    def _settled(self, job: Tracked, status: JobStatus) -> JobStatus:
        """Get what is to be got, and write down what became of it; returns how the job has ended."""
        spool, job_id, attempt = self._spool, job.spool_id, job.attempt
        complaints = self._got(job)
        words = self._words(job, status)
        if words or complaints:
            told = [words.decode(errors="replace").strip(), *complaints]
            text = "\n".join(it for it in told if it)
            write(staging.log_file(spool.folder(job_id), attempt), text.encode())
        if complaints:
            status = with_staging(status, f"{ALSO}{STAGE_OUT}")
            # what could not be got may be there alone
            spool.finish(
                job_id, attempt, plain_values.encode_status(explained(spool, job_id, attempt, status))
            )
        else:
            self._remove(job_id)
        spool.await_no_more(job_id, attempt)
        return status

    def _remove(self, job_id: str) -> None:
        """Remove what was staged, here or, if that fails, with what is staged for another job."""
        job_ids = [*self._spool.not_needed(), job_id]
        if self._carrying.remove(job_ids):
            self._spool.has_removed(job_ids)
        else:
            self._spool.need_no_more(job_id)

    def _got(self, job: Tracked) -> list[str]:
        """Get what is not here; returns what is wrong with that which cannot be got."""
        spool, job_id, attempt = self._spool, job.spool_id, job.attempt
        intent = spool.last_intent(job_id)
        if intent is None or intent.attempt != attempt:
            return []
        planned = self._carrying.planned(plan(plain_values.decode(intent.content["spec"])), job_id, attempt)
        gets = left(planned.gets, recorded(spool.names(job_id), attempt))
        found, complaints = self._carrying.found(gets), []
        for get in (it for it in gets if it.number in found):
            try:
                told = functools.partial(self._tell, job)
                self._carrying.get(get, told, is_directory=found[get.number])
            except TransferError as e:
                if e.transient and self._may_come_right(job, get):
                    raise
                complaints.append(_complaint(e, get))
            except NoAnswerError as e:
                if self._may_answer(job, e):
                    raise
                complaints.append(_complaint(e, get))
            else:
                write(record(spool.folder(job_id), attempt, get.number), b"")
        return complaints

    def _tell(self, job: Tracked, progress: StagingProgress) -> None:
        self._spool.tell_awaited(job.spool_id, job.attempt, str(progress))
        self._staged(job.job_id, progress)
        course = self._courses[job.job_id]
        if progress.done > course.reached.get(progress.path, 0):
            course.reached[progress.path] = progress.done
            course.silent_since = None

    def _may_come_right(self, job: Tracked, get: Carriage) -> bool:
        failures = self._courses[job.job_id].failures
        failures[get.number] = failures.get(get.number, 0) + 1
        return failures[get.number] < _TRIES

    def _may_answer(self, job: Tracked, error: NoAnswerError) -> bool:
        """Whether a file may answer yet. Something else was answered just now: the line is not cut."""
        now, course = time.monotonic(), self._courses[job.job_id]
        if course.silent_since is None:
            course.silent_since = now
            log.warning("the files of job %s are waited for: %s", job.job_id, error)
        return now - course.silent_since < _SILENT_SECONDS

    def _words(self, job: Tracked, status: JobStatus) -> bytes:
        """What the commands said over there that staged files, if that tells why something failed."""
        if status.metadata.get("phase") != STAGE_IN and not what_failed(status):
            return b""
        name = staging.log_file("", job.attempt).removeprefix("/")
        return self._carrying.last_words(job.spool_id, name, SAID_BYTES)


def _complaint(error: JpsiError, get: Carriage) -> str:
    return f"{error}; it is still in {get.there}, where jobs run"


def _work(reference: weakref.ref[Bringing], closed: threading.Event) -> None:
    """Get the files of one job after the other, as long as there are such."""
    while (bringing := reference()) is not None and (found := bringing.next()) is not None:
        job, status = found
        pause, wait = _FIRST_PAUSE_SECONDS, bringing.wait
        while bringing is not None and not _fenced(bringing, job, status):
            del bringing
            wait(closed, pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            bringing = reference()


def _fenced(bringing: Bringing, job: Tracked, status: JobStatus) -> bool:
    try:
        return bringing.bring(job, status)
    except OSError as e:
        log.warning("job %s: its files cannot be kept here: %s", job.job_id, e)
    except Exception:
        # the fence of a round: the next one is tried, and the files of other jobs are got meanwhile
        log.exception("job %s: its files could not be got", job.job_id)
    return False

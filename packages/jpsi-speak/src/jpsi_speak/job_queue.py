"""The jobs that programs have submitted by the commands of a batch system, and their way to an executor.

The commands take it for the batch system: they submit `FakeJob`s to it, and list and cancel them. It waits
for what they depend on, hands them over to the executor, and keeps the journal.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import attrs

import jpsi
from jpsi import BulkException, JobState, JobStatus, JpsiError, Reason
from jpsi.plugin import CommandResult
from jpsi_engine import job_store, write_synced
from jpsi_testing.fake import SPEC, CommandError, FakeJob, FakeState, Invocation, Speaker, call_command

from .journal import Entry, Journal, entry_number, old_numbers, submission_number

if TYPE_CHECKING:
    from jpsi_testing.fake import FakeScheduler

log = logging.getLogger(__name__)

# How many batches of jobs are handed over at a time.
_WORKERS = 8
# For so many seconds a submit command waits until its jobs are handed over; they are safe in any case.
_PATIENCE_SECONDS = 20.0
# The seconds for which a job that another process is submitting is awaited.
_RECALL_SECONDS = 30.0
_END_STATES = {
    Reason.TIMEOUT: FakeState.TIMEOUT,
    Reason.OUT_OF_MEMORY: FakeState.OUT_OF_MEMORY,
    Reason.NODE_FAIL: FakeState.NODE_FAIL,
    Reason.LOST: FakeState.NODE_FAIL,
}
_NEVER_RAN = frozenset({Reason.SETUP, Reason.EXECUTABLE, Reason.LAUNCH, Reason.STAGING})


@attrs.define(slots=True, eq=False)
class _Handover:
    """The way of one job to the executor."""

    job: jpsi.Job
    #: Its id, which is that of an earlier object until the job is recalled.
    job_id: str = attrs.field()
    #: True from the moment at which it is handed over.
    is_begun: bool = False
    #: True once the executor has it.
    is_done: bool = False
    #: True if it is to be cancelled once the executor has it.
    is_cancelled: bool = False
    #: Why the executor refused it.
    refusal: str = ""


@attrs.frozen(slots=True)
class _Recorded(Invocation):
    """A call from the journal, whose input is the script that it submitted."""

    def reading_script(self, words: object, refusal: str) -> Invocation:
        """Return the call itself: the file may have changed since."""
        del words, refusal
        return self


class JobQueue:
    """The jobs of one executor, as the commands of a batch system see them; any thread may call its methods.

    Args:
        folder: the directory with the journal and the scripts.
        executor: the executor.
        speaker: the commands of the batch system, and what it says about jobs.
        is_local: True if all jobs run on this machine.
        is_shared: True if jobs see the files of this machine.
        clock: returns the seconds since 1970.
    """

    #: As of a `FakeScheduler`: listings have all jobs, and for so many seconds those that have ended.
    accounting = True
    keep = 300.0

    def __init__(  # noqa: PLR0913  each by its name
        self,
        folder: Path,
        executor: jpsi.JobExecutor,
        speaker: Speaker,
        *,
        is_local: bool,
        is_shared: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.clock = clock
        self.lock = threading.RLock()
        self.system = executor.name
        self.is_local = is_local
        self.is_shared = is_shared
        self.is_lenient = False
        self.jobs: list[FakeJob] = []
        self._waiting: list[FakeJob] = []
        self._changed = threading.Condition(self.lock)
        self._folder = folder
        self._executor = executor
        self._speaker = speaker
        self._handovers: dict[str, _Handover] = {}
        self._by_id: dict[str, FakeJob] = {}
        self._replies: dict[str, tuple[CommandResult, list[FakeJob]]] = {}
        self._call: tuple[str, Invocation] = ("", Invocation(argv=()))
        self._recorded: Entry | None = None
        self._number = 0
        self._to_cancel: list[FakeJob] = []
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="handover")
        self._journal = Journal(folder / "journal")
        (folder / "scripts").mkdir(mode=0o700, exist_ok=True)
        executor.set_job_status_callback(self._note_status)
        self._restore()

    # For the server.

    def answer(self, key: str, invocation: Invocation, *, is_lenient: bool) -> CommandResult:
        """Return the result of a call; one with the key of an earlier call is that call, and gets its result.

        Raises:
            KeyError: there is no such command.
        """
        with self.lock:
            if key not in self._replies:
                self.is_lenient = is_lenient
                self._call = key, invocation
                before = len(self.jobs)
                result = self._carry_out(invocation)
                own = self.jobs[before:]
                if own:
                    self._replies[key] = result, own
            else:
                result, own = self._replies[key]
            cancelled, self._to_cancel = self._to_cancel, []
            self._hand_over_ready()
        self._cancel(cancelled)
        with self._changed:
            self._changed.wait_for(lambda: not any(map(self._is_on_its_way, own)), _PATIENCE_SECONDS)
            refusals = [handover.refusal for job in own if (handover := self._handover(job)).refusal]
        if own and len(refusals) == len(own):
            self._forget(own)
            text = "".join(f"{invocation.argv[0]}: error: {line}\n" for line in refusals[0].splitlines())
            return CommandResult(returncode=1, stderr=text)
        return result

    def _carry_out(self, invocation: Invocation) -> CommandResult:
        # it has all of a scheduler that these commands use
        scheduler = cast("FakeScheduler", self)
        return call_command(self._speaker.commands[invocation.argv[0]], scheduler, invocation)

    def _forget(self, refused: list[FakeJob]) -> None:
        """Forget jobs that were refused before their submission was answered."""
        with self.lock:
            if refused[0] in self.jobs:
                self._journal.append({"kind": "refusal", "job": refused[0].native_id})
                self.jobs = [it for it in self.jobs if it not in refused]

    @property
    def is_busy(self) -> bool:
        """True if a job is on its way, or will be without a further command."""
        with self.lock:
            return any(
                self._handover(job).is_begun
                or (job.state is FakeState.PENDING and job.why != self._speaker.never)
                for job in self.jobs
                if not job.state.final
            )

    def close(self) -> None:
        """Close the journal; jobs run on."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self.lock:
            self._executor.close()
            self._journal.close()

    # For commands, as of a `FakeScheduler`.

    def next_number(self, count: int = 1) -> int:
        """Return the first of so many numbers that no other job has."""
        first = self._number + 1 if self._recorded is None else int(self._recorded["number"])
        self._number = max(self._number, first + count - 1)
        return first

    def script_file(self, number: int, text: str, suffix: str = "") -> Path:
        """Return the file with the script of a submission; with a suffix, another file for its jobs."""
        path = self._folder / "scripts" / f"{number}{suffix}"
        if self._recorded is None:
            write_synced(path, text.encode(errors="surrogateescape"))
        return path

    def submit_all(self, jobs: Iterable[FakeJob]) -> None:
        """Accept the jobs of one submission: they are in the journal when this returns."""
        accepted = list(jobs)
        key, call = self._call
        made = [jpsi.Job(job.attributes[SPEC]) for job in accepted]
        now = self.clock()
        if self._recorded is None:
            entry = {
                "kind": "submission",
                "key": key,
                "number": submission_number(accepted[0].number),
                "time": now,
                "ids": [job.id for job in made],
                "argv": list(call.argv),
                "environment": dict(call.environment),
                "directory": call.directory,
                "is_lenient": self.is_lenient,
            }
            self._journal.append(entry, is_durable=True)
        else:
            now = self._recorded["time"]
        for job, own in zip(accepted, made, strict=True):
            job.submitted = now
            self.jobs.append(job)
            self._waiting.append(job)
            self._handovers[job.native_id] = _Handover(own, own.id)
            self._by_id[own.id] = job

    @property
    def is_restoring(self) -> bool:
        """True while the submissions in the journal are read again; they were valid when they were made."""
        return self._recorded is not None

    def is_submitted(self, job: FakeJob) -> bool:
        """Return True if a job was handed over, and has not ended."""
        return self._handover(job).is_begun and not job.state.final

    def listed(self) -> list[FakeJob]:
        """Return the jobs that the queue lists."""
        now = self.clock()
        return [job for job in self.jobs if job.ended is None or now < job.ended + self.keep]

    def accounted(self) -> list[FakeJob]:
        """Return the jobs in the accounting."""
        return list(self.jobs)

    def cancel(self, native_id: str) -> bool:
        """Cancel a job."""
        self.cancel_all([native_id])
        return True

    def cancel_all(self, native_ids: Iterable[str]) -> None:
        """Cancel jobs; those that the executor has are cancelled before the command is answered."""
        by_native_id = {job.native_id: job for job in self.jobs}
        for job in (by_native_id[it] for it in native_ids):
            if job.state.final:
                continue
            handover = self._handover(job)
            if not handover.is_begun:
                self._end(job, FakeState.CANCELLED)
            else:
                handover.is_cancelled = True
                self._to_cancel.append(job)

    def hold(self, native_id: str) -> bool:
        """Keep a pending job from starting."""
        return self._set_held(native_id, is_held=True)

    def release(self, native_id: str) -> bool:
        """Let a held job start."""
        return self._set_held(native_id, is_held=False)

    def requeue(self, native_id: str) -> bool:
        """Refuse: jpsi does not run a job again.

        Raises:
            CommandError: always.
        """
        raise CommandError(1, f"jpsi cannot requeue job {native_id}\n")

    def signal(self, native_id: str, number: int) -> bool:
        """Return False: jpsi sends no signals to jobs, but ends them."""
        del native_id, number
        return False

    # The way to the executor.

    def _handover(self, job: FakeJob) -> _Handover:
        return self._handovers[job.native_id]

    def _is_on_its_way(self, job: FakeJob) -> bool:
        handover = self._handover(job)
        return handover.is_begun and not handover.is_done and not job.state.final

    def _set_held(self, native_id: str, *, is_held: bool) -> bool:
        job = next(it for it in self.jobs if it.native_id == native_id)
        handover = self._handover(job)
        if job.state not in {FakeState.PENDING, FakeState.HELD}:
            return False
        if handover.is_done:
            try:
                (self._executor.hold if is_held else self._executor.release)(handover.job)
            except JpsiError as e:
                raise CommandError(1, f"{e}\n") from e
        job.state = FakeState.HELD if is_held else FakeState.PENDING
        self._journal.append({"kind": "hold", "job": native_id, "is_held": is_held})
        return True

    def _hand_over_ready(self) -> None:
        """Hand over the jobs that wait for nothing; called under the lock."""
        batches: dict[str, list[FakeJob]] = {}
        # a queue may have many jobs that have ended, and this is called at each event
        self._waiting = [it for it in self._waiting if not it.state.final and not self._handover(it).is_begun]
        for job in self._waiting:
            handover = self._handover(job)
            if job.state is not FakeState.PENDING:
                continue
            job.why = (None if job.blocked is None else job.blocked()) or ""
            # `blocked` may have cancelled it
            if not job.why and job.state is FakeState.PENDING:
                handover.is_begun = True
                batches.setdefault(job.number, []).append(job)
        for batch in batches.values():
            self._pool.submit(self._hand_over, batch)

    def _hand_over(self, batch: list[FakeJob]) -> None:
        own = {self._handover(job).job: job for job in batch}
        failed: Mapping[jpsi.Job, JpsiError] = {}
        try:
            if len(own) == 1:
                self._executor.submit(next(iter(own)))
            else:
                self._executor.submit_many(own)
        except BulkException as e:
            failed = e.failed
        except JpsiError as e:
            failed = dict.fromkeys(own, e)
        except Exception as e:
            log.exception("jobs could not be handed over")
            failed = dict.fromkeys(own, JpsiError(f"{type(e).__name__}: {e}"))
        with self._changed:
            for job, mine in own.items():
                handover = self._handover(mine)
                handover.is_done = True
                if job in failed:
                    handover.refusal = str(failed[job])
                    mine.why = f"launch failed: {failed[job]}"
                    self._end(mine, FakeState.FAILED, refusal=handover.refusal)
            self._journal.append({"kind": "handover", "jobs": [it.native_id for it in own.values()]})
            cancelled = [it for it in batch if self._handover(it).is_cancelled]
            self._hand_over_ready()
            self._changed.notify_all()
        self._cancel(cancelled)

    def _cancel(self, jobs: Iterable[FakeJob]) -> None:
        """Cancel jobs that the executor has; a job that it gets at this moment is cancelled then."""
        with self.lock:
            ready = [it.job for it in map(self._handover, jobs) if it.is_done and not it.refusal]
        if not ready:
            return
        try:
            self._executor.cancel_many(ready)
        except BulkException as e:
            for job, error in e.failed.items():
                log.warning("job %s could not be cancelled: %s", job.id, error)

    # What became of the jobs.

    def _note_status(self, job: jpsi.Job, status: JobStatus) -> None:
        with self._changed:
            mine = self._by_id.get(job.id)
            if mine is not None:
                self._update(mine, status)
                self._hand_over_ready()
                self._changed.notify_all()

    def _update(self, job: FakeJob, status: JobStatus) -> None:
        if job.state.final:
            return
        if status.state is JobState.ACTIVE and job.state is not FakeState.RUNNING:
            job.state, job.started = FakeState.RUNNING, status.time.timestamp()
            self._speaker.started(job)
        if not status.final:
            return
        if job.started is None and status.exit_code is not None:
            # a job that ended while no server followed it
            job.started = status.time.timestamp()
            self._speaker.started(job)
        number = status.metadata.get("signal")
        job.signal = number if isinstance(number, int) else None
        job.exit_code = None if job.signal is not None else status.exit_code
        if status.state is JobState.COMPLETED:
            self._end(job, FakeState.COMPLETED, status)
        elif status.state is JobState.CANCELED:
            job.signal, job.exit_code = (None if job.started is None else signal.SIGTERM), None
            self._end(job, FakeState.CANCELLED, status)
        else:
            if status.exit_code is None and status.reason in _NEVER_RAN:
                job.why = f"launch failed: {status.message}"
            state = _END_STATES.get(status.reason) if status.reason is not None else None
            self._end(job, state or FakeState.FAILED, status)

    def _end(
        self, job: FakeJob, state: FakeState, status: JobStatus | None = None, refusal: str = ""
    ) -> None:
        job.state = state
        job.ended = self.clock() if status is None else status.time.timestamp()
        if job.started is not None:
            job.ended = max(job.ended, job.started)
        self._journal.append(
            {
                "kind": "end",
                "job": job.native_id,
                "state": state.value,
                "started": job.started,
                "ended": job.ended,
                "exit_code": job.exit_code,
                "signal": job.signal,
                "why": job.why,
                "refusal": refusal,
            }
        )

    # What the journal says.

    def _restore(self) -> None:
        with self.lock:
            entries = list(self._journal.entries())
            old = old_numbers(entries, self.clock())
            if old:
                entries = [it for it in entries if entry_number(it) not in old]
                self._journal.replace(entries)
                numbers = set(map(str, old))
                for file in (self._folder / "scripts").iterdir():
                    if file.name.partition(".")[0] in numbers:
                        file.unlink(missing_ok=True)
            for entry in entries:
                try:
                    _RESTORERS[entry["kind"]](self, entry)
                except (KeyError, OSError, StopIteration):
                    # jpsi itself still knows the jobs of a submission that is read no longer
                    log.exception("an entry of the journal about %s is left out", entry_number(entry))
            self._recorded = None
            left = {self._handover(job).job_id: job for job in self.jobs if not job.state.final}
            if left:
                self._recall(left)
            self._hand_over_ready()

    def _restore_submission(self, entry: Entry) -> None:
        self._recorded = entry
        script = (self._folder / "scripts" / str(entry["number"])).read_bytes()
        call = _Recorded(
            argv=entry["argv"],
            environment=entry["environment"],
            directory=entry["directory"],
            stdin=script.decode(errors="surrogateescape"),
        )
        self.is_lenient = entry["is_lenient"]
        self._call = entry["key"], call
        before = len(self.jobs)
        result = self._carry_out(call)
        own = self.jobs[before:]
        self._replies[entry["key"]] = result, own
        for job, job_id in zip(own, entry["ids"], strict=False):
            self._by_id[job_id] = job
            self._handover(job).job_id = job_id

    def _restore_hold(self, entry: Entry) -> None:
        job = self._job(entry["job"])
        job.state = FakeState.HELD if entry["is_held"] else FakeState.PENDING

    def _restore_handover(self, entry: Entry) -> None:
        for native_id in entry["jobs"]:
            handover = self._handovers[native_id]
            handover.is_begun = handover.is_done = True

    def _restore_id(self, entry: Entry) -> None:
        self._by_id[entry["id"]] = self._job(entry["job"])
        self._handovers[entry["job"]].job_id = entry["id"]

    def _restore_refusal(self, entry: Entry) -> None:
        number = self._job(entry["job"]).number
        self.jobs = [it for it in self.jobs if it.number != number]

    def _restore_end(self, entry: Entry) -> None:
        job = self._job(entry["job"])
        job.state = FakeState(entry["state"])
        job.started, job.ended = entry["started"], entry["ended"]
        job.exit_code, job.signal, job.why = entry["exit_code"], entry["signal"], entry["why"]
        self._handover(job).refusal = entry["refusal"]
        if job.started is not None:
            self._speaker.started(job)

    def _job(self, native_id: str) -> FakeJob:
        return next(it for it in reversed(self.jobs) if it.native_id == native_id)

    def _recall(self, left: Mapping[str, FakeJob]) -> None:
        """Find the jobs that had not ended; those that the executor never had are handed over again."""
        missing = dict(left)
        deadline = time.monotonic() + _RECALL_SECONDS
        while True:
            for job in self._executor.recall(list(missing)):
                mine = missing.pop(job.id)
                handover = self._handover(mine)
                handover.job = job
                handover.is_begun = handover.is_done = job.status.state is not JobState.NEW
                self._update(mine, job.status)
            on_disk = {job.id for job in job_store.jobs()} if missing else set()
            if on_disk.isdisjoint(missing) or time.monotonic() > deadline:
                break
            # a submit command of the server that was killed is still at work
            time.sleep(0.2)
        for job_id, mine in missing.items():
            handover = self._handover(mine)
            if handover.is_done or job_id in on_disk:
                mine.why = "jpsi has no trace of it"
                self._end(mine, FakeState.NODE_FAIL)
                continue
            handover.job = jpsi.Job(mine.attributes[SPEC])
            self._by_id[handover.job.id] = mine
            self._journal.append(
                {"kind": "id", "job": mine.native_id, "id": handover.job.id}, is_durable=True
            )


_RESTORERS: Mapping[str, Callable[[JobQueue, Any], None]] = {
    "submission": JobQueue._restore_submission,  # noqa: SLF001  of this module
    "hold": JobQueue._restore_hold,  # noqa: SLF001
    "handover": JobQueue._restore_handover,  # noqa: SLF001
    "id": JobQueue._restore_id,  # noqa: SLF001
    "refusal": JobQueue._restore_refusal,  # noqa: SLF001
    "end": JobQueue._restore_end,  # noqa: SLF001
}

"""The engine for batch systems: hooks say what to run and what the answers mean, this does it.

A job is written down before it is sent, marked with a tag that the batch system carries, and run by a script
that first claims its attempt: so that each job runs once, whatever fails between here and there.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import random
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import platformdirs

from jpsi.contract.asked import dependencies
from jpsi.contract.hookspecs import ExecutorHooks, SubmitContext
from jpsi.contract.observation import Failure, FailureKind, Observation
from jpsi.contract.protocols import EngineSetup, InterruptedSubmission, Recovered, Streams, Submission
from jpsi.contract.script_form import SOME_TAG
from jpsi.contract.shell import ShellLine, line, word
from jpsi.engine import runner
from jpsi.engine.asking import Asking
from jpsi.engine.backend import Backend
from jpsi.engine.filesystems import is_on_network
from jpsi.engine.hearing import Hearing, hearing
from jpsi.engine.judging import Judging
from jpsi.engine.native_ids import NativeIds
from jpsi.engine.native_ids import tag as tag_of
from jpsi.engine.poller import Poller
from jpsi.engine.prechecks import at_home, problems_here
from jpsi.engine.predecessors import Predecessors
from jpsi.engine.rounds import Rounds
from jpsi.engine.runner_frame import SETUP_CODE, BatchFrame
from jpsi.engine.sharing import Sharing
from jpsi.engine.spool import Intent, Spool, folder_name, is_transient
from jpsi.engine.tracked import Tracked
from jpsi.engine.tracker import CANCEL, Stop, never_ran
from jpsi.engine.tracking import Tracking
from jpsi.engine.verdict import settles
from jpsi.model import plain
from jpsi.model.dependencies import Dependency
from jpsi.model.errors import InvalidJobException, JpsiError, SubmitException
from jpsi.model.spec import JobSpec
from jpsi.model.states import JobState

log = logging.getLogger(__name__)

# How long all submissions together are waited for that others have under way. A submit command that was
# orphaned holds the lock until it ends, which it may never do.
_JUDGE_SECONDS = 10.0
_LOCAL_GRACE_SECONDS = 0.5
_CLAIM_POLL_SECONDS = 0.02
_SUBJECT = "the job"


class _UnsafeError(Exception):
    """What is written down about a job may not outlive a crash."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class _BusyError(Exception):
    """Another process has the submission of a job under way."""


class BatchEngine:
    """Runs jobs through a batch system's commands; implements `jpsi.plugin.Engine`."""

    def __init__(self, setup: EngineSetup, hooks: ExecutorHooks) -> None:
        self._setup = setup
        self._backend = Backend(setup, hooks)
        self._config = config = self._backend.config
        self._grace_seconds = _LOCAL_GRACE_SECONDS
        root = config.work_directory or platformdirs.user_state_path("jpsi") / "work"
        self._spool = Spool(Path(root).expanduser().absolute() / folder_name(setup.executor, setup.target))
        self._renew()
        _engines.add(self)

    def _renew(self) -> None:
        """Follow nothing: after a fork, jobs, threads and locks stay with the parent."""
        self._slots = threading.BoundedSemaphore(self._config.submit_concurrency)
        self._lock = threading.Lock()
        self._native_ids = NativeIds(self._backend, self._spool)
        self._opened: tuple[Tracking, Rounds] | None = None
        shortest = self._config.shortest_interval.total_seconds()
        self._predecessors = Predecessors(self._backend, self._spool, self._native_ids, shortest)
        self._hearing: Hearing | None = None

    def offers(self) -> Mapping[str, Any]:
        """What the probe found; see `jpsi.plugin.Engine`."""
        return self._backend.site.offers

    def problems(self, spec: JobSpec) -> list[str]:
        """Why a spec cannot run here as things are now; see `jpsi.plugin.Engine`."""
        after, found = tuple(dependencies(spec)), list[str]()
        for native_id in (it.native_id for it in after if it.native_id):
            try:
                self._backend.canonical(native_id)
            except ValueError as e:
                found.append(f"attributes.after: {e}")
        context = SubmitContext(site=self._backend.site, job_id="", tag=SOME_TAG, after=after)
        try:
            self._backend.render(spec, context)
        except ValueError as e:
            found.append(str(e))
        return found + problems_here(spec, "/bin/sh")

    # ------------------------------------------------------------------------------------- submission

    def submit(self, submission: Submission) -> str:
        """Submit one job; see `jpsi.plugin.Engine`."""
        job_id, attempt = submission.job_id, submission.attempt
        tracking, _ = self._open()
        with self._slots:
            # Only now: what is known of other jobs grows old while one waits.
            with self._reading():
                after = self._predecessors.still_open(submission.spec, tracking)
            begun = time.monotonic()
            try:
                native_id = self._submit(submission, after)
            except InterruptedSubmission as e:
                tracking.add(Tracked(job_id, job_id, attempt, e.native_id))
                raise
        tracking.add(Tracked(job_id, job_id, attempt, native_id, accepted=begun))
        return native_id

    def _submit(self, submission: Submission, after: tuple[Dependency, ...]) -> str:
        job_id, attempt = submission.job_id, submission.attempt
        try:
            self._end_earlier(job_id, attempt)
            lock = self._prepare(submission)
        except FileExistsError as e:
            msg = f"job {job_id} was submitted by another process in the meantime"
            raise SubmitException(msg, e) from e
        except OSError as e:
            msg = f"job {job_id} could not be written down in {self._spool.root}: {e}"
            raise SubmitException(msg, e, transient=is_transient(e)) from e
        try:
            native_id = self._send(submission, after, lock)
            self._note(job_id, lock, native_id)
        finally:
            os.close(lock)
        return native_id

    def _end_earlier(self, job_id: str, attempt: int) -> None:
        """Make sure that no earlier attempt of a job can run any more."""
        for earlier in range(1, attempt):
            if self._spool.has_intent(job_id, earlier) and self._withdraw(job_id, earlier) is not None:
                msg = f"attempt {earlier} of job {job_id} runs already; recover() finds it"
                raise SubmitException(msg)

    def _prepare(self, submission: Submission) -> int:
        spec, job_id = submission.spec, submission.job_id
        directory = str(spec.directory or os.getcwd())  # noqa: PTH109  as it is now, not resolved
        run = runner.Run(
            job_id=job_id,
            attempt=submission.attempt,
            folder=self._spool.folder(job_id),
            events=self._spool.events,
            directory=directory,
            spec=spec,
            launch=submission.launch,
            rank_variables=submission.rank_variables,
            sources_scripts=submission.sources_scripts,
            nodes=submission.nodes,
            prologue=self._config.prologue,
            frame=BatchFrame(self._backend.capabilities.id_variable),
        )
        intent = {
            "id": job_id,
            "attempt": submission.attempt,
            "executor": self._setup.executor,
            "version": self._setup.version,
            "time": datetime.now(UTC).isoformat(),
            "directory": directory,
            "spec": plain.encode(spec),
        }
        return self._spool.prepare(job_id, submission.attempt, intent, runner.render(run))

    def _send(self, submission: Submission, after: tuple[Dependency, ...], lock: int) -> str:
        """Have the batch system take a job that is written down, and return its native id."""
        job_id, attempt = submission.job_id, submission.attempt
        tag = tag_of(job_id, attempt)
        context = SubmitContext(site=self._backend.site, job_id=job_id, tag=tag, after=after)
        try:
            script = self._backend.render(submission.spec, context)
            script = attrs.evolve(script, run=self._run_line(job_id, attempt))
            # What is written outlives a crash of this machine before the batch system hears of it.
            ready = functools.partial(self._sync, lock)
            submitted = self._backend.submit(script, submission.spec, context, lock, ready)
        except _UnsafeError as e:
            # nothing was submitted
            self._spool.discard(job_id, attempt)
            msg = f"job {job_id} could not be written down in {self._spool.root}: {e.error}"
            raise SubmitException(msg, e.error, transient=is_transient(e.error)) from e
        except BaseException as e:
            # Whether the command had its effect or never began: the attempt can run no more, or has begun.
            native_id = self._given_up(job_id, attempt)
            if native_id is None:
                raise
            if not isinstance(e, Exception):
                raise InterruptedSubmission(native_id, e) from e
            return native_id
        if submitted.native_id is not None:
            return submitted.native_id
        failure = submitted.failure or Failure(FailureKind.AMBIGUOUS, "it did not say why")
        if failure.kind is FailureKind.AMBIGUOUS:
            return self._resolve(job_id, attempt, tag, failure)
        if attempt == 1:
            self._spool.discard(job_id, attempt)
        else:
            self._given_up(job_id, attempt)
        msg = f"{self._setup.executor} did not take job {job_id}: {failure.message}"
        if failure.kind is FailureKind.INVALID_JOB:
            raise InvalidJobException.of(_SUBJECT, [f"{self._setup.executor} refuses it: {failure.message}"])
        raise SubmitException(msg, transient=failure.kind is FailureKind.TRANSIENT)

    def _sync(self, lock: int) -> None:
        try:
            self._spool.sync(lock)
        except OSError as e:
            raise _UnsafeError(e) from e

    def _run_line(self, job_id: str, attempt: int) -> ShellLine:
        # A script that a crash of this machine, or somebody who cleaned up, has taken ends in no success; nor
        # does a shell that is not there look like the job's own exit code 127.
        run, shell = f"{self._spool.folder(job_id)}/run.{attempt}", self._config.shell_command
        marker = word(f"{self._spool.events}/{job_id}.{attempt}.exit.{runner.SHELL}.{SETUP_CODE}")
        is_there, can_run = line("test", "-s", run), line("test", "-x", shell[0])
        note = f"{{ {can_run} || {{ true >{marker}; exit {SETUP_CODE}; }}; }}"
        return ShellLine(f"{is_there} && {note} && {line('exec', *shell, run)}; exit {SETUP_CODE}")

    def _resolve(self, job_id: str, attempt: int, tag: str, failure: Failure) -> str:
        """Find out what became of a submission that got no clear answer.

        Raises:
            SubmitException: nothing came of it, and nothing can any more.
        """
        try:
            found = (self._backend.find([tag]) or {}).get(tag)
        except JpsiError as e:
            log.info("job %s was not to be looked for: %s", job_id, e)
            found = None
        native_id = found or self._given_up(job_id, attempt)
        if native_id is not None:
            return native_id
        unclear = f"{self._setup.executor} gave no clear answer about job {job_id}"
        msg = f"{unclear}, which will not run: {failure.message}"
        raise SubmitException(msg, transient=True)

    def _given_up(self, job_id: str, attempt: int) -> str | None:
        """Withdraw an attempt of which the caller is told that it failed; its files stay for stragglers.

        Returns its native id if it has begun to run all the same.
        """
        try:
            native_id = self._withdraw(job_id, attempt)
            if native_id is None:
                # whoever recovers jobs has nothing to do with it
                self._spool.finish(job_id, attempt, plain.encode_status(never_ran()))
        except FileNotFoundError:
            return None  # its folder was removed, and what would have run with it
        except OSError as e:
            msg = f"job {job_id} may run or not: {self._spool.root} cannot be written: {e}"
            raise SubmitException(msg, e, transient=is_transient(e)) from e
        return native_id

    def _withdraw(self, job_id: str, attempt: int) -> str | None:
        """Make sure that an attempt can never run; if it has begun to, return its native id."""
        if self._spool.revoke(job_id, attempt):
            return None
        # Between making its claim and writing into it a runner may be seen, or may have died.
        deadline = time.monotonic() + self._grace_seconds
        while (claim := self._spool.claim(job_id, attempt)) is not None and not claim.text:
            if time.monotonic() > deadline:
                break
            time.sleep(_CLAIM_POLL_SECONDS)
        return self._native_ids.claimant(job_id, attempt)

    def _note(self, job_id: str, lock: int, native_id: str) -> None:
        try:
            self._spool.started(lock, native_id)
        except OSError:
            # its claim, made when it begins to run, and its tag tell it as well
            log.warning(
                "job %s: its native id %s could not be written down", job_id, native_id, exc_info=True
            )

    # ----------------------------------------------------------------------------------------- files

    def _open(self) -> tuple[Tracking, Rounds]:
        with self._lock:
            if self._opened is not None:
                return self._opened
            try:
                self._spool.open()
            except OSError as e:
                msg = f"the work directory {self._spool.root} cannot be used: {e}"
                raise SubmitException(msg, e, transient=is_transient(e)) from e
            config = self._config
            is_shared = config.network_files
            if is_shared is None:
                is_shared = is_on_network(self._spool.events)
            patience = config.grace.total_seconds()
            self._grace_seconds = patience if is_shared else min(patience, _LOCAL_GRACE_SECONDS)
            poller = Poller(
                config.shortest_interval.total_seconds(),
                config.longest_interval.total_seconds(),
                random.random,
            )
            tracking = Tracking(
                self._backend,
                self._spool,
                poller=poller,
                asking=Asking(self._backend, Sharing(self._spool.root), poller),
                judging=Judging(
                    self._backend,
                    self._spool,
                    grace=self._grace_seconds,
                    patience=patience,
                    publish=self._setup.publish,
                ),
                native_ids=self._native_ids,
                renamed=self._setup.renamed,
            )
            rounds = Rounds(tracking, self._spool.events, is_announced=not is_shared)
            self._opened = tracking, rounds
            self._hearing = hearing(self._backend, tracking, rounds) if self._backend.tells else None
            threading.Thread(target=self._prune, name="jpsi-prune", daemon=True).start()
            return self._opened

    def _prune(self) -> None:
        config = self._config
        try:
            self._spool.prune(time.time(), config.keep_time.total_seconds(), config.keep_count, self._settles)
        except OSError:
            log.warning("old jobs in %s could not be removed", self._spool.root, exc_info=True)

    def _settles(self, markers: list[Any]) -> bool:
        return settles(markers, self._backend.requeue_exit_codes)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except OSError as e:
            msg = f"the jobs in {self._spool.root} cannot be read: {e}"
            raise SubmitException(msg, e, transient=is_transient(e)) from e

    # -------------------------------------------------------------------------------------- following

    def track(self, job_id: str) -> None:
        """Follow a job; see `jpsi.plugin.Engine`."""
        tracking, rounds = self._open()
        job = tracking.get(job_id)
        if job is not None:
            tracking.follow(job, time.monotonic())
            try:
                rounds.begin()
                if self._hearing is not None:
                    self._hearing.begin()
            except RuntimeError:
                # the batch system has the job; the next one that is followed brings the threads
                log.warning("no thread could be started to follow jobs", exc_info=True)

    def attach(self, job_id: str, native_id: str) -> str:
        """Let a job stand for one of the batch system's; see `jpsi.plugin.Engine`."""
        try:
            native_id = self._backend.canonical(native_id)
        except ValueError as e:
            msg = f"{native_id!r} cannot be the native id of a job: {e}"
            raise SubmitException(msg, e) from e
        tracking, _ = self._open()
        with self._reading():
            own = self._native_ids.owner(native_id)
        if own is None:
            tracking.add(Tracked(job_id, job_id, 0, native_id))
        else:
            tracking.add(Tracked(job_id, own.job_id, own.attempt, native_id))
        return native_id

    def recover(self) -> Sequence[Recovered]:
        """Find the jobs on disk that are not final; see `jpsi.plugin.Engine`."""
        tracking, _ = self._open()
        with self._reading():
            job_ids = self._spool.job_ids()
        intents = []
        for job_id in job_ids:
            try:
                intent = None if self._is_known(tracking, job_id) else self._spool.last_intent(job_id)
            except (OSError, ValueError):
                log.warning("job %s: its folder cannot be understood", job_id, exc_info=True)
                continue
            if intent is not None:
                intents.append(intent)
        lost = [intent for intent in intents if self._native_ids.of(intent) is None]
        tags = self._find(lost)
        found, busy = self._judge_each(intents, tags, 0.0)
        # those that are held up keep no other from being found
        more, busy = self._judge_each(busy, tags, _JUDGE_SECONDS)
        found += more
        if busy:
            names = ", ".join(intent.job_id for intent in busy)
            log.warning(
                "being submitted by other processes, and left out until recover() is called again: %s", names
            )
        # Only now, as an error before leaves all of them to the next call.
        for job in found:
            if job.native_id is not None:
                tracking.add(Tracked(job.job_id, job.job_id, job.attempt, job.native_id))
        return found

    def _is_known(self, tracking: Tracking, job_id: str) -> bool:
        return tracking.get(job_id) is not None or self._spool.is_final(job_id, self._settles)

    def _find(self, intents: Sequence[Intent]) -> Mapping[str, str]:
        """The native ids, by tag, of jobs whose submitter died before it could write them down."""
        if not intents:
            return {}
        return self._backend.find([tag_of(intent.job_id, intent.attempt) for intent in intents]) or {}

    def _judge_each(
        self, intents: Sequence[Intent], tags: Mapping[str, str], patience: float
    ) -> tuple[list[Recovered], list[Intent]]:
        """What is to be recovered of these, and those that are still held up after so many seconds."""
        found, busy = [], []
        deadline = time.monotonic() + patience
        for intent in intents:
            try:
                recovered = self._recovered(intent, tags, deadline)
            except _BusyError:
                busy.append(intent)
            except (OSError, KeyError, TypeError, ValueError):
                log.warning("job %s: its folder cannot be understood", intent.job_id, exc_info=True)
            else:
                found += [] if recovered is None else [recovered]
        return found, busy

    def _recovered(self, intent: Intent, tags: Mapping[str, str], deadline: float) -> Recovered | None:
        job_id, attempt = intent.job_id, intent.attempt
        native_id = self._native_ids.of(intent) or tags.get(tag_of(job_id, attempt))
        if native_id is None:
            with self._spool.judging(intent, max(0.0, deadline - time.monotonic())) as may_judge:
                if not may_judge:
                    raise _BusyError
                native_id = self._judged(job_id, attempt)
        if native_id is None and self._spool.read_stop(job_id, attempt) is not None:
            # told to end before it had begun: that is how it ended
            self._spool.finish(job_id, attempt, plain.encode_status(never_ran()))
            return None
        return Recovered(
            job_id=job_id,
            attempt=attempt,
            spec=plain.decode(intent.content["spec"]),
            native_id=native_id,
            time=datetime.fromisoformat(intent.content["time"]),
        )

    def _judged(self, job_id: str, attempt: int) -> str | None:
        """The native id of an attempt whose submitter is done with it; without one it can run no more."""
        intent = self._spool.last_intent(job_id)
        if intent is not None and intent.attempt == attempt and intent.native_id is not None:
            return intent.native_id
        tag = tag_of(job_id, attempt)
        found = (self._backend.find([tag]) or {}).get(tag)
        return found or self._withdraw(job_id, attempt)

    def native_ids(self) -> list[str]:
        """The native ids of the jobs that are not final."""
        return [] if self._opened is None else [job.native_id for job in self._opened[0].all()]

    def streams(self, job_id: str) -> Streams | None:
        """Where the output of a job goes; None for a job that is none of jpsi's."""
        job = None if self._opened is None else self._opened[0].get(job_id)
        spool_id = job_id if job is None else job.spool_id
        intent = self._spool.last_intent(spool_id)
        if intent is None:
            return None
        spec = plain.decode(intent.content["spec"])
        directory = at_home(Path(intent.content["directory"]))
        folder = Path(self._spool.folder(spool_id))
        return Streams(
            directory / at_home(spec.stdout_path or folder / runner.STDOUT),
            directory / at_home(spec.stderr_path or folder / runner.STDERR),
        )

    # --------------------------------------------------------------------------------------- requests

    def cancel(self, job_id: str) -> None:
        """Ask a job to end; see `jpsi.plugin.Engine`."""
        tracking, _ = self._open()
        job = tracking.get(job_id)
        if job is None and not self._spool.is_final(job_id, self._settles):
            msg = f"job {job_id} is followed by another process; attach to it or recover it to cancel it"
            raise SubmitException(msg)
        if job is None:
            return
        try:
            # Remembered before it is asked for: whoever sees the end must know who wanted it.
            tracking.remember_stop(job, Stop(CANCEL, datetime.now(UTC)))
        except OSError as e:
            msg = f"job {job_id} could not be told to end: {e}"
            raise SubmitException(msg, e, transient=is_transient(e)) from e
        self._check(self._backend.cancel([job.native_id]), job, "cancelled")
        self._ask_about(job)

    def _ask_about(self, job: Tracked) -> None:
        """Have the batch system asked soon what became of a request."""
        tracking, rounds = self._open()
        tracking.changed(job, time.monotonic())
        rounds.begin()

    def hold(self, job_id: str) -> None:
        """Keep a pending job from starting; see `jpsi.plugin.Engine`."""
        job = self._present(job_id)
        self._ask_about(job)
        seen = self.info(job_id)
        if seen is not None and seen.state is JobState.ACTIVE:
            # some would say nothing, and hold it if it were ever put back
            msg = f"job {job_id} ({job.native_id}) runs, and only a job that waits can be held"
            raise SubmitException(msg)
        self._check(self._backend.hold([job.native_id]), job, "held")
        self._ask_about(job)

    def release(self, job_id: str) -> None:
        """Let a held job start; see `jpsi.plugin.Engine`."""
        job = self._present(job_id)
        self._check(self._backend.release([job.native_id]), job, "released")
        self._ask_about(job)

    def info(self, job_id: str) -> Observation | None:
        """What the batch system says about a job now; see `jpsi.plugin.Engine`."""
        job = self._present(job_id)
        return self._open()[0].info(job, time.monotonic, time.sleep)

    def _present(self, job_id: str) -> Tracked:
        job = self._open()[0].get(job_id)
        if job is None:
            msg = f"job {job_id} has ended, or was never submitted here"
            raise SubmitException(msg)
        return job

    @staticmethod
    def _check(refusals: Mapping[str, str], job: Tracked, done: str) -> None:
        why = refusals.get(job.native_id)
        if why is not None:
            msg = f"job {job.job_id} ({job.native_id}) could not be {done}: {why}"
            raise SubmitException(msg, transient=True)


_engines: weakref.WeakSet[BatchEngine] = weakref.WeakSet()


def _after_fork() -> None:
    for engine in _engines:
        engine._renew()  # noqa: SLF001  the same module


os.register_at_fork(after_in_child=_after_fork)

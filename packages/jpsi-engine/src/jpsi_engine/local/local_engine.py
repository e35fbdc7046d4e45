"""The engine for processes of this machine: one runner per job, whose exit the kernel reports.

A job is a session of its own. Its runner outlives the client, so that the exit code reaches the spool, where
any later client finds it.
"""

from __future__ import annotations

import errno
import logging
import os
import platform
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import attrs

from jpsi import Streams
from jpsi.plugin import JobSpec, JobState, Observation, SubmitException
from jpsi.plugin.engine import (
    Engine,
    EngineSetup,
    Outcomes,
    Preview,
    Recovered,
    Submission,
    exec_limits,
    process_count,
    serialization,
    walltime_limit,
)
from jpsi_engine import host, scheduler, spool
from jpsi_engine.array_expansion import array_problems
from jpsi_engine.local import exits
from jpsi_engine.local.programs import program_of
from jpsi_engine.local.slots import ArrayLimit, Slots, core_count
from jpsi_engine.local.spawn import spawn, spawn_watchdog
from jpsi_engine.local.starter import ProgramFiles, StartedProgram, StarterLostError, shared_starter
from jpsi_engine.local.supervision import SupervisedProcess, Supervisor
from jpsi_engine.runner import (
    ProcessFrame,
    Run,
    WalltimeWarning,
    container_commands,
    container_problems,
    job_shell,
    local_problems,
    render_runner,
    resolve_streams,
    warning_problems,
)
from jpsi_engine.scheduler import RetryLoop, SubmissionCancelled, SubmitQueue, not_admitted_error
from jpsi_engine.verdict import CANCEL, datetime_from_ns, has_exit_marker, never_ran_status, retry_problems

log = logging.getLogger(__name__)

# How long to wait for another process's submission. From the intent to the runner's claim takes milliseconds.
_JUDGE_SECONDS = 5.0
_STARTS_AT_A_TIME = 4
_PLAIN_SHELL = ["/bin/sh"]


class LocalEngine(Engine):
    """An engine that runs jobs as processes of this machine.

    Raises:
        ConfigError: other users can change a directory on the path to the work directory.
    """

    retries = True

    def __init__(self, setup: EngineSetup) -> None:
        self._setup = setup
        self._shell = setup.config.shell_command
        # Machines may share a home directory, but not processes.
        root = spool.work_directory(setup.config.work_directory)
        folder = root / spool.folder_name(setup.executor, setup.target)
        host.check_way(folder, spool.WORK_DIRECTORY)
        self._spool = spool.Spool(folder / platform.node())
        self._submit_queue = SubmitQueue()
        self._retry_loop = RetryLoop(self, self._spool, setup, self._has_job)
        self._supervisor = Supervisor(
            self._spool,
            setup.config.kill_delay,
            setup.publish,
            self._submit_queue.recheck,
            self._retry_loop.add,
        )
        self._slots = Slots(self._spool.root, setup.config.max_active)
        self._lock = threading.Lock()
        self._is_open = False

    def problems(self, spec: JobSpec) -> list[str]:
        """Return the reasons why a spec cannot run here at present; see `jpsi.plugin.engine.Engine`."""
        found = [*array_problems(spec), *local_problems(spec, self._shell[0])]
        found += [*warning_problems(spec, self._setup.config), *container_problems(spec, self._setup.config)]
        found += retry_problems(spec)
        most = self._slots.count
        if most is not None and (needed := core_count(spec.resources)) > most:
            found.append(f"it needs {needed} cores, and max_active of this executor is {most}")
        # the runner inherits this program's environment, and execs a command that sets up the job's own
        beyond = list(exec_limits(spec, os.environ))
        return found if found or (beyond and any(exec_limits(spec))) else beyond

    def give_up(self, job_ids: Collection[str] | None) -> None:
        """Stop waiting for slots for these jobs; see `jpsi.plugin.engine.Engine`."""
        self._submit_queue.give_up(job_ids)

    def submit(self, submission: Submission) -> str:
        """Start a job once enough slots are free; see `jpsi.plugin.engine.Engine`."""
        with host.convert_os_errors(f"job {submission.job_id} could not be started", self._spool.root):
            try:
                job = self._start(submission)
            except FileExistsError as e:
                msg = f"job {submission.job_id} was submitted by another process in the meantime"
                raise SubmitException(msg, e) from e
            except SubmissionCancelled as e:
                raise not_admitted_error(submission.job_id) from e
        with self._lock:
            self._supervisor.add(job)
        return job.process.native_id if job.process is not None else ""

    def submit_and_report(self, submission: Submission, report: Callable[[Outcomes], None]) -> None:
        """Start a job in a thread of its own: between its start and the report no interrupt comes."""
        self.submit_many([submission], report)

    def submit_many(self, submissions: Sequence[Submission], report: Callable[[Outcomes], None]) -> None:
        """Start several jobs at a time; see `jpsi.plugin.engine.Engine`."""
        ids = [it.job_id for it in submissions]

        def start(submission: Submission) -> None:
            Engine.submit_and_report(self, submission, report)

        host.concurrently(submissions, start, _STARTS_AT_A_TIME, lambda: self.give_up(ids))

    def _start(self, submission: Submission) -> SupervisedProcess:
        """Start a job; if slots or its array are limited, it occupies its slots until its process ends."""
        self._open()
        slots, limit = self._slots, ArrayLimit.of(submission.spec)
        if slots.count is None and limit is None:
            return self._start_process(submission)
        needed = core_count(submission.spec.resources)
        acquired = self._submit_queue.acquire([submission.job_id], lambda: slots.acquire(needed, limit))
        try:
            job = self._start_process(submission)
        except BaseException:
            acquired.release()
            raise
        if job.process is not None:
            acquired.transfer_to(job.process)
        return job

    def _start_process(self, submission: Submission) -> SupervisedProcess:
        spec, job_id = submission.spec, submission.job_id
        umask, state = host.inherited_state()
        now, run = datetime.now(UTC), self._run(submission, umask)
        intent = {
            "id": job_id,
            "attempt": submission.attempt,
            "executor": self._setup.executor,
            "version": self._setup.version,
            "time": now.isoformat(),
            "boot": host.boot_id(),
            "directory": run.directory,
            "spec": serialization.encode(spec) if submission.plain is None else submission.plain,
        }
        # No fsync: a crash of the machine, which could lose this file, ends the job as well.
        duration = walltime_limit(spec, self._setup.config)
        lock = self._spool.prepare(job_id, submission.attempt, intent, None)
        try:
            started = None
            if duration is None and umask is not None:
                started = self._start_program(run, int(umask, 8), state, lock)
            is_child, program, starter = started is None, None, None
            if isinstance(started, StartedProgram):
                process, program, starter = started.process, started, started.starter_pid
            elif started is not None:
                process, starter = started, spool.starter_of(self._spool.claim(job_id, submission.attempt))
            else:
                process = self._spawn(submission, run, lock)
        finally:
            os.close(lock)
        if duration is not None:
            stop_file = f"{self._spool.root}/{spool.stop_file(job_id, submission.attempt)}"
            spawn_watchdog(process, duration, self._setup.config.kill_delay, stop_file)
        return SupervisedProcess(
            job_id,
            job_id,
            submission.attempt,
            process,
            is_child=is_child,
            started=now,
            program=program,
            starter=starter,
            duration=duration,
        )

    def _start_program(
        self, run: Run, umask: int, state: object, lock: int
    ) -> StartedProgram | host.ProcessId | None:
        """Start the program of a job that needs no shell; None if a shell is to do it.

        The result is the process alone if the one that has started it is gone.

        Args:
            run: the attempt.
            umask: the umask of the job.
            state: what programs inherit from this process.
            lock: the descriptor that holds the lock on the attempt.
        """
        if self._shell != _PLAIN_SHELL or (program := program_of(run, umask, os.environ)) is None:
            return None
        starter = shared_starter(state)
        if starter is None:
            return None
        stop = f"{self._spool.root}/{spool.stop_file(run.job_id, run.attempt)}"
        mark = f"{run.folder}/{run.job_id}.{run.attempt}"
        try:
            files = ProgramFiles(run.folder, mark, stop, f"{run.folder}/claim.{run.attempt}")
            return starter.start(program, files, lock)
        except StarterLostError:
            log.warning("job %s: the process that starts programs was lost", run.job_id)
            # it makes no claim any more, and a shell that found one would run nothing
            if self._spool.claim(run.job_id, run.attempt) is None:
                return None
            return self._find_started(run, lock)

    def _find_started(self, run: Run, lock: int) -> host.ProcessId:
        """Return the process of an attempt that was claimed, and record its native id."""
        intent = self._spool.intent(run.job_id, run.attempt)
        process = None
        if intent is not None:
            process = spool.attempts.find_runner(self._spool, intent, is_locked=True)
        if intent is None or process is None:
            return host.ProcessId(spool.attempts.NO_PID, host.UNKNOWN_START)
        if intent.native_id is None:
            self._spool.started(lock, process.native_id)
        return process

    def _run(self, submission: Submission, umask: str | None) -> Run:
        spec, job_id = submission.spec, submission.job_id
        return Run(
            job_id=job_id,
            attempt=submission.attempt,
            folder=self._spool.folder(job_id),
            events=self._spool.events,
            directory=str(spec.directory or os.getcwd()),  # noqa: PTH109  on the way of every submit
            spec=spec,
            launch=submission.launch,
            rank_variables=submission.rank_variables,
            sources_scripts=submission.sources_scripts,
            # a single process needs no list of nodes
            nodes=submission.nodes if process_count(spec.resources) > 1 else (),
            prologue=self._setup.config.prologue,
            frame=ProcessFrame(*filter(None, [umask])),
            warning=WalltimeWarning.of(spec, self._setup.config),
            containers=container_commands(spec, self._setup.config),
        )

    def preview(self, submission: Submission) -> Preview:
        """Return what would be started for a job; see `jpsi.plugin.engine.Engine`."""
        path = self._script(submission)
        text = render_runner(self._run(submission, host.inherited_state()[0]))
        return Preview(
            command=[*job_shell(submission.spec, self._shell), path], script=None, run=text, path=Path(path)
        )

    def _script(self, submission: Submission) -> str:
        return f"{self._spool.folder(submission.job_id)}/run.{submission.attempt}"

    def _spawn(self, submission: Submission, run: Run, lock: int) -> host.ProcessId:
        job_id, attempt = submission.job_id, submission.attempt
        script = self._script(submission)
        tick = host.start_tick()
        try:
            self._spool.write_script(job_id, attempt, render_runner(run))
            pid = spawn([*job_shell(submission.spec, self._shell), script], lock)
        except BaseException:
            self._spool.discard(job_id, attempt)
            raise
        # The process may be gone already, if the application ignores SIGCHLD: then it has no start time.
        process = host.identify_started(pid, tick) or host.ProcessId(pid, host.UNKNOWN_START)
        try:
            self._spool.started(lock, process.native_id)
        except OSError:
            # The runner's claim holds the pid as well.
            log.warning("job %s: its native id could not be recorded", job_id, exc_info=True)
        return process

    def _open(self) -> None:
        with self._lock:
            if self._is_open:
                return
            self._spool.open()
            try:
                # before a job is started, as it could not be followed without the thread
                exits.shared_watch()
                spool.start_pruning(self._spool, self._setup.config, has_exit_marker)
            except RuntimeError as e:
                raise OSError(errno.EAGAIN, str(e)) from e
            self._is_open = True

    def track(self, job_id: str) -> None:
        """Follow a job; see `jpsi.plugin.engine.Engine`."""
        job = self._supervisor.get(job_id)
        if job is not None:
            self._supervisor.track(job)

    def attach(self, job_id: str, native_id: str) -> str:
        """Bind a job to a process; see `jpsi.plugin.engine.Engine`."""
        with host.convert_os_errors(f"the jobs in {self._spool.root} cannot be read"):
            self._open()
            for intent, runner_process in spool.attempts.find_attempts(self._spool, native_id):
                self._supervisor.add(attrs.evolve(self._supervise(intent, runner_process), job_id=job_id))
                return spool.attempts.native_id_of(intent, runner_process)
        process = host.parse_native_id(native_id)
        if process is not None and not (process.is_alive() and host.belongs_to_user(process.pid)):
            process = None
        self._supervisor.add(
            SupervisedProcess(job_id, job_id, 0, process, is_child=False, started=datetime.now(UTC))
        )
        return native_id if process is None else process.native_id

    def recover(self) -> Sequence[Recovered]:
        """Find the jobs on disk that are not final; see `jpsi.plugin.engine.Engine`."""
        with host.convert_os_errors(f"the jobs in {self._spool.root} cannot be read"):
            self._open()
            job_ids = self._spool.job_ids()
            # no client has seen their end yet
            unseen = self._spool.take_markers_of_lost_attempts(job_ids)

        def is_settled(job_id: str) -> bool:
            # what this process submits again is no job of an earlier one
            return job_id in self._retry_loop or (
                job_id not in unseen and self._spool.is_final(job_id, has_exit_marker)
            )

        return self._recover_jobs(job_ids, is_settled)

    def recall(self, job_ids: Collection[str]) -> Sequence[Recovered]:
        """Find single jobs on disk; see `jpsi.plugin.engine.Engine`."""
        with host.convert_os_errors(f"the jobs in {self._spool.root} cannot be read"):
            self._open()
            self._spool.take_markers_of_lost_attempts(job_ids)
        return self._recover_jobs(job_ids, is_settled=lambda _: False)

    def _has_job(self, job_id: str) -> bool:
        return self._supervisor.get(job_id) is not None

    def _recover_jobs(self, job_ids: Iterable[str], is_settled: Callable[[str], bool]) -> list[Recovered]:
        found = []
        for job_id in job_ids:
            if self._has_job(job_id):
                continue
            try:
                is_left_out = is_settled(job_id)
                intent = None if is_left_out else self._spool.last_intent(job_id)
                recovered = None if intent is None else self._recover(intent)
            except (OSError, *spool.DAMAGE) as e:
                scheduler.warn_of_damage(self._spool, job_id, e)
                continue
            if intent is None and not is_left_out:
                scheduler.warn_of_damage(self._spool, job_id)
            if recovered is not None:
                found.append(recovered)
        return found

    def _recover(self, intent: spool.Intent) -> Recovered | None:
        job_id = intent.job_id
        process = spool.attempts.find_runner(self._spool, intent)
        if process is None:
            with self._spool.hold_lock(job_id, intent.attempt, _JUDGE_SECONDS) as may_judge:
                if not may_judge:
                    log.warning("job %s is being submitted by another process and is left to it", job_id)
                    return None
                # Its process may be starting. After this, it has either made its claim or can never run.
                intent = self._spool.intent(job_id, intent.attempt) or intent
                process = spool.attempts.find_runner(self._spool, intent, is_locked=True)
                if process is None and self._has_begun(intent):
                    process = spool.attempts.lost_runner(intent)
                elif process is None:
                    self._spool.revoke(job_id, intent.attempt)
                    process = spool.attempts.find_runner(self._spool, intent, is_locked=True)
        if process is not None:
            found = self._supervise(intent, process)
            with self._lock:
                # this process may have made the attempt meanwhile
                if not self._has_job(job_id):
                    self._supervisor.add(found)
        elif self._spool.read_stop(job_id, intent.attempt) is not None:
            # the job was cancelled before it began, which counts as its end
            self._spool.finish(job_id, intent.attempt, spool.encode_status(never_ran_status()))
            return None
        else:
            retried = self._spool.last_retried(job_id, intent.attempt)
            ended = None if retried is None else self._spool.intent(job_id, retried[0])
            if ended is not None:
                # the attempt after it never ran
                return self._recover(ended)
        return Recovered(
            job_id=job_id,
            attempt=intent.attempt,
            spec=spool.decode_request(self._spool.folder(job_id), intent.content),
            native_id=None if process is None else spool.attempts.native_id_of(intent, process),
            time=datetime.fromisoformat(intent.content["time"]).astimezone(UTC),
        )

    def _has_begun(self, intent: spool.Intent) -> bool:
        """Return True if any file shows that an attempt was started, even if its claim is lost."""
        claim = self._spool.claim(intent.job_id, intent.attempt)
        if spool.is_revoked(claim):
            return False
        is_started = claim is None and intent.native_id is not None
        return is_started or self._spool.has_run(intent.job_id, intent.attempt)

    def _supervise(self, intent: spool.Intent, process: host.ProcessId) -> SupervisedProcess:
        claim = self._spool.claim(intent.job_id, intent.attempt)
        return SupervisedProcess(
            intent.job_id,
            intent.job_id,
            intent.attempt,
            process,
            is_child=False,
            started=datetime.now(UTC) if claim is None else datetime_from_ns(claim.time_ns),
            starter=spool.starter_of(claim),
            duration=walltime_limit(serialization.decode(intent.content["spec"]), self._setup.config),
        )

    def native_ids(self) -> list[str]:
        """Return the native ids of the jobs that are not final."""
        return [job.process.native_id for job in self._supervisor.all() if job.process is not None]

    def streams(self, job_id: str) -> Streams | None:
        """Return where the output of a job goes; None for a process that was only attached to."""
        job = self._supervisor.get(job_id)
        spool_id = job_id if job is None else job.spool_id
        intent = self._spool.last_intent(spool_id)
        if intent is None:
            return None
        return resolve_streams(intent.content, self._spool.folder(spool_id))

    def cancel(self, job_id: str) -> None:
        """Ask a job to end; see `jpsi.plugin.engine.Engine`."""
        job = self._supervisor.get(job_id)
        if job is None and not self._retry_loop.cancel(job_id):
            # an attempt may have been made meanwhile
            job = self._supervisor.get(job_id)
        if job is None:
            return
        with host.convert_os_errors(f"job {job_id} could not be cancelled"):
            self._supervisor.stop(job, CANCEL)
        if self._supervisor.get(job_id) is not job:
            # the attempt has ended meanwhile, and another may follow
            self.cancel(job_id)

    def hold(self, job_id: str) -> None:
        """Raise, as holding is not offered; see `jpsi.plugin.engine.Engine`."""
        raise SubmitException(f"job {job_id} cannot be held: it runs as a process of this machine")

    def release(self, job_id: str) -> None:
        """Raise, as holding is not offered; see `jpsi.plugin.engine.Engine`."""
        raise SubmitException(f"job {job_id} is not held: processes of this machine start at once")

    def info(self, job_id: str) -> Observation | None:
        """Return ACTIVE with the start time if the job runs, else None; see `jpsi.plugin.engine.Engine`."""
        job = self._supervisor.get(job_id)
        if job is None or job.process is None:
            return None
        return Observation(
            state=JobState.ACTIVE, native_state="running", time=job.started, nodes=(platform.node(),)
        )

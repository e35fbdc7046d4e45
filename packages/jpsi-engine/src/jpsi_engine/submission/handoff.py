"""Hands recorded attempts to the batch system, so that each runs once or never, even after a failure.

After a submission without a clear answer, this module looks for the job by its tag, and revokes the attempt
if the batch system does not have it.
"""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

import attrs

from jpsi.plugin import (
    Command,
    CommandResult,
    Failure,
    FailureKind,
    InvalidJobException,
    JobSpec,
    JpsiError,
    Script,
    ShellLine,
    SubmitContext,
    SubmitException,
)
from jpsi_engine.host import is_transient
from jpsi_engine.runner import job_shell, run_line
from jpsi_engine.scheduler import Backend
from jpsi_engine.spool import JobAttempt, is_revoked
from jpsi_engine.submission.run_host import RunHost, TakenError, UnsentError

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# Seconds between two looks at a claim that another process is making: on this machine, and on a remote host,
# where each look takes a command.
_CLAIM_POLL_SECONDS = 0.02
_REMOTE_CLAIM_POLL_SECONDS = 2.0
_RESOLVED_LATER = "which jpsi finds out when the job is submitted again, or recovered"


def write_nothing() -> None:
    """Do nothing, as all files are written already."""


@attrs.frozen(slots=True, kw_only=True)
class Prepared:
    """Recorded attempts that one command is to submit; each sequence is in the order of the attempts."""

    #: Attempts of jobs, or one array.
    attempts: Sequence[JobAttempt]
    #: The job as the batch system sees it.
    spec: JobSpec
    #: The contexts for the executor's hooks.
    contexts: Sequence[SubmitContext]
    #: The descriptors that hold the locks on the attempts' files.
    locks: Sequence[int]
    #: When the submission began, in seconds of the monotonic clock. An older poll says nothing about it.
    begun: float
    #: Writes the files that do not exist yet. It runs while the submit command starts, which takes longer.
    write: Callable[[], None] = write_nothing


@attrs.frozen(slots=True)
class HandedOff:
    """The outcomes of a submission."""

    #: In the order of the attempts: the native id; or the error if it was not submitted; or what interrupted
    #: the caller before it was submitted.
    outcomes: Sequence[str | BaseException]
    #: The exception that interrupted the caller meanwhile; the caller raises it once the jobs are followed.
    interrupt: BaseException | None = None


class _NotDurableError(Exception):
    """The intent could not be written to disk so that it survives a crash; its argument is the OSError."""


@attrs.define(slots=True, eq=False)
class Handoff:
    """The handoff to one batch system. Methods may be called from any thread."""

    _backend: Backend
    _run_host: RunHost
    #: Seconds until a file written by another machine is certainly visible on this machine.
    grace_seconds: float

    def submit(self, prepared: Prepared) -> HandedOff:
        """Submit recorded attempts with one command.

        The command holds only the first of the locks. If this process is killed meanwhile, other processes
        may judge the other attempts; an attempt that they find unsubmitted is revoked and never runs.

        Raises:
            JpsiError: a hook failed, or the remote host cannot be reached; nothing was submitted.
        """
        attempts, spec, contexts = prepared.attempts, prepared.spec, prepared.contexts

        def ready() -> None:
            # The files must survive a crash of this machine before the batch system receives the jobs.
            try:
                prepared.write()
                for lock in prepared.locks:
                    self._run_host.spool.sync(lock)
            except OSError as e:
                raise _NotDurableError(e) from e

        def run(command: Command) -> CommandResult:
            return self._run_host.run_submit(command, attempts, prepared.locks[0], ready)

        try:
            scripts = [
                self.render_script(it, spec, context) for it, context in zip(attempts, contexts, strict=True)
            ]
        except BaseException:
            # nothing was submitted yet
            for it in attempts:
                it.discard()
            raise
        try:
            submitted = self._backend.submit(scripts, spec, contexts, run)
        except (_NotDurableError, UnsentError) as e:
            return HandedOff([self._unsent_error(it, e) for it in attempts])
        except BaseException as e:  # noqa: BLE001  handed to the caller, with what has begun all the same
            return self._withdraw_after(e, attempts)
        native_ids, failure = submitted.native_ids, submitted.failure
        if failure.kind is not FailureKind.AMBIGUOUS:
            return HandedOff(self._discard_refused(attempts, failure))
        found = {**self._find_by_tags([it for it in attempts if it.tag not in native_ids]), **native_ids}
        return HandedOff([_result_or_error(self._resolve, it, failure, found) for it in attempts])

    def _withdraw_after(self, error: BaseException, attempts: Sequence[JobAttempt]) -> HandedOff:
        """Withdraw attempts after an error, as the command may have succeeded or may never have run.

        After this an attempt either has begun, and there is a native id, or can never run. If that cannot be
        made sure, a caller that was interrupted gets the interrupt, with the reason as a note.
        """
        why = str(error) or type(error).__name__
        outcomes = [_result_or_error(self._withdraw_failed, it, why) for it in attempts]
        for unclear in outcomes:
            if isinstance(unclear, JpsiError):
                error.add_note(str(unclear))
        interrupt = None if isinstance(error, JpsiError) else error
        return HandedOff([it or error for it in outcomes], interrupt)

    def _unsent_error(self, attempt: JobAttempt, why: _NotDurableError | UnsentError) -> JpsiError:
        """Return the error for an attempt of which nothing was submitted, and discard the attempt."""
        attempt.discard(str(why))
        error: JpsiError
        if isinstance(why, TakenError):
            error = TakenError(f"{attempt.name}: {why}")
        elif isinstance(why, UnsentError):
            kind = FailureKind.TRANSIENT if why.transient else FailureKind.PERMANENT
            error = self._refusal_error(attempt, Failure(kind, str(why)))
        else:
            (cause,) = why.args
            msg = f"{attempt.name} could not be recorded in {self._run_host.spool.root}: {cause}"
            error = SubmitException(msg, cause, transient=is_transient(cause))
        error.__cause__ = why
        return error

    def _discard_refused(self, attempts: Sequence[JobAttempt], failure: Failure) -> list[JpsiError]:
        """Discard attempts that the batch system refused, or withdraw them; return the error of each."""
        why = f"{self._backend.display_name} did not accept it: {failure.message}"
        discarded = [it for it in attempts if it.discard(why)]
        self._run_host.clean_up(discarded)
        refusals = []
        for it in attempts:
            unclear = None if it in discarded else _result_or_error(self._withdraw_failed, it, why)
            refusals.append(unclear if isinstance(unclear, JpsiError) else self._refusal_error(it, failure))
        return refusals

    def _refusal_error(self, attempt: JobAttempt, failure: Failure) -> JpsiError:
        if failure.kind is FailureKind.INVALID_JOB:
            return InvalidJobException.of(
                "the job", [f"{self._backend.display_name} rejects it: {failure.message}"]
            )
        msg = f"{self._backend.display_name} did not accept {attempt.name}: {failure.message}"
        return SubmitException(msg, transient=failure.kind is FailureKind.TRANSIENT)

    def render_script(self, attempt: JobAttempt, spec: JobSpec, context: SubmitContext) -> Script:
        """Return the script for the submit command.

        Raises:
            ValueError: the batch system cannot express what the spec asks for.
        """
        directives = self._backend.render(spec, context).directives
        return Script(
            directives, self._run_line(attempt, spec), self._run_host.layout().path(attempt.file("run"))
        )

    def shell(self, spec: JobSpec) -> list[str]:
        """Return the words that run the script of a job."""
        shell = self._backend.config.shell_command
        # the scripts of a job are on the host where it runs
        return job_shell(spec, shell) if self._run_host.is_local else shell

    def _run_line(self, attempt: JobAttempt, spec: JobSpec) -> ShellLine:
        layout, marker = self._run_host.layout(), attempt.missing_shell_marker
        return run_line(
            self.shell(spec), layout.path(attempt.file("run")), layout.path(marker) if marker else ""
        )

    def _find_by_tags(self, attempts: Sequence[JobAttempt]) -> Mapping[str, str]:
        """Return, by tag, the native ids of attempts that the batch system shows.

        The result is empty if the batch system does not answer.
        """
        if not attempts:
            return {}
        try:
            return self._backend.find_by_tags([it.tag for it in attempts]) or {}
        except JpsiError as e:
            log.info("%s could not be searched for by its tag: %s", attempts[0].name, e)
            return {}

    def _resolve(self, attempt: JobAttempt, failure: Failure, found: Mapping[str, str]) -> str:
        """Find out the outcome of a submission that got no clear answer; return the native id.

        Raises:
            SubmitException: it was not submitted, or was revoked; either way it can never run.
        """
        unclear = f"{self._backend.display_name} gave no clear answer"
        native_id = found.get(attempt.tag) or self._withdraw_failed(attempt, f"{unclear}: {failure.message}")
        if native_id is not None:
            return native_id
        msg = f"{unclear} about {attempt.name}, which will not run: {failure.message}"
        raise SubmitException(msg, transient=True)

    def _withdraw_failed(self, attempt: JobAttempt, why: str) -> str | None:
        """Withdraw an attempt that the caller will see fail; its files stay, in case it starts late.

        Returns its native id if it has begun to run all the same.
        """
        try:
            native_id = self.withdraw(attempt)
            if native_id is None:
                # the caller decides whether to try again, so no other process may recover the job
                self._record_failure(attempt, why)
        except FileNotFoundError:
            return None  # its folder was removed, and the script that would have run with it
        except OSError as e:
            msg = f"{attempt.name} may run or not, {_RESOLVED_LATER}: {self._run_host.spool.root}: {e}"
            raise SubmitException(msg, e, transient=is_transient(e)) from e
        except JpsiError as e:
            msg = f"{attempt.name} may run or not, {_RESOLVED_LATER}: {e}"
            raise SubmitException(msg, e, transient=True) from e
        return native_id

    @staticmethod
    def _record_failure(attempt: JobAttempt, why: str) -> None:
        try:
            attempt.give_up(why)
        except FileNotFoundError:
            raise
        except OSError:
            # it can never run; without the note, recover() returns it as a job that was never submitted
            msg = "%s was not submitted, and this could not be recorded"
            log.warning(msg, attempt.name, exc_info=True)

    def is_revoked(self, attempt: JobAttempt) -> bool:
        """Return True if the attempt can never run, even if the batch system has it.

        Raises:
            JpsiError: the remote host cannot be reached.
        """
        return is_revoked(self._run_host.claim(attempt))

    def withdraw(self, attempt: JobAttempt) -> str | None:
        """Make sure that an attempt can never run; if it has begun, return its native id.

        Raises:
            OSError: another process has claimed it, and the claim is not visible on this machine in time.
        """
        if self._run_host.revoke(attempt):
            return None
        # A runner makes its claim first and writes into it afterwards; it may die in between. A claim that
        # another machine has made may not be visible on this machine yet.
        pause = _CLAIM_POLL_SECONDS if self._run_host.is_local else _REMOTE_CLAIM_POLL_SECONDS
        deadline = time.monotonic() + self.grace_seconds
        while (claim := self._run_host.claim(attempt)) is None or not claim.text:
            if time.monotonic() > deadline:
                break
            time.sleep(pause)
        if claim is None:
            raise OSError(errno.ESTALE, f"the claim of {attempt.name} is not visible on this machine yet")
        return self._backend.claimed_id(claim)

    def claimed_native_id(self, attempt: JobAttempt) -> str | None:
        """Return the native id in the claim of an attempt; None if no job has claimed it.

        Raises:
            JpsiError: the remote host cannot be reached.
        """
        return self._backend.claimed_id(self._run_host.claim(attempt))


def _result_or_error(do: Callable[P, T], *args: P.args, **named: P.kwargs) -> T | JpsiError:
    """Return the result of a call, or its error, so that the other attempts go on."""
    try:
        return do(*args, **named)
    except JpsiError as e:
        return e

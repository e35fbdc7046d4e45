"""Hands over to the batch system what is written down, so that it runs once or never, whatever fails."""

from __future__ import annotations

import contextlib
import errno
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import attrs

from jpsi.plugin import (
    BatchConfig,
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
    line,
    word,
)
from jpsi.plugin.engine import InterruptedSubmission
from jpsi_engine.host import is_transient
from jpsi_engine.scheduler import Backend
from jpsi_engine.spool import REVOKED, JobAttempt
from jpsi_engine.submission.run_host import Side, TakenError, UnsentError
from jpsi_engine.verdict import SETUP_CODE

log = logging.getLogger(__name__)

T = TypeVar("T")

# How often a claim is looked at that is being made: where that is here, and where it takes a command.
_CLAIM_POLL_SECONDS = 0.02
_FAR_CLAIM_POLL_SECONDS = 2.0
_SUBJECT = "the job"
_FOUND_OUT = "which is found out when it is submitted again, or recovered"


@attrs.frozen(slots=True)
class Sent:
    """What came of several submissions with one command."""

    #: In their order the native id, or why it was not submitted; None if the caller was interrupted before.
    outcomes: Sequence[str | JpsiError | None]
    interrupt: BaseException | None = None


class _UnsafeError(Exception):
    """What is written down may not outlive a crash."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


@contextlib.contextmanager
def _unsafe_if_it_fails() -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise _UnsafeError(e) from e


def nothing() -> None:
    """All is written down already."""


class Sending:
    """Submissions to one batch system. Methods may be called from any thread.

    Args:
        backend: which one.
        side: where jobs run.
        config: by what shell jobs run.
    """

    def __init__(self, backend: Backend, side: Side, config: BatchConfig) -> None:
        self._backend = backend
        self._side = side
        self._spool = side.spool
        self._config = config
        #: Seconds until what was written elsewhere is seen here for certain.
        self.grace_seconds = 0.0

    def send(
        self,
        written: JobAttempt,
        spec: JobSpec,
        context: SubmitContext,
        lock: int,
        write: Callable[[], None] = nothing,
    ) -> str:
        """Have the batch system take what is written down, and return its native id.

        Args:
            written: what it is.
            spec: a job that the batch system is to see.
            context: how it is submitted.
            lock: the descriptor that holds the lock on what is written down.
            write: writes down what is not yet, while the submit command starts, which takes longer than that.

        Raises:
            SubmitException, InvalidJobException: nothing was submitted, or none of it can run.
            InterruptedSubmission: the batch system has it, and the caller was interrupted.
        """

        def ready() -> None:
            # What is written outlives a crash of this machine before the batch system hears of it.
            with _unsafe_if_it_fails():
                write()
                self._spool.sync(lock)

        def run(command: Command) -> CommandResult:
            return self._side.carry_out(command, [written], lock, ready)

        with _forgotten_if_it_fails([written]):
            script = self.script(written, spec, context)
        try:
            submitted = self._backend.submit(script, spec, context, run)
        except (_UnsafeError, UnsentError) as e:
            raise self._unsent(written, e) from e
        except BaseException as e:
            # Whether the command had its effect or never began: it can run no more, or has begun.
            native_id = self._given_up_after(e, written)
            if native_id is None:
                raise
            if not isinstance(e, Exception):
                raise InterruptedSubmission(native_id, e) from e
            return native_id
        if submitted.native_id is not None:
            return submitted.native_id
        failure = submitted.failure or Failure(FailureKind.AMBIGUOUS, "it did not say why")
        if failure.kind is FailureKind.AMBIGUOUS:
            return self._resolve(written, failure, self._found([written]))
        (refusal,) = self._refusals([written], failure)
        raise refusal

    def send_several(
        self,
        written: Sequence[JobAttempt],
        spec: JobSpec,
        contexts: Sequence[SubmitContext],
        locks: Sequence[int],
    ) -> Sent:
        """Have the batch system take with one command what is written down.

        The command holds the first of the locks alone: if this process is killed meanwhile, others may judge
        the rest, and whatever they take for not submitted runs no more.

        Args:
            written: what it is.
            spec: a job that the batch system is to see.
            contexts: how each is submitted.
            locks: the descriptors that hold the locks.

        Raises:
            JpsiError: where the jobs run cannot be reached; nothing was submitted.
        """

        def ready() -> None:
            with _unsafe_if_it_fails():
                for lock in locks:
                    self._spool.sync(lock)

        def run(command: Command) -> CommandResult:
            return self._side.carry_out(command, written, locks[0], ready)

        with _forgotten_if_it_fails(written):
            scripts = [self.script(it, spec, context) for it, context in zip(written, contexts, strict=True)]
        try:
            submitted = self._backend.submit_several(scripts, spec, contexts, run)
        except (_UnsafeError, UnsentError) as e:
            return Sent([self._unsent(it, e) for it in written])
        except BaseException as e:  # noqa: BLE001  handed to the caller, with what has begun all the same
            otherwise = e if isinstance(e, JpsiError) else None
            why = str(e) or type(e).__name__
            outcomes = [_tried(lambda it=it: self._given_up(it, why)) or otherwise for it in written]  # type: ignore[misc]  # a default is how a lambda keeps a value
            return Sent(outcomes, None if isinstance(e, JpsiError) else e)
        native_ids, failure = submitted.native_ids, submitted.failure
        missing = [it for it in written if it.tag not in native_ids]
        if failure.kind is not FailureKind.AMBIGUOUS:
            return Sent(self._refusals(written, failure))
        found = {**self._found(missing), **native_ids}
        return Sent([_tried(lambda it=it: self._resolve(it, failure, found)) for it in written])  # type: ignore[misc]  # as above

    def _unsent(self, written: JobAttempt, why: _UnsafeError | UnsentError) -> JpsiError:
        """What the caller is told of something of which nothing was submitted."""
        written.discard(str(why))
        if isinstance(why, TakenError):
            return TakenError(f"{written.name}: {why}")
        if isinstance(why, UnsentError):
            return self._refusal(written, _failure(why))
        msg = f"{written.name} could not be written down in {self._spool.root}: {why.error}"
        return SubmitException(msg, why.error, transient=is_transient(why.error))

    def _refusals(self, written: Sequence[JobAttempt], failure: Failure) -> list[JpsiError]:
        """What the caller is told of what the batch system did not take."""
        why = f"{self._backend.place} did not take it: {failure.message}"
        gone = [it for it in written if it.discard(why)]
        self._side.forget(gone)
        refusals = []
        for it in written:
            unclear = None if it in gone else _tried(lambda it=it: self._given_up(it, why))  # type: ignore[misc]  # as above
            refusals.append(unclear if isinstance(unclear, JpsiError) else self._refusal(it, failure))
        return refusals

    def _refusal(self, written: JobAttempt, failure: Failure) -> JpsiError:
        if failure.kind is FailureKind.INVALID_JOB:
            return InvalidJobException.of(_SUBJECT, [f"{self._backend.place} refuses it: {failure.message}"])
        msg = f"{self._backend.place} did not take {written.name}: {failure.message}"
        return SubmitException(msg, transient=failure.kind is FailureKind.TRANSIENT)

    def script(self, written: JobAttempt, spec: JobSpec, context: SubmitContext) -> Script:
        """What the batch system is given to read.

        Raises:
            ValueError: it has no way to say what the spec asks for.
        """
        return attrs.evolve(self._backend.render(spec, context), run=self._run_line(written))

    def _run_line(self, written: JobAttempt) -> ShellLine:
        # A script that a crash of this machine, or somebody who cleaned up, has taken ends in no success; nor
        # does a shell that is not there look like the job's own exit code 127.
        shell, marker, layout = self._config.shell_command, written.shell_is_missing, self._side.layout()
        run = layout.path(written.file("run"))
        is_there, can_run = line("test", "-s", run), line("test", "-x", shell[0])
        note = f"true >{word(layout.path(marker))}; " if marker else ""
        runs = f"{{ {can_run} || {{ {note}exit {SETUP_CODE}; }}; }}"
        return ShellLine(f"{is_there} && {runs} && {line('exec', *shell, run)}; exit {SETUP_CODE}")

    def _found(self, written: Sequence[JobAttempt]) -> Mapping[str, str]:
        """The native ids of those that the batch system has, by their tags, as far as it tells."""
        if not written:
            return {}
        try:
            return self._backend.find([it.tag for it in written]) or {}
        except JpsiError as e:
            log.info("%s was not to be looked for: %s", written[0].name, e)
            return {}

    def _resolve(self, written: JobAttempt, failure: Failure, found: Mapping[str, str]) -> str:
        """Find out what became of a submission that got no clear answer.

        Raises:
            SubmitException: nothing came of it, and nothing can any more.
        """
        unclear = f"{self._backend.place} gave no clear answer"
        native_id = found.get(written.tag) or self._given_up(written, f"{unclear}: {failure.message}")
        if native_id is not None:
            return native_id
        msg = f"{unclear} about {written.name}, which will not run: {failure.message}"
        raise SubmitException(msg, transient=True)

    def _given_up(self, written: JobAttempt, why: str) -> str | None:
        """Withdraw what the caller is told that it failed; its files stay for stragglers.

        Returns its native id if it has begun to run all the same.
        """
        try:
            native_id = self.withdraw(written)
            if native_id is None:
                # the caller has the job, and tries again or not: it is nobody else's to recover
                self._note_given_up(written, why)
        except FileNotFoundError:
            return None  # its folder was removed, and what would have run with it
        except OSError as e:
            msg = f"{written.name} may run or not, {_FOUND_OUT}: {self._spool.root}: {e}"
            raise SubmitException(msg, e, transient=is_transient(e)) from e
        except JpsiError as e:
            msg = f"{written.name} may run or not, {_FOUND_OUT}: {e}"
            raise SubmitException(msg, e, transient=True) from e
        return native_id

    @staticmethod
    def _note_given_up(written: JobAttempt, why: str) -> None:
        try:
            written.give_up(why)
        except FileNotFoundError:
            raise
        except OSError:
            # it can run no more; without the note it is recovered as a job that was never submitted
            msg = "%s: that it was not submitted could not be written down"
            log.warning(msg, written.name, exc_info=True)

    def _given_up_after(self, error: BaseException, written: JobAttempt) -> str | None:
        """As `_given_up`; but who was interrupted is told of that, whatever became of the submission."""
        try:
            return self._given_up(written, str(error) or type(error).__name__)
        except JpsiError as unclear:
            if isinstance(error, Exception):
                raise
            error.add_note(str(unclear))
            return None

    def is_revoked(self, written: JobAttempt) -> bool:
        """Return True if it can never run, whatever the batch system has of it.

        Raises:
            JpsiError: where it would run cannot be reached.
        """
        claim = self._side.claim(written)
        return claim is not None and claim.text == REVOKED

    def withdraw(self, written: JobAttempt) -> str | None:
        """Make sure that it can never run; if it has begun to, return its native id.

        Raises:
            OSError: somebody has claimed it, and the claim does not show here in good time.
        """
        if self._side.revoke(written):
            return None
        # Between making its claim and writing into it a runner may be seen, or may have died; and what was
        # made by another machine may not show here yet.
        pause = _CLAIM_POLL_SECONDS if self._side.is_here else _FAR_CLAIM_POLL_SECONDS
        deadline = time.monotonic() + self.grace_seconds
        while (claim := self._side.claim(written)) is None or not claim.text:
            if time.monotonic() > deadline:
                break
            time.sleep(pause)
        if claim is None:
            raise OSError(errno.ESTALE, f"the claim of {written.name} does not show here yet")
        return None if claim.text in {"", REVOKED} else self._backend.spelled(claim.text)


def _failure(error: UnsentError) -> Failure:
    return Failure(FailureKind.TRANSIENT if error.transient else FailureKind.PERMANENT, str(error))


@contextlib.contextmanager
def _forgotten_if_it_fails(written: Sequence[JobAttempt]) -> Iterator[None]:
    """What fails in the block, such as the first connection to where files are, has sent nothing."""
    try:
        yield
    except BaseException:
        for it in written:
            it.discard()
        raise


def _tried(do: Callable[[], T]) -> T | JpsiError:
    """What came of it, or why nothing did: it costs no other its own."""
    try:
        return do()
    except JpsiError as e:
        return e

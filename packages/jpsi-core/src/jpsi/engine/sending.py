"""Hands over to the batch system what is written down, so that it runs once or never, whatever fails."""

from __future__ import annotations

import contextlib
import functools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import attrs

from jpsi.contract.config import BatchConfig
from jpsi.contract.hookspecs import SubmitContext
from jpsi.contract.observation import Failure, FailureKind
from jpsi.contract.protocols import InterruptedSubmission
from jpsi.contract.shell import Script, ShellLine, line, word
from jpsi.engine.backend import Backend
from jpsi.engine.claims import REVOKED, Claim
from jpsi.engine.files import exists
from jpsi.engine.native_ids import tag
from jpsi.engine.runner import SHELL
from jpsi.engine.runner_frame import SETUP_CODE
from jpsi.engine.spool import Spool, is_transient
from jpsi.engine.tracker import never_ran
from jpsi.model import plain
from jpsi.model.errors import InvalidJobException, JpsiError, SubmitException
from jpsi.model.spec import JobSpec

log = logging.getLogger(__name__)

T = TypeVar("T")

_CLAIM_POLL_SECONDS = 0.02
_SUBJECT = "the job"


class Written(Protocol):
    """What is written down to be submitted: one attempt of a job, or an array."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def tag(self) -> str:
        """What the batch system carries for it."""

    @property
    def run(self) -> str:
        """The runner's script."""

    @property
    def shell_is_missing(self) -> str:
        """The marker by which it says that; empty if a batch system alone can tell it."""

    def claim(self) -> Claim | None:
        """Who runs it, if anybody does."""

    def revoke(self) -> bool:
        """Make sure that nobody ever runs it; False if somebody does."""

    def finish(self) -> None:
        """Write down that it came to nothing, after it was revoked: nobody recovers it."""

    def discard(self) -> bool:
        """Forget it, as it was never submitted; never raises. False if it is revoked instead."""


@attrs.frozen(slots=True)
class WrittenJob:
    """One attempt of a job."""

    spool: Spool
    job_id: str
    attempt: int

    @property
    def name(self) -> str:
        """See `Written`."""
        return f"job {self.job_id}"

    @property
    def tag(self) -> str:
        """See `Written`."""
        return tag(self.job_id, self.attempt)

    @property
    def run(self) -> str:
        """See `Written`."""
        return f"{self.spool.folder(self.job_id)}/run.{self.attempt}"

    @property
    def shell_is_missing(self) -> str:
        """See `Written`."""
        return f"{self.spool.events}/{self.job_id}.{self.attempt}.exit.{SHELL}.{SETUP_CODE}"

    def claim(self) -> Claim | None:
        """See `Written`."""
        return self.spool.claim(self.job_id, self.attempt)

    def revoke(self) -> bool:
        """See `Written`."""
        return self.spool.revoke(self.job_id, self.attempt)

    def finish(self) -> None:
        """See `Written`."""
        self.spool.finish(self.job_id, self.attempt, plain.encode_status(never_ran()))

    def discard(self) -> bool:
        """See `Written`."""
        self.spool.discard(self.job_id, self.attempt)
        return self.attempt == 1


@attrs.frozen(slots=True)
class WrittenArray:
    """An array."""

    spool: Spool
    array: str
    #: The job that comes first in it, by which users know it.
    first: str = ""
    #: Whether folders of jobs name it already, as they do of jobs that were tried before.
    is_named: bool = False

    @property
    def name(self) -> str:
        """See `Written`."""
        return f"the array that begins with job {self.first}" if self.first else f"array {self.array}"

    @property
    def tag(self) -> str:
        """See `Written`."""
        return tag(self.array, 1)

    @property
    def run(self) -> str:
        """See `Written`."""
        return f"{self.spool.arrays.folder(self.array)}/run"

    @property
    def shell_is_missing(self) -> str:
        """See `Written`; which element it is, the shell would have to find out."""
        return ""

    def claim(self) -> Claim | None:
        """See `Written`."""
        return self.spool.arrays.claim(self.array)

    def revoke(self) -> bool:
        """See `Written`."""
        return self.spool.arrays.revoke(self.array)

    def finish(self) -> None:
        """See `Written`."""
        self.spool.arrays.finish(self.array)

    def discard(self) -> bool:
        """See `Written`."""
        if self.is_named:
            # it alone tells that their jobs wait to be submitted again
            with contextlib.suppress(OSError):
                self.revoke()
            return False
        self.spool.arrays.discard(self.array)
        return True

    def is_over(self) -> bool:
        """Whether none of its elements can run any more: it was revoked, or forgotten."""
        claim = self.claim()
        return not exists(self.run) if claim is None else claim.text == REVOKED


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


class Sending:
    """Submissions to one batch system. Methods may be called from any thread.

    Args:
        backend: which one.
        spool: where things are written down.
        config: by what shell jobs run.
    """

    def __init__(self, backend: Backend, spool: Spool, config: BatchConfig) -> None:
        self._backend = backend
        self._spool = spool
        self._config = config
        #: Seconds until what was written elsewhere is seen here for certain.
        self.grace_seconds = 0.0

    def send(self, written: Written, spec: JobSpec, context: SubmitContext, lock: int) -> str:
        """Have the batch system take what is written down, and return its native id.

        Args:
            written: what it is.
            spec: a job that the batch system is to see.
            context: how it is submitted.
            lock: the descriptor that holds the lock on what is written down.

        Raises:
            SubmitException, InvalidJobException: nothing was submitted, or none of it can run.
            InterruptedSubmission: the batch system has it, and the caller was interrupted.
        """
        try:
            script = self.script(written, spec, context)
            # What is written outlives a crash of this machine before the batch system hears of it.
            ready = functools.partial(self._sync, lock)
            submitted = self._backend.submit(script, spec, context, lock, ready)
        except _UnsafeError as e:
            raise self._unsafe(written, e) from e
        except BaseException as e:
            # Whether the command had its effect or never began: it can run no more, or has begun.
            native_id = self._given_up(written)
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
        raise self._refusal(written, failure)

    def send_several(
        self,
        written: Sequence[Written],
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
        """

        def ready() -> None:
            for lock in locks:
                self._sync(lock)

        try:
            scripts = [self.script(it, spec, context) for it, context in zip(written, contexts, strict=True)]
            submitted = self._backend.submit_several(scripts, spec, contexts, locks[0], ready)
        except _UnsafeError as e:
            return Sent([self._unsafe(it, e) for it in written])
        except BaseException as e:  # noqa: BLE001  handed to the caller, with what has begun all the same
            otherwise = e if isinstance(e, JpsiError) else None
            outcomes = [_tried(lambda it=it: self._given_up(it)) or otherwise for it in written]  # type: ignore[misc]  # a default is how a lambda keeps a value
            return Sent(outcomes, None if isinstance(e, JpsiError) else e)
        native_ids, failure = submitted.native_ids, submitted.failure
        missing = [it for it in written if it.tag not in native_ids]
        if failure.kind is not FailureKind.AMBIGUOUS:
            return Sent([_tried(lambda it=it: self._refusal(it, failure)) for it in written])  # type: ignore[misc]  # as above
        found = {**self._found(missing), **native_ids}
        return Sent([_tried(lambda it=it: self._resolve(it, failure, found)) for it in written])  # type: ignore[misc]  # as above

    def _unsafe(self, written: Written, why: _UnsafeError) -> SubmitException:
        """What the caller is told of something of which nothing was submitted."""
        written.discard()
        msg = f"{written.name} could not be written down in {self._spool.root}: {why.error}"
        return SubmitException(msg, why.error, transient=is_transient(why.error))

    def _refusal(self, written: Written, failure: Failure) -> JpsiError:
        """What the caller is told of something that the batch system did not take."""
        if not written.discard():
            self._given_up(written)
        if failure.kind is FailureKind.INVALID_JOB:
            return InvalidJobException.of(_SUBJECT, [f"{self._backend.name} refuses it: {failure.message}"])
        msg = f"{self._backend.name} did not take {written.name}: {failure.message}"
        return SubmitException(msg, transient=failure.kind is FailureKind.TRANSIENT)

    def script(self, written: Written, spec: JobSpec, context: SubmitContext) -> Script:
        """What the batch system is given to read.

        Raises:
            ValueError: it has no way to say what the spec asks for.
        """
        return attrs.evolve(self._backend.render(spec, context), run=self._run_line(written))

    def _sync(self, lock: int) -> None:
        try:
            self._spool.sync(lock)
        except OSError as e:
            raise _UnsafeError(e) from e

    def _run_line(self, written: Written) -> ShellLine:
        # A script that a crash of this machine, or somebody who cleaned up, has taken ends in no success; nor
        # does a shell that is not there look like the job's own exit code 127.
        shell, marker = self._config.shell_command, written.shell_is_missing
        is_there, can_run = line("test", "-s", written.run), line("test", "-x", shell[0])
        note = f"true >{word(marker)}; " if marker else ""
        runs = f"{{ {can_run} || {{ {note}exit {SETUP_CODE}; }}; }}"
        return ShellLine(f"{is_there} && {runs} && {line('exec', *shell, written.run)}; exit {SETUP_CODE}")

    def _found(self, written: Sequence[Written]) -> Mapping[str, str]:
        """The native ids of those that the batch system has, by their tags, as far as it tells."""
        if not written:
            return {}
        try:
            return self._backend.find([it.tag for it in written]) or {}
        except JpsiError as e:
            log.info("%s was not to be looked for: %s", written[0].name, e)
            return {}

    def _resolve(self, written: Written, failure: Failure, found: Mapping[str, str]) -> str:
        """Find out what became of a submission that got no clear answer.

        Raises:
            SubmitException: nothing came of it, and nothing can any more.
        """
        native_id = found.get(written.tag) or self._given_up(written)
        if native_id is not None:
            return native_id
        unclear = f"{self._backend.name} gave no clear answer about {written.name}"
        msg = f"{unclear}, which will not run: {failure.message}"
        raise SubmitException(msg, transient=True)

    def _given_up(self, written: Written) -> str | None:
        """Withdraw what the caller is told that it failed; its files stay for stragglers.

        Returns its native id if it has begun to run all the same.
        """
        try:
            native_id = self.withdraw(written)
            if native_id is None:
                # whoever recovers jobs has nothing to do with it
                written.finish()
        except FileNotFoundError:
            return None  # its folder was removed, and what would have run with it
        except OSError as e:
            msg = f"{written.name} may run or not: {self._spool.root} cannot be written: {e}"
            raise SubmitException(msg, e, transient=is_transient(e)) from e
        return native_id

    def withdraw(self, written: Written) -> str | None:
        """Make sure that it can never run; if it has begun to, return its native id."""
        if written.revoke():
            return None
        # Between making its claim and writing into it a runner may be seen, or may have died.
        deadline = time.monotonic() + self.grace_seconds
        while (claim := written.claim()) is not None and not claim.text:
            if time.monotonic() > deadline:
                break
            time.sleep(_CLAIM_POLL_SECONDS)
        return self.claimant(written)

    def claimant(self, written: Written) -> str | None:
        """The native id that whoever runs it found itself to have; None if nobody runs it."""
        claim = written.claim()
        return None if claim is None or claim.text in {"", REVOKED} else self._backend.spelled(claim.text)


def _tried(do: Callable[[], T]) -> T | JpsiError:
    """What came of it, or why nothing did: it costs no other its own."""
    try:
        return do()
    except JpsiError as e:
        return e

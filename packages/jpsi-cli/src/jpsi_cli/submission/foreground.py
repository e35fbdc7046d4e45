"""Runs the job of `jpsi run`: submits it, shows its output, and cancels it on signals.

The first Ctrl-C, SIGTERM or SIGHUP cancels the job, the second exits as soon as the cancellation was sent,
and the third at once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from types import FrameType
from typing import NamedTuple

import jpsi

from .. import exit_codes, messages
from ..output import Display, Follower


class _Refusal(NamedTuple):
    """A failure to write to one of the standard streams."""

    fd: int
    error: OSError


class Foreground:
    """A job in the foreground.

    The main thread processes a queue of the job's statuses, of signals, and of failures to write output.
    """

    def __init__(self, job: jpsi.Job, display: Display) -> None:
        self._job = job
        self._display = display
        self._events: SimpleQueue[jpsi.JobStatus | signal.Signals | _Refusal] = SimpleQueue()
        self._followers: list[Follower] = []
        self._refusals: list[_Refusal] = []
        self._is_submitting = False
        self._is_cancelling = False
        self._is_cancelled = False
        self._has_confirmed = False
        self._interrupts = Interrupts(self._farewell_message)

    def run(self, executor: jpsi.JobExecutor) -> int:
        """Submit the job, follow it to its end, and return the exit code for that.

        Raises:
            JpsiError: the job was not submitted.
        """
        self._job.set_job_status_callback(lambda _, status: self._events.put(status))

        def request_cancel(number: signal.Signals) -> None:
            if self._is_submitting and number is signal.SIGINT:
                # the main thread may wait for the batch system, and process the queue only later
                self._has_confirmed = True
                self._write_message(self._display.cancelling())
            self._events.put(number)
            # a job that waits for its quota is not submitted any more
            executor.close()

        interrupts = self._interrupts
        with interrupts.handled(request_cancel):
            try:
                self._is_submitting = True
                executor.submit(self._job)
                self._is_submitting = False
            except jpsi.SubmitException:
                if interrupts.received is None:
                    raise
                return exit_codes.CANCELLED
            status = self._wait_for_end()
            is_complete = self._finish_output()
            self._write_message(self._display.status(self._job, status))
        if interrupts.received is not None:
            return exit_codes.CANCELLED
        if any(_is_broken_pipe(refusal.error) for refusal in self._refusals):
            return exit_codes.BROKEN_PIPE
        return exit_codes.for_status(status) if is_complete else exit_codes.JPSI

    def _wait_for_end(self) -> jpsi.JobStatus:
        while True:
            try:
                event = self._events.get(timeout=_POLL_SECONDS)
            except Empty:
                self._write_message(self._display.waiting(self._job.status))
                continue
            if isinstance(event, jpsi.JobStatus):
                if event.final:
                    return event
                self._write_message(self._display.status(self._job, event))
                if event.state is jpsi.JobState.ACTIVE:
                    self._start_followers()
            elif isinstance(event, _Refusal):
                self._handle_refusal(event)
            else:
                self._cancel(is_typed=event is signal.SIGINT)

    def _start_followers(self) -> None:
        """Begin to show the output, except what goes to files of the user."""
        out, err, spec = self._job.output("stdout"), self._job.output("stderr"), self._job.spec
        if self._followers or out is None or err is None or spec is None:
            return
        if spec.stdout_path is None:
            self._followers.append(self._make_follower(out, messages.STDOUT))
        if spec.stderr_path is None:
            self._followers.append(self._make_follower(err, messages.STDERR))
        for follower in self._followers:
            follower.start()

    def _make_follower(self, output: jpsi.Output, fd: int) -> Follower:
        return Follower(output, fd, lambda error: self._events.put(_Refusal(fd, error)))

    def _finish_output(self) -> bool:
        """Show the rest of the output; return True if all of it was shown."""
        self._start_followers()  # a job may end without having been seen to run
        for follower in self._followers:
            follower.finish()
        while not self._events.empty():
            event = self._events.get()
            if isinstance(event, _Refusal):
                self._handle_refusal(event)
        unread = [follower for follower in self._followers if follower.unreadable is not None]
        for follower in unread:
            messages.error(f"not all output is shown: {follower.unreadable}")
        return not unread and not self._refusals

    def _handle_refusal(self, refusal: _Refusal) -> None:
        self._refusals.append(refusal)
        if not _is_broken_pipe(refusal.error):
            messages.error(f"{_STREAM_NAMES[refusal.fd]} cannot be written to: {refusal.error.strerror}")
        self._cancel(is_typed=False)

    def _cancel(self, *, is_typed: bool) -> None:
        text = self._display.cancelling()
        if is_typed and not self._has_confirmed:
            self._write_message(text)
        if self._is_cancelling:
            return  # many programs end without a cleanup after a second SIGTERM
        self._is_cancelling = True
        try:
            self._job.cancel()
            self._is_cancelled = True
        except jpsi.JpsiError as e:
            messages.error(f"the job could not be cancelled: {e}")
        self._interrupts.allow_exit()

    def _farewell_message(self) -> str:
        job = self._job
        if job.executor is None:
            return f"exiting; job {job.id} may have been submitted"
        named = f"exiting; job {job.id} (native id {job.native_id})"
        if self._is_cancelled:
            # only a client that lives on sends KILL to a process of this machine that ignores TERM
            return f"{named} may still be ending; if it does not end: jpsi cancel {job.id}"
        return f"{named} may run on: jpsi cancel {job.id}"

    def _write_message(self, text: str) -> None:
        """Write a message on a line of its own, whatever the job wrote last."""
        is_shared = os.isatty(messages.STDOUT) and os.isatty(messages.STDERR)
        mid_line = [f for f in self._followers if f.is_mid_line and (f.fd == messages.STDERR or is_shared)]
        if text and mid_line:
            text = text if text.startswith("\n") else f"\n{text}"
            for follower in mid_line:
                follower.is_mid_line = False
        messages.write(text)


# The seconds between two checks: for a new message of a job that waits, as that is no new state, and for a
# signal that came just before the main thread began to wait, and so did not wake it.
_POLL_SECONDS = 1.0
_STREAM_NAMES = {messages.STDOUT: "standard output", messages.STDERR: "standard error"}


def _is_broken_pipe(error: OSError) -> bool:
    return error.errno == errno.EPIPE


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """A signal handler: the first signal cancels, the second ends the process once it may, the third at once.

    timeout(1) sends two at a time, to the process and to its group.
    """

    def __init__(self, farewell: Callable[[], str]) -> None:
        """Prepare the handler; it installs nothing yet.

        Args:
            farewell: returns the last message before the process ends.
        """
        #: The first signal; None before it.
        self.received: signal.Signals | None = None
        self._farewell = farewell
        self._may_exit = False
        self._is_exiting = False

    @contextlib.contextmanager
    def handled(self, cancel: Callable[[signal.Signals], None]) -> Iterator[None]:
        """Handle signals within the block, which the main thread enters.

        A signal that was ignored before, as with nohup(1), stays ignored.

        Args:
            cancel: called with the first signal.
        """

        def handle(number: int, _: FrameType | None) -> None:
            if self.received is None:
                self.received = signal.Signals(number)
                cancel(self.received)
            elif self._may_exit or self._is_exiting:
                self._exit()
            else:
                self._is_exiting = True

        numbers = [it for it in _SIGNALS if signal.getsignal(it) is not signal.SIG_IGN]
        previous = {number: signal.signal(number, handle) for number in numbers}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def allow_exit(self) -> None:
        """Let the second signal end the process, also one that has come before."""
        self._may_exit = True
        if self._is_exiting:
            self._exit()

    def _exit(self) -> None:
        # Below the terminal's `^C`.
        messages.write("\n" if os.isatty(messages.STDERR) else "")
        messages.error(self._farewell())
        # The exit must not wait: not for a stuck reader of the output, nor for a silent batch system.
        os._exit(exit_codes.CANCELLED)

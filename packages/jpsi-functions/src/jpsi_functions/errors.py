"""The errors of calls that ended without a result of the function."""

from __future__ import annotations

from jpsi import Job, JobStatus, JpsiError


class CallError(JpsiError):
    """A call has no result, for a reason that is not an exception of the function.

    The message says it: the interpreter of the job does not fit, or the result could not be pickled.
    """


class JobEndedError(CallError):
    """The job of a call ended before the call did: it was killed, or it left by itself."""

    def __init__(self, message: str, job: Job, status: JobStatus) -> None:
        super().__init__(message)
        #: The job that ended.
        self.job = job
        #: Its last status.
        self.status = status


class UnpicklableError(CallError):
    """The function raised an exception that cannot be pickled; the message has its type and its text."""


class RemoteTraceback(Exception):
    """The traceback of an exception in a job, as text: the `__cause__` of what `Future.result` raises."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._text = text

    def __str__(self) -> str:
        return f'\n"""\n{self._text}"""'

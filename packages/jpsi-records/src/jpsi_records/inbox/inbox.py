"""The inbox of a job: a directory in which the job leaves requests as files for the dispatcher.

The job uses `Inbox`; the dispatcher uses `read_request`, which refuses every file that is no valid request. A
job opens no records: their database may be unreachable or unsafe to use on its host.

The progress file holds the progress of the running job, and its success or failure. The job writes it
(`jpsi request progress`); the dispatcher reads it in each round and records what has changed.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from .. import model
from ..errors import InvalidRequestError, StateError, store_errors
from ..files import write_whole
from .results import RequestResult, read_result, result_path

_SUCCESS, _FAILURE = "success", "failure"


@attrs.frozen(slots=True)
class Report:
    """A job's report of success or failure."""

    #: None if the job has reported neither.
    is_success: bool | None = None
    #: The reason of a failure.
    message: str = ""

    @property
    def outcome(self) -> str:
        """`success` or `failure`, as in the records and in the progress file; empty without a report."""
        return "" if self.is_success is None else _SUCCESS if self.is_success else _FAILURE

    def added_to(self, status: Mapping[str, str]) -> dict[str, str]:
        """Return the status of an execution with this report added.

        >>> Report(is_success=False, message="no input").added_to({"activity": "x"})
        {'activity': 'x', 'reported': 'failure', 'error': 'no input'}
        """
        if self.is_success is None:
            return dict(status)
        other_entries = {name: value for name, value in status.items() if name not in {"reported", "error"}}
        error = {} if self.is_success else {"error": self.message or "the job has reported a failure"}
        return {**other_entries, "reported": self.outcome, **error}


NO_REPORT = Report()


def write_progress(progress: float | None, report: Report) -> str:
    r"""Return the content of a job's progress file.

    >>> write_progress(0.5, Report(is_success=False, message="no\ninput"))
    '0.5\nfailure no input\n'
    """
    lines = [] if progress is None else [f"{progress}"]
    if report.is_success is not None:
        lines.append(" ".join([report.outcome, *report.message.split()]))
    return "".join(f"{line}\n" for line in lines)


def read_progress(text: str) -> tuple[float | None, Report]:
    r"""Return the progress and the report in a progress file: the last valid line of each.

    >>> read_progress("0.25\n0.5\nfailure no input\n")
    (0.5, Report(is_success=False, message='no input'))
    """
    progress, report = None, NO_REPORT
    for line in text.splitlines():
        word, _, message = line.strip().partition(" ")
        if word in {_SUCCESS, _FAILURE}:
            report = Report(is_success=word == _SUCCESS, message=message.strip())
            continue
        try:
            number = float(line)
        except ValueError:
            continue
        if 0 <= number <= 1:
            progress = number
    return progress, report


#: The environment variables of a job: the id of its execution, and the paths of its progress file and inbox.
EXECUTION, PROGRESS, INBOX = "JPSI_EXECUTION", "JPSI_PROGRESS", "JPSI_INBOX"

_VERSION = 1
# The seconds between two checks of a job for the results of its requests.
_POLL_SECONDS = 1.0
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_NAME = re.compile(rf"({_ID.pattern})\.json")


def is_in_job(environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if this process belongs to the job of an execution."""
    return EXECUTION in environment


def refuse_in_job(environment: Mapping[str, str] = os.environ) -> None:
    """Raise `StateError` if this process belongs to the job of an execution."""
    if is_in_job(environment):
        raise StateError(
            f"the job of an execution ({EXECUTION} is set) opens no records; make requests "
            "with `jpsi request submit` or Inbox().submit, and do anything else where jobs are submitted from"
        )


@attrs.frozen(slots=True, kw_only=True)
class InboxRequest:
    """A request that a job has written to its inbox, before the dispatcher takes it in."""

    id: str
    spec: model.RequestSpec
    more: model.About
    priority: float


class Inbox:
    """The interface of a job to the dispatcher: the job makes requests, waits for them and reports progress.

    Its requests are children of the execution: they inherit its priority and are cancelled when it ends.

    Args:
        environment: the environment variables of the job.

    Raises:
        StateError: this process does not belong to the job of an execution.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        if not is_in_job(environment):
            raise StateError(f"this is no job of an execution: {EXECUTION} is not set; open Records instead")
        #: The id of the execution that the job belongs to.
        self.execution = environment[EXECUTION]
        self._directory = environment.get(INBOX)
        self._progress = environment.get(PROGRESS)

    def submit(
        self, spec: model.RequestSpec, more: model.About = model.DEFAULT_ABOUT, *, priority: float = 1
    ) -> str:
        """Write a request to the inbox and return its id; the dispatcher takes it in later.

        Raises:
            InvalidRequestError: the request spec is invalid.
            StateError: `more` names another execution as parent, or the job has no inbox.
            StoreError: the file cannot be written; then there is no request.
        """
        spec = model.with_absolute_urls(spec)
        model.check_request_spec(spec)
        model.check_priority(priority)
        if more.parent not in {None, self.execution}:
            raise StateError(f"a request of a job is a child of its own execution, {self.execution}")
        if self._directory is None:
            raise StateError(f"this job can make no requests: {INBOX} is not set")
        more = attrs.evolve(more, parent=self.execution)
        request = InboxRequest(id=model.new_id(datetime.now(UTC)), spec=spec, more=more, priority=priority)
        path = Path(self._directory, f"{request.id}.json")
        with store_errors(f"the request cannot be written to {path}"):
            write_whole(path, write_request(request))
        return request.id

    def wait(
        self,
        *request_ids: str,
        timeout: float | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> list[RequestResult] | None:
        """Wait until requests of this job have ended or are cancelled.

        Returns their results, or None after the timeout.

        Args:
            request_ids: ids that `submit` has returned.
            timeout: seconds; None waits without limit.
            sleep: sleeps for the given seconds between checks.
            clock: returns the time in seconds.

        Raises:
            InvalidRequestError: an id is not the full id of a request.
            StateError: the job has no inbox.
            StoreError: a result of the dispatcher cannot be read.
        """
        if self._directory is None:
            raise StateError(f"this job can wait for no requests: {INBOX} is not set")
        for it in request_ids:
            if _ID.fullmatch(it) is None:
                raise InvalidRequestError(f"{it!r} is no request of this job; here it takes the whole id")
        end = None if timeout is None else clock() + timeout
        while True:
            found = [read_result(result_path(Path(self._directory), it)) for it in request_ids]
            ended = [it for it in found if it is not None]
            if len(ended) == len(found):
                return ended
            if end is not None and clock() >= end:
                return None
            sleep(_POLL_SECONDS)

    def set_progress(self, progress: float | None = None, report: Report = NO_REPORT) -> None:
        """Report progress, from 0 to 1, or success or failure of the job.

        Raises:
            StateError: the job has no progress file.
            StoreError: the file cannot be written.
        """
        if progress is not None:
            check_progress(progress)
        if self._progress is None:
            raise StateError(f"this job cannot report progress: {PROGRESS} is not set")
        with store_errors(f"{self._progress} cannot be written"):
            # Written in place: a container mounts this very file, and would not see one that replaces it.
            path = Path(self._progress)
            text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
            last_progress, last_report = read_progress(text)
            new_progress = last_progress if progress is None else progress
            new_report = last_report if report.is_success is None else report
            _overwrite(path, write_progress(new_progress, new_report).encode())


def _overwrite(path: Path, content: bytes) -> None:
    """Replace the content of a file in place; until it is truncated, blank lines cover longer old content."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # In one write, unless the disk is full: then no reader sees new content before lines of the old.
        padded, written = content.ljust(os.fstat(file).st_size, b"\n"), 0
        while written < len(padded):
            written += os.pwrite(file, padded[written:], written)
        os.ftruncate(file, len(content))
    finally:
        os.close(file)


def check_progress(progress: float) -> None:
    """Raise `ValueError` unless a number is from 0 to 1."""
    if not 0 <= progress <= 1:
        raise ValueError(f"progress is a number from 0 to 1, not {progress}")


def write_request(request: InboxRequest) -> str:
    """Return the content of the file for a request."""
    document = {
        "v": _VERSION,
        "request_spec": model.write_request_spec(request.spec),
        "priority": request.priority,
        **attrs.asdict(request.more),
    }
    return json.dumps(document, default=datetime.isoformat)


def read_request(name: str, content: bytes) -> InboxRequest:
    """Return the request in a file of an inbox.

    Raises:
        InvalidRequestError: the file is no complete and valid request.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise InvalidRequestError("its name is not that of a request")
    try:
        document = json.loads(content)
        # JSON may hold text that cannot be encoded, such as lone surrogates.
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as e:
        raise InvalidRequestError(f"it is not whole, or no JSON: {e}", e) from e
    if not isinstance(document, Mapping) or document.get("v") != _VERSION:
        raise InvalidRequestError("it holds no request that this version knows")
    spec = model.read_request_spec(document.get("request_spec"))
    model.check_priority(document.get("priority"))
    return InboxRequest(id=match[1], spec=spec, more=_about(document), priority=document["priority"])


def _about(document: Mapping[str, Any]) -> model.About:
    expires, labels = document.get("expires_at"), document.get("labels", {})
    if not isinstance(labels, Mapping):
        raise InvalidRequestError("its labels are no mapping")
    members: dict[str, Any] = {it: document.get(it) for it in ("name", "description", "parent")}
    texts = (*members.values(), *labels.values())
    if not all(isinstance(it, str) and "\0" not in it for it in texts):
        raise InvalidRequestError("its name, description, parent and labels must be text")
    try:
        expires_at = None if expires is None else datetime.fromisoformat(expires).astimezone(UTC)
    except (TypeError, ValueError, OverflowError) as e:
        raise InvalidRequestError(f"expires_at is no time: {expires!r}", e) from e
    return model.About(**members, labels=dict(labels), expires_at=expires_at)

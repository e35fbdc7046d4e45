"""One job in the foreground: its cancellation, and the display while it waits."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, cast
from unittest import mock

import pytest

import jpsi
from jpsi_cli.output.display import Quiet
from jpsi_cli.submission.foreground import Foreground, _Refusal

QUEUED = jpsi.JobStatus(jpsi.JobState.QUEUED)
CANCELED = jpsi.JobStatus(jpsi.JobState.CANCELED, exit_code=143)


class FakeJob:
    """A job whose statuses a test publishes, and that ends once it is cancelled."""

    id, native_id, executor, spec, streams = "a1", "17", None, None, None

    def __init__(self) -> None:
        self.status = jpsi.JobStatus(jpsi.JobState.NEW)
        self.cancelled = 0
        self._callback: Callable[[Any, jpsi.JobStatus], None] = lambda *_: None

    def output(self, stream: str) -> None:
        """Return no known path."""

    def set_job_status_callback(self, callback: Callable[[Any, jpsi.JobStatus], None]) -> None:
        self._callback = callback

    def publish(self, status: jpsi.JobStatus) -> None:
        self.status = status
        self._callback(self, status)

    def cancel(self) -> None:
        self.cancelled += 1


class RecordingDisplay(Quiet):
    """A display that records the messages about a pending job."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str | None] = []

    def waiting(self, status: jpsi.JobStatus, /) -> str:
        self.messages.append(status.message)
        return ""


@pytest.fixture
def job() -> FakeJob:
    return FakeJob()


def foreground(job: FakeJob, display: Quiet) -> Foreground:
    return Foreground(cast("jpsi.Job", job), display)


class FakeExecutor:
    """An executor whose submission is a function of the test."""

    def __init__(self, submit: Callable[[FakeJob], None]) -> None:
        self.submit = submit

    def close(self) -> None:
        """Close nothing."""


def executor(submit: Callable[[FakeJob], None]) -> jpsi.JobExecutor:
    return cast("jpsi.JobExecutor", FakeExecutor(submit))


def test_a_job_is_cancelled_once_whatever_the_reasons(job: FakeJob) -> None:
    """No process reads its output, on either stream."""
    tested = foreground(job, Quiet())

    def submit(job: FakeJob) -> None:
        job.publish(QUEUED)
        for fd in (1, 2):
            tested._events.put(_Refusal(fd, OSError(errno.EPIPE, "Broken pipe")))
        job.publish(CANCELED)

    assert tested.run(executor(submit)) == 141
    assert job.cancelled == 1


def test_ctrl_c_is_confirmed_during_submission(job: FakeJob, capfd: pytest.CaptureFixture[str]) -> None:
    """A submission may last until a timeout; the confirmation is printed once."""

    class ConfirmingDisplay(Quiet):
        def cancelling(self) -> str:
            super().cancelling()
            return "cancelling\n"

    outputs: list[str] = []

    def submit(job: FakeJob) -> None:
        signal.raise_signal(signal.SIGINT)
        outputs.append(capfd.readouterr().err)
        job.publish(QUEUED)
        job.cancel = lambda: job.publish(CANCELED)  # type: ignore[method-assign]

    assert foreground(job, ConfirmingDisplay()).run(executor(submit)) == 130
    outputs.append(capfd.readouterr().err)

    assert outputs == ["cancelling\n", ""]


@pytest.mark.parametrize(
    ("count", "last"),
    [(2, "may still be ending; if it does not end: jpsi cancel"), (3, "may run on: jpsi cancel")],
)
def test_two_interrupts_at_once_cancel_the_job(
    job: FakeJob, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, count: int, last: str
) -> None:
    """As timeout(1) sends them; a third exits although the batch system does not answer."""
    tested = foreground(job, Quiet())
    monkeypatch.setattr(job, "executor", "submitted")
    monkeypatch.setattr(os, "_exit", exits := mock.Mock(side_effect=SystemExit))

    def submit(job: FakeJob) -> None:
        job.publish(QUEUED)
        for _ in range(count):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(SystemExit):
        tested.run(executor(submit))

    exits.assert_called_once_with(130)
    assert job.cancelled == (count == 2)
    assert last in capfd.readouterr().err


def test_a_queued_job_is_polled_for_new_messages(job: FakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    display = RecordingDisplay()
    tested = foreground(job, display)
    events: list[jpsi.JobStatus | None] = [QUEUED, None, None, CANCELED]
    timeouts: list[float | None] = []

    class FakeEvents(SimpleQueue[Any]):
        def get(self, block: bool = True, timeout: float | None = None) -> jpsi.JobStatus:
            timeouts.append(timeout)
            event = events.pop(0)
            if event is None:
                job.status = jpsi.JobStatus(jpsi.JobState.QUEUED, message=f"reason {len(events)}")
                raise Empty
            return event

    monkeypatch.setattr(tested, "_events", FakeEvents())

    tested.run(executor(lambda job: None))

    assert display.messages == ["reason 2", "reason 1"]
    assert timeouts == [1.0] * 4

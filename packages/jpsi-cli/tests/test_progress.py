"""The progress bar of `wait_all(..., progress=True)`, which this package provides."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

import pytest

from jpsi import Job, JobState
from jpsi.futures import wait_all
from manual_executor import ManualExecutor

QUEUED, COMPLETED, FAILED = JobState.QUEUED, JobState.COMPLETED, JobState.FAILED


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def finished() -> Sequence[Job]:
    first, second, third = (ManualExecutor(Job()) for _ in range(3))
    first.publish(QUEUED, COMPLETED)
    second.publish(QUEUED, FAILED)
    third.publish(QUEUED, COMPLETED)
    return [gate.job for gate in (first, second, third)]


def progress_output(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, progress: bool) -> str:
    """Return the text on standard error after waiting for three ended jobs."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "stderr", stream)
    wait_all(finished(), progress=progress)
    return stream.getvalue()


def test_a_terminal_gets_the_number_of_jobs_in_each_state(monkeypatch: pytest.MonkeyPatch) -> None:
    text = progress_output(Terminal(), monkeypatch, progress=True)

    assert "3/3" in text
    assert "2 completed, 1 failed" in text


def test_progress_writes_only_to_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress_output(io.StringIO(), monkeypatch, progress=True) == ""


def test_no_progress_is_shown_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress_output(Terminal(), monkeypatch, progress=False) == ""

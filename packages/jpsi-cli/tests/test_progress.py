"""The progress bar of `wait_all(..., progress=True)`, which this package provides."""

from __future__ import annotations

import builtins
import io
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Self

import pytest

from jpsi import Job, JobState
from jpsi.futures import progress_bar, wait_all
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


class Output:
    """The output of a notebook's cell: the texts that it has shown, one after the other."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def display(self, data: dict[str, str], **_: object) -> Self:
        self.update(data)
        return self

    def update(self, data: dict[str, str], **_: object) -> None:
        self.texts.append(data["text/plain"])


def test_a_notebook_shows_the_bar_as_text_and_needs_no_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    output = Output()
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setattr(builtins, "get_ipython", lambda: shell, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=output.display))

    with progress_bar(2) as bar:
        bar.show("1", JobState.ACTIVE)
        bar.show("2", JobState.COMPLETED)

    assert "0/2" in output.texts[0]
    assert "1/2" in output.texts[-1]
    assert "1 active, 1 completed" in output.texts[-1]
    assert "\x1b" not in output.texts[-1]

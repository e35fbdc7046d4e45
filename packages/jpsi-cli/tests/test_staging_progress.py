"""The progress of staging, on one line of a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, cast

import pytest
from rich.console import Console
from rich.file_proxy import FileProxy

import jpsi
from jpsi_cli import messages
from jpsi_cli.submission import staging_progress

PROGRESS = jpsi.StagingProgress(path="/a/long/path/mesh.dat", is_in=True, done=3 * 2**20, total=2**30)


class StagingExecutor:
    """An executor whose files are on a remote host."""

    callback: Callable[[Any, jpsi.StagingProgress], None] | None = None

    def set_staging_callback(self, callback: Callable[[Any, jpsi.StagingProgress], None]) -> None:
        self.callback = callback


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_shows_staging_progress(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "isatty", lambda fd: is_terminal and fd == messages.STDERR)
    executor = StagingExecutor()

    staging_progress.show(cast("jpsi.JobExecutor", executor))

    assert (executor.callback is not None) is is_terminal
    if executor.callback is not None:
        executor.callback(None, PROGRESS)
        messages.write("\n")
        output = "jpsi: staging in mesh.dat: 3.0 MiB of 1.0 GiB"
        assert capfd.readouterr().err == f"{output}\r{' ' * len(output)}\r\n"


def test_the_next_message_replaces_a_transient_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")

    messages.transient("new")
    messages.transient("f" * 50)
    messages.write("")
    messages.error("it failed")
    messages.error("that is all")

    first, second, third, *rest = capfd.readouterr().err.split("\r")
    assert (first, second, third) == ("jpsi: new", " " * 9, f"jpsi: {'f' * 33}")
    assert rest == [" " * 39, "jpsi: it failed\njpsi: that is all\n"]


def test_a_message_takes_the_place_of_the_bar(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The cursor is at the end of the bar, which rich draws again below."""
    monkeypatch.setattr(sys, "stderr", FileProxy(Console(stderr=True), sys.stderr))

    messages.warning("Slurm does not answer")

    assert capfd.readouterr().err == "\r\x1b[2Kjpsi: warning: Slurm does not answer\n"

"""Has a person at a terminal see how far files are that go to another machine or come from there."""

from __future__ import annotations

import os
from pathlib import PurePath

import attrs

import jpsi

from .. import messages


def show(executor: jpsi.JobExecutor) -> None:
    """Have it shown for the jobs of an executor, if standard error is a terminal."""
    if os.isatty(messages.STDERR):
        executor.set_staging_callback(_show)


def _show(_: jpsi.Job, progress: jpsi.StagingProgress) -> None:
    # by its name: of a long path the end of the line would be cut, which says how far it is
    name = PurePath(progress.path).name or progress.path
    messages.passing(str(attrs.evolve(progress, path=name)))

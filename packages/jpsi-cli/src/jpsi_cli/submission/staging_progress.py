"""Shows at a terminal the progress of files that are staged to or from a remote host.

`jpsi run` and `jpsi submit` use it.
"""

from __future__ import annotations

import os
from pathlib import PurePath

import attrs

import jpsi

from .. import messages


def show(executor: jpsi.JobExecutor) -> None:
    """Show the staging of an executor's jobs, if standard error is a terminal."""
    if os.isatty(messages.STDERR):
        executor.set_staging_callback(_show)


def _show(_: jpsi.Job, progress: jpsi.StagingProgress) -> None:
    # only the name: the terminal would cut a long line at its end, which has the progress
    name = PurePath(progress.path).name or progress.path
    messages.transient(str(attrs.evolve(progress, path=name)))

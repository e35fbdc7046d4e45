"""Implements `jpsi run`: runs one job from the command line in the foreground."""

from __future__ import annotations

from collections.abc import Sequence

import jpsi

from ..output import choose_display, require_fit
from . import documents, staging_progress
from .foreground import Foreground
from .job_spec import OptionValue


def run(  # noqa: PLR0913  all that is not a field of the job, each by its name
    *,
    command: Sequence[str],
    executor: str | None,
    file: str | None,
    expand: bool,
    lenient: bool,
    as_json: bool,
    **options: OptionValue,
) -> int:
    """Run one job and return the exit code; report each failure that jpsi knows in a sentence."""
    job = documents.read_job(command, file, options, is_expanding=expand, is_lenient=lenient)
    with jpsi.JobExecutor(executor) as opened:
        require_fit(opened, [job.spec])
        if not as_json:
            staging_progress.show(opened)
        return Foreground(job, choose_display(as_json=as_json)).run(opened)

"""`jpsi run`: runs one job from the command line in the foreground."""

from __future__ import annotations

from collections.abc import Sequence

import jpsi

from ..error_boundary import fenced
from ..output import choose_display
from . import documents, staging_progress
from .foreground import Foreground
from .job_spec import Given, spec_of


def run(  # noqa: PLR0913  all that is not a field of the job, each by its name
    command: Sequence[str],
    given: Given,
    *,
    executor: str | None,
    file: str | None,
    is_expanding: bool,
    as_json: bool,
) -> int:
    """Run one job and return the exit code; report each failure that jpsi knows in a sentence."""

    def command_line() -> int:
        document = None if file is None else documents.read(file)
        job = jpsi.Job(spec_of(document, command, given, is_expanding=is_expanding))
        with jpsi.JobExecutor(executor) as opened:
            if not as_json:
                staging_progress.show(opened)
            return Foreground(job, choose_display(as_json=as_json)).run(opened)

    return fenced(command_line)

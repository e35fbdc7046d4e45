"""`jpsi run`: runs one job from the command line in the foreground."""

from __future__ import annotations

from collections.abc import Sequence

import jpsi

from ..error_boundary import run_reporting_errors
from ..output import choose_display
from . import documents, staging_progress
from .foreground import Foreground
from .job_spec import Options, make_spec


def run(  # noqa: PLR0913  all that is not a field of the job, each by its name
    command: Sequence[str],
    options: Options,
    *,
    executor: str | None,
    file: str | None,
    is_expanding: bool,
    as_json: bool,
) -> int:
    """Run one job and return the exit code; report each failure that jpsi knows in a sentence."""

    def command_line() -> int:
        document = None if file is None else documents.read_document(file)
        job = jpsi.Job(make_spec(document, command, options, is_expanding=is_expanding))
        with jpsi.JobExecutor(executor) as opened:
            if not as_json:
                staging_progress.show(opened)
            return Foreground(job, choose_display(as_json=as_json)).run(opened)

    return run_reporting_errors(command_line)

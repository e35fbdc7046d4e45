"""`jpsi run`: from the command line to the job, and from what can go wrong to an exit code."""

from __future__ import annotations

from collections.abc import Sequence

import jpsi

from . import display, documents, staging
from .fence import fenced
from .foreground import Foreground
from .options import Given, spec_of


def run(  # noqa: PLR0913  all that is not a field of the job, each by its name
    command: Sequence[str],
    given: Given,
    *,
    executor: str | None,
    file: str | None,
    is_expanding: bool,
    as_json: bool,
) -> int:
    """Run one job and return the exit code; every failure that jpsi knows is told in a sentence."""

    def command_line() -> int:
        document = None if file is None else documents.read(file)
        job = jpsi.Job(spec_of(document, command, given, is_expanding=is_expanding))
        with jpsi.JobExecutor(executor) as opened:
            if not as_json:
                staging.show(opened)
            return Foreground(job, display.chosen(as_json=as_json)).run(opened)

    return fenced(command_line)

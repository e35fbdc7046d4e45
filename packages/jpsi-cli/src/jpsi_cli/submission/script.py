"""Implements `jpsi script`: shows what would be submitted, and by which command; submits nothing."""

from __future__ import annotations

from collections.abc import Sequence

import jpsi
from jpsi.plugin import line

from .. import messages
from . import documents
from .job_spec import OptionValue


def script(  # noqa: PLR0913  all that is not a field of the job, each by its name
    *,
    command: Sequence[str],
    executor: str | None,
    file: str | None,
    expand: bool,
    lenient: bool,
    as_json: bool,
    **options: OptionValue,
) -> int:
    """Show what would be submitted and return the exit code."""
    job = documents.read_job(command, file, options, is_expanding=expand, is_lenient=lenient)
    with jpsi.JobExecutor(executor) as opened:
        preview = opened.preview(job)
    if as_json:
        content = {
            "command": list(preview.command),
            "script": preview.script,
            "path": str(preview.path),
            "run": preview.run,
        }
        messages.show_json(content)
    else:
        reads = "" if preview.script is None else f"### reads:\n{preview.script}"
        messages.show(f"### {line(*preview.command)}\n{reads}### {preview.path}:\n{preview.run}")
    return 0

"""`jpsi script`: shows what would be submitted, and by which command; submits nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence

import jpsi
from jpsi.plugin import line

from .. import messages
from ..error_boundary import run_reporting_errors
from . import documents
from .job_spec import Options, make_spec


def script(  # noqa: PLR0913  all that is not a field of the job, each by its name
    command: Sequence[str],
    options: Options,
    *,
    executor: str | None,
    file: str | None,
    is_expanding: bool,
    as_json: bool,
) -> int:
    """Show what would be submitted and return the exit code."""

    def command_line() -> int:
        document = None if file is None else documents.read_document(file)
        job = jpsi.Job(make_spec(document, command, options, is_expanding=is_expanding))
        with jpsi.JobExecutor(executor) as opened:
            preview = opened.preview(job)
        if as_json:
            content = {
                "command": list(preview.command),
                "script": preview.script,
                "path": str(preview.path),
                "run": preview.run,
            }
            messages.show(json.dumps(content, indent=2) + "\n")
        else:
            messages.show(_text(line(*preview.command), preview.script, str(preview.path), preview.run))
        return 0

    return run_reporting_errors(command_line)


def _text(command: str, script: str | None, path: str, run: str) -> str:
    parts = [f"### {command}\n"]
    if script is not None:
        parts += ["### reads:\n", script]
    return "".join([*parts, f"### {path}:\n", run])

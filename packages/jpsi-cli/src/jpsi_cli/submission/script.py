"""Implements `jpsi script`: shows what would be submitted, and by which command; submits nothing."""

from __future__ import annotations

from collections.abc import Sequence

import jpsi
from jpsi.plugin import line

from .. import messages
from ..stored_jobs import read_dependencies, sort_dependencies
from . import documents
from .job_limits import require_waits
from .job_spec import OptionValue, add_dependencies
from .submit import hold_jobs, make_elements


def script(  # noqa: PLR0913  all that is not a field of the job, each by its name
    *,
    command: Sequence[str],
    executor: str | None,
    file: str | None,
    array: str | None,
    after: Sequence[str],
    hold: bool,
    expand: bool,
    lenient: bool,
    as_json: bool,
    **options: OptionValue,
) -> int:
    """Show what would be submitted and return the exit code."""
    wanted = read_dependencies(after)
    job = documents.read_job(
        command, file, options, executor=executor, is_expanding=expand, is_lenient=lenient
    )
    elements = [] if job.spec is None else make_elements(job.spec, array)
    if len(elements) > 1:
        messages.warning(f"this is the first of the {len(elements)} jobs of an array")
    if elements:
        job.spec = elements[0]
    with jpsi.JobExecutor(executor) as opened:
        if not wanted:
            require_waits(opened, [("" if file is None else documents.file_label(file), job.spec)])
        dependencies = sort_dependencies(wanted, opened, executor)
        add_dependencies(job, dependencies)
        for it in dependencies.foreign:
            messages.warning(f"{opened.name} cannot wait for job {it.job}: jpsi would, and then submit this")
        if hold and not hold_jobs([job], opened):
            messages.warning(
                f"{opened.name} cannot hold jobs: jpsi would, and submit this once it is released"
            )
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

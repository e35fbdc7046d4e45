"""Implements `jpsi script`: shows what would be submitted, and by which command; submits nothing."""

from __future__ import annotations

from collections.abc import Sequence

import jpsi
from jpsi.plugin import line

from .. import messages
from ..stored_jobs import Dependencies, read_dependencies
from . import documents
from .job_limits import require_waits
from .job_spec import OptionValue, add_dependencies
from .submit import make_elements, prepare


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
    jobs = [job] if job.spec is None else [jpsi.Job(it) for it in make_elements(job.spec, array)]
    job = jobs[0]
    if len(jobs) > 1:
        messages.warning(f"this is the first of the {len(jobs)} jobs of an array")
    with jpsi.JobExecutor(executor) as opened:
        if not wanted:
            require_waits(opened, [("" if file is None else documents.file_label(file), job.spec)])
        dependencies, is_deferred = prepare(jobs, opened, executor, wanted, is_held=hold)
        if is_deferred:
            # the batch system waits for what is left then
            add_dependencies(job, dependencies)
            _report_deferral(opened.name, dependencies, is_held=hold)
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


def _report_deferral(executor: str, dependencies: Dependencies, *, is_held: bool) -> None:
    """Warn of what jpsi itself would do before it submits the job."""
    for it in dependencies.foreign:
        messages.warning(f"{executor} cannot wait for job {it.job}: jpsi would, and then submit this")
    if is_held:
        messages.warning("jpsi itself would hold this job, and submit it once it is released")
    elif not dependencies.foreign:
        messages.warning(
            f"{executor} cannot limit how many run at a time: jpsi would, and submit this when it is its turn"
        )

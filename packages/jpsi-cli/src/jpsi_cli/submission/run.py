"""Implements `jpsi run`: runs one job from the command line in the foreground."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

import jpsi

from .. import messages
from ..output import choose_display
from . import documents, staging_progress
from .foreground import Foreground
from .job_limits import report_ignored, reporting_refused_queues, require_fit, require_waits
from .job_spec import OptionValue, add_dependencies
from .missing_files import warn_of_missing_files

if TYPE_CHECKING:
    from ..stored_jobs import Dependencies

_SUBJECT = "the job"


def run(  # noqa: PLR0913  all that is not a field of the job, each by its name
    *,
    command: Sequence[str],
    executor: str | None,
    file: str | None,
    after: Sequence[str],
    expand: bool,
    lenient: bool,
    as_json: bool,
    **options: OptionValue,
) -> int:
    """Run one job and return the exit code; report each failure that jpsi knows in a sentence."""
    wanted = _read_dependencies(after) if after else []
    job = documents.read_job(
        command, file, options, executor=executor, is_expanding=expand, is_lenient=lenient
    )
    with jpsi.JobExecutor(executor) as opened:
        specs = [("" if file is None else documents.file_label(file), job.spec)]
        if not wanted:
            require_waits(opened, specs)
        require_fit(opened, specs)
        report_ignored(opened, specs)
        if not wanted:
            warn_of_missing_files(opened, [job.spec])
        if not as_json:
            staging_progress.show(opened)
        foreground = Foreground(job, choose_display(as_json=as_json))
        if not wanted:
            with reporting_refused_queues(opened, specs):
                return foreground.run(opened)
        from ..stored_jobs import naming_ended  # noqa: PLC0415  with all that recalls jobs

        add_dependencies(job, _await_foreign(wanted, opened, executor))
        with naming_ended(wanted, opened, executor), reporting_refused_queues(opened, specs):
            return foreground.run(opened)


def _read_dependencies(after: Sequence[str]) -> Sequence[jpsi.Dependency]:
    from ..stored_jobs import read_dependencies  # noqa: PLC0415  most jobs have no dependencies

    return read_dependencies(after)


def _await_foreign(
    wanted: Sequence[jpsi.Dependency], executor: jpsi.JobExecutor, name: str | None
) -> Dependencies:
    """Wait for the jobs for which no batch system waits; return the dependencies that are left then."""
    # with all that recalls jobs
    from jpsi_engine import job_store  # noqa: PLC0415

    from ..stored_jobs import await_dependencies, dependency_words, sort_dependencies  # noqa: PLC0415

    dependencies = sort_dependencies(wanted, executor, name)
    if not dependencies.foreign:
        return dependencies
    count = len(dependencies.foreign)
    awaited = f"job {dependencies.foreign[0].job} has" if count == 1 else f"{count} jobs have"
    messages.error(
        f"{executor.name} cannot wait, so jpsi waits here until {awaited} ended; Ctrl-C stops that"
    )
    unmet = await_dependencies(dependencies.foreign)
    if unmet:
        raise jpsi.InvalidJobException.of(_SUBJECT, unmet)
    left = sort_dependencies([it for it in wanted if it not in dependencies.foreign], executor, name)
    stored = {job.id: job for job in job_store.jobs()}
    words = dependency_words((it.kind, stored[str(it.job)]) for it in dependencies.foreign)
    return attrs.evolve(left, all=dependencies.all, met=[*left.met, *words])

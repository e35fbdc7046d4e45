"""Implements `jpsi submit`: submits jobs, prints their ids, and exits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jpsi

from .. import exit_codes, messages
from ..error_boundary import translate_to_options
from ..output import require_fit
from . import documents, staging_progress
from .job_spec import OptionValue, make_spec

# How many jobs with the same reason a message names.
_MAX_NAMED = 5


def submit(  # noqa: PLR0913  all that is not a field of the job, each by its name
    *,
    command: Sequence[str],
    executor: str | None,
    files: Sequence[str],
    many: str | None,
    expand: bool,
    lenient: bool,
    as_json: bool,
    **options: OptionValue,
) -> int:
    """Submit the jobs and return the exit code."""
    if many is None:
        read = documents.read_documents(files, is_lenient=lenient)
    else:
        read = documents.read_json_lines(many, is_lenient=lenient)
    specs: Sequence[tuple[str, jpsi.JobSpec | None]] = read or [("", None)]
    jobs = {
        jpsi.Job(make_spec(spec, command, options, is_expanding=expand)): location for location, spec in specs
    }
    with jpsi.JobExecutor(executor) as opened:
        require_fit(opened, [job.spec for job in jobs])
        staging_progress.show(opened)
        code = _submit(jobs, opened, as_json=as_json)
        if any(job.native_id is not None for job in jobs):
            # no other process may be following these jobs, and `jpsi ls` has to know how they ended
            opened.record_site_policy()
        return code


def _submit(locations: Mapping[jpsi.Job, str], executor: jpsi.JobExecutor, *, as_json: bool) -> int:
    """Submit jobs; `locations` has the file and line of each job's document, for messages."""
    jobs = list(locations)
    try:
        if len(jobs) == 1:
            executor.submit(jobs[0])
        else:
            executor.submit_many(jobs, checks_first=True)
    except KeyboardInterrupt:
        # the user must not lose sight of jobs that the batch system has
        _show([job for job in jobs if job.native_id is not None], executor, as_json=as_json)
        raise
    except jpsi.BulkException as e:
        wrong = {job: it for job, it in e.failed.items() if isinstance(it, jpsi.InvalidJobException)}
        if wrong and not e.done:
            messages.error(f"{len(wrong)} of {len(jobs)} jobs can never run as they are; none was submitted:")
            _report_reasons(wrong, locations)
            return exit_codes.USAGE
        _show(e.done, executor, as_json=as_json)
        messages.error(f"{len(e.failed)} of {len(jobs)} jobs could not be submitted:")
        _report_reasons(e.failed, locations)
        return exit_codes.JPSI
    _show(jobs, executor, as_json=as_json)
    return 0


def _report_reasons(failed: Mapping[jpsi.Job, jpsi.JpsiError], locations: Mapping[jpsi.Job, str]) -> None:
    """Report why jobs were not submitted, each reason once."""
    reasons: dict[str, list[str]] = {}
    for job, why in failed.items():
        reasons.setdefault(translate_to_options(str(why)), []).append(locations[job])
    for reason, affected in reasons.items():
        more = f", and {len(affected) - _MAX_NAMED} more" if len(affected) > _MAX_NAMED else ""
        messages.write(messages.printable(f"  - {'; '.join(affected[:_MAX_NAMED])}{more}: {reason}\n"))


def _show(jobs: Sequence[jpsi.Job], executor: jpsi.JobExecutor, *, as_json: bool) -> None:
    if not as_json:
        messages.show("".join(f"{job.id}\n" for job in jobs))
        return
    for job in jobs:
        name = None if job.spec is None else job.spec.name
        content = {"id": job.id, "native_id": job.native_id, "name": name, "executor": executor.name}
        messages.show_json(content, indent=None)

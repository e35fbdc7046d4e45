"""Implements `jpsi resubmit`: submits jobs on disk again, as new jobs, and prints their ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

from .. import exit_codes, messages
from ..error_boundary import SelectionError, translate_to_options
from ..stored_jobs import group_by_origin, job_with_index, read_dependencies, select_jobs
from .job_limits import require_fit
from .job_spec import OptionValue, make_spec
from .submit import submit_to

# How many jobs that cannot be repeated a message names.
_MAX_PROBLEMS = 5


def resubmit(
    *,
    jobs: Sequence[str],
    only_failed: bool,
    after: Sequence[str],
    as_json: bool,
    **options: OptionValue,
) -> int:
    """Submit jobs again, each to its executor, and return the exit code."""
    stored = job_store.jobs()
    selected = select_jobs(jobs, stored)
    if only_failed:
        selected = _select_failed(selected, _repetitions(stored))
    problems = [problem for job in selected if (problem := _problem(job))]
    if problems:
        more = [f"and {len(problems) - _MAX_PROBLEMS} more"] if len(problems) > _MAX_PROBLEMS else []
        raise SelectionError("\n".join([*problems[:_MAX_PROBLEMS], *more]))
    wanted = read_dependencies(after)
    if not wanted and any(job.spec.attributes.after for job in selected):
        messages.error("the old jobs waited for others, the new ones do not; --after has them wait")
    specs = {job.id: make_spec(_spec(job), (), options, is_expanding=False) for job in selected}
    # what is wrong with one executor's jobs is found before those of another are submitted
    prepared = []
    for origin, originals in group_by_origin(selected).items():
        repeated = job_store.repeated_specs({job.id: specs[job.id] for job in originals})
        locations = {
            jpsi.Job(spec): job_with_index(job) for job, spec in zip(originals, repeated, strict=True)
        }
        name, _ = origin.asked_for
        executor = origin.open()
        for spec in repeated:
            # the old job was released
            (spec.attributes.custom_attributes or {}).pop(executor.system.capabilities.hold_option, None)
        require_fit(executor, [(location, job.spec) for job, location in locations.items()])
        prepared.append((executor, name, locations))
    codes = []
    for executor, name, locations in prepared:
        try:
            code = submit_to(executor, name, locations, wanted, is_held=False, as_json=as_json)
        except (jpsi.JpsiError, SelectionError) as e:
            if len(prepared) == 1:
                raise
            messages.error(f"{executor.name}: {translate_to_options(str(e))}")
            code = exit_codes.JPSI
        codes.append(code)
    # a mistake means that nothing was submitted
    return exit_codes.JPSI if len(set(codes)) > 1 else max(codes, default=0)


def _repetitions(jobs: Iterable[StoredJob]) -> Mapping[str, StoredJob]:
    """Return the jobs that repeat others, by the ids of these, without those that were not submitted."""
    return {
        job.repeats: job
        for job in jobs
        if job.repeats is not None and not (job.is_unsent and job.deferral is None)
    }


def _select_failed(jobs: Sequence[StoredJob], repetitions: Mapping[str, StoredJob]) -> list[StoredJob]:
    """Return the jobs that have not completed and have no repetition; report if there are none."""
    failed = [job for job in jobs if job.status.final and job.status.state is not jpsi.JobState.COMPLETED]
    found = [job for job in failed if job.id not in repetitions]
    if not failed:
        messages.error("nothing to submit: none has failed or was cancelled")
    elif not found:
        last = repetitions[failed[-1].id]
        messages.error(
            f"nothing to submit: what failed was submitted again before, as {last.array_id or last.id}"
        )
    return found


def _problem(job: StoredJob) -> str:
    """Return why a job cannot be repeated; empty if it can."""
    if not job.status.final:
        # of a job that was not submitted, its program may still submit it
        return f"{job_with_index(job)} has not ended: {job.remark or f'it is {job.status.state}'}"
    if job.damage and job.spec.executable is None:
        return f"{job_with_index(job)} cannot be repeated: {job.remark}"
    return ""


def _spec(job: StoredJob) -> jpsi.JobSpec:
    # a spec without a directory means the current one, which was another when the job was submitted
    return attrs.evolve(job.spec, directory=job.spec.directory or job.directory)

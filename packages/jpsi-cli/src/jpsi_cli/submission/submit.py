"""Implements `jpsi submit`: submits jobs, prints their ids, and exits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

import jpsi
from jpsi.plugin import BatchConfig
from jpsi_engine import array_specs, job_store
from jpsi_engine.job_store import array_id, at_a_time

from .. import exit_codes, messages
from ..error_boundary import translate_to_options
from ..output import require_fit
from ..stored_jobs import read_dependencies, sort_dependencies, start_waiting
from . import documents, staging_progress
from .job_spec import OptionValue, make_spec

# How many jobs with the same reason a message names.
_MAX_NAMED = 5
_LOCAL = "local"


def submit(  # noqa: PLR0913  all that is not a field of the job, each by its name
    *,
    command: Sequence[str],
    executor: str | None,
    files: Sequence[str],
    many: str | None,
    array: str | None,
    after: Sequence[str],
    hold: bool,
    expand: bool,
    lenient: bool,
    as_json: bool,
    **options: OptionValue,
) -> int:
    """Submit the jobs and return the exit code."""
    wanted = read_dependencies(after)
    if many is None:
        read = documents.read_documents(files, is_lenient=lenient)
    else:
        read = documents.read_json_lines(many, is_lenient=lenient)
    specs: Sequence[tuple[str, jpsi.JobSpec | None]] = read or [("", None)]
    jobs: dict[jpsi.Job, str] = {}
    for location, document in specs:
        spec = make_spec(document, command, options, is_expanding=expand)
        jobs |= {jpsi.Job(it): location for it in make_elements(spec, array)}
    with _open(executor, list(jobs)) as opened:
        require_fit(opened, [(location, job.spec) for job, location in jobs.items()])
        staging_progress.show(opened)
        dependencies = sort_dependencies(wanted, opened, executor)
        for job in jobs:
            add_dependencies(job, dependencies.native)
        is_deferred = bool(dependencies.foreign) or (hold and not _hold(jobs, opened))
        if is_deferred:
            return _defer(list(jobs), opened, dependencies.foreign, is_held=hold, as_json=as_json)
        code = _submit(jobs, opened, as_json=as_json)
        if any(job.native_id is not None for job in jobs):
            # no other process may be following these jobs, and `jpsi ls` has to know how they ended
            opened.record_site_policy()
        return code


def make_elements(spec: jpsi.JobSpec, indices: str | None) -> list[jpsi.JobSpec]:
    """Return the specs of the jobs of an array; the spec itself if it is that of one job.

    Raises:
        InvalidJobException: the text names no indices.
    """
    try:
        found = array_specs(spec, indices)
    except ValueError as e:
        msg = f"{'jpsi.array' if indices is None else '--array'}: {e}"
        raise jpsi.InvalidJobException(msg) from e
    for name in ("stdout", "stderr"):
        path = getattr(spec, f"{name}_path")
        if len(found) > 1 and path is not None and getattr(found[0], f"{name}_path") == path:
            messages.warning(f"all jobs of the array write to {path}; %a in --{name} stands for the index")
    return found


def _open(name: str | None, jobs: Sequence[jpsi.Job]) -> jpsi.JobExecutor:
    """Open the executor; on this machine with a limit of jobs that run at a time, if the array has one."""
    executor = jpsi.JobExecutor(name)
    limits = [it for job in jobs if job.spec is not None and (it := at_a_time(job.spec)) is not None]
    arrays = executor.system.capabilities.arrays
    if not limits or (arrays is not None and arrays.limits and len(jobs) <= arrays.largest):
        return executor
    config = executor.system.site().config
    if executor.name != _LOCAL or executor.system.is_remote or not isinstance(config, BatchConfig):
        msg = f"{executor.name} cannot limit how many of {len(jobs)} jobs run at once: leave out %{limits[0]}"
        raise jpsi.InvalidJobException(msg)
    cores = max(_core_count(job.spec) for job in jobs if job.spec is not None)
    most = min(filter(None, (limits[0] * cores, config.max_active)))
    count = max(1, most // cores)
    messages.error(f"this command runs until the last job has started, as {count} of them run at a time")
    return jpsi.JobExecutor(name, config=attrs.evolve(config, max_active=most))


def _core_count(spec: jpsi.JobSpec) -> int:
    resources = spec.resources
    if not isinstance(resources, jpsi.ResourceSpecV1):
        return 1
    return resources.computed_process_count * (resources.cpu_cores_per_process or 1)


def _hold(jobs: Iterable[jpsi.Job], executor: jpsi.JobExecutor) -> bool:
    """Have the batch system hold jobs when it gets them; return False if it cannot."""
    option = executor.system.capabilities.hold_option
    for job in jobs:
        if option and job.spec is not None:
            job.spec.attributes.set_custom_attribute(option, value=True)
    return bool(option)


def add_dependencies(job: jpsi.Job, after: Sequence[jpsi.Dependency]) -> None:
    """Have a job wait for further jobs."""
    if after and job.spec is not None:
        job.spec.attributes.after = [*(job.spec.attributes.after or ()), *after]


def _defer(
    jobs: Sequence[jpsi.Job],
    executor: jpsi.JobExecutor,
    awaited: Sequence[jpsi.Dependency],
    *,
    is_held: bool,
    as_json: bool,
) -> int:
    """Have a process submit jobs once the jobs have ended for which no batch system waits."""
    deferral = job_store.defer(executor, jobs, awaited, is_held=is_held)
    if not is_held:
        deferral = start_waiting(deferral)
    _show(jobs, executor, as_json=as_json)
    shown = _shown_id(jobs[0])
    if is_held:
        why = "" if executor.system.capabilities.hold_option else f"{executor.name} holds no jobs, so "
        messages.error(f"{why}jpsi submits this one later: jpsi release {shown}")
        return 0
    others = f"job {awaited[0].job}" if len(awaited) == 1 else f"{len(awaited)} other jobs"
    messages.error(
        f"{executor.name} cannot wait for {others}, so {deferral.process} does and then submits: it has to "
        f"run until then. If it is killed, jpsi ls shows that, and jpsi wait {shown} starts another"
    )
    return 0


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
        # an array is one thing
        messages.show("".join(f"{it}\n" for it in dict.fromkeys(map(_shown_id, jobs))))
        return
    for job in jobs:
        name = None if job.spec is None else job.spec.name
        content = {"id": job.id, "native_id": job.native_id, "name": name, "executor": executor.name}
        messages.show_json(content, indent=None)


def _shown_id(job: jpsi.Job) -> str:
    return (None if job.spec is None else array_id(job.spec)) or job.id

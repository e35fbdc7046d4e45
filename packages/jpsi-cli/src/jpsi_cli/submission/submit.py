"""Implements `jpsi submit`: submits jobs, prints their ids, and exits."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

import jpsi
from jpsi_engine import array_specs, job_store
from jpsi_engine.job_store import array_id, array_index

from .. import exit_codes, messages
from ..error_boundary import translate_to_options
from ..stored_jobs import (
    Dependencies,
    naming_ended,
    read_dependencies,
    sort_dependencies,
    start_following,
    start_waiting,
    starts_bit_by_bit,
)
from . import documents, staging_progress
from .command_warnings import warn_of_habits
from .job_limits import report_ignored, reporting_refused_queues, require_fit, require_waits
from .job_spec import OptionValue, add_dependencies, make_specs
from .missing_files import warn_of_missing_files

# How many jobs with the same reason a message names.
_MAX_NAMED = 5


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
    made = make_specs([document for _, document in specs], command, options, is_expanding=expand)
    for (location, _), spec in zip(specs, made, strict=True):
        jobs |= {jpsi.Job(it): location for it in make_elements(spec, array)}
    # a command is the only job
    warn_of_habits(command, options, spec, executor)
    opened = jpsi.JobExecutor(executor)
    located = [(location, job.spec) for job, location in jobs.items()]
    if not wanted:
        require_waits(opened, located)
    require_fit(opened, located)
    report_ignored(opened, located)
    if not wanted:
        warn_of_missing_files(opened, (spec for _, spec in located))
    with opened:
        staging_progress.show(opened)
        return submit_to(opened, executor, jobs, wanted, is_held=hold, as_json=as_json)


def submit_to(  # noqa: PLR0913  all that is not a field of the jobs
    system: jpsi.JobExecutor,
    name: str | None,
    jobs: Mapping[jpsi.Job, str],
    wanted: Sequence[jpsi.Dependency],
    *,
    is_held: bool,
    as_json: bool,
) -> int:
    """Submit jobs that fit the queues, print their ids, and return the exit code.

    Args:
        system: the executor, which the caller closes.
        name: the name by which the user asked for it.
        jobs: the jobs, each with where it was requested, for messages.
        wanted: what they wait for, as `read_dependencies` returns it.
        is_held: True if they start only once they are released.
        as_json: True to print JSON instead of ids.
    """
    dependencies, is_deferred = prepare(list(jobs), system, name, wanted, is_held=is_held)
    if is_deferred:
        return _defer(list(jobs), system, dependencies, is_held=is_held, as_json=as_json)
    code = _submit(jobs, system, naming_ended(wanted, system, name), as_json=as_json)
    if any(job.native_id is not None for job in jobs):
        # no other process may be following these jobs, and `jpsi ls` has to know how they ended
        system.record_site_policy()
    return _follow_retries(jobs) or code


def prepare(
    jobs: Sequence[jpsi.Job],
    system: jpsi.JobExecutor,
    name: str | None,
    wanted: Sequence[jpsi.Dependency],
    *,
    is_held: bool,
) -> tuple[Dependencies, bool]:
    """Have jobs wait, and be held; return their dependencies, and True if jpsi is to submit them later.

    The arguments are as above.
    """
    is_slow = starts_bit_by_bit(system, [job.spec for job in jobs if job.spec is not None])
    dependencies = sort_dependencies(wanted, system, name)
    is_deferred = bool(dependencies.foreign) or is_slow or (is_held and not _hold(jobs, system))
    for job in jobs:
        add_dependencies(job, dependencies, are_met_alone=is_deferred)
    return dependencies, is_deferred


def _follow_retries(jobs: Iterable[jpsi.Job]) -> int:
    """Have a process submit jobs again that may be; return the exit code, 0 unless that is not possible."""
    followed = [it for it in jobs if it.native_id and it.spec is not None and it.spec.attributes.retry]
    if not followed:
        return 0
    hint = f"jpsi wait {_shown_id(followed[0])}"
    try:
        pid = start_following([it.id for it in followed])
    except jpsi.SubmitException as e:
        messages.error(f"{e}; {hint} does that while it runs")
        return exit_codes.JPSI
    messages.error(
        f"process {pid} on {platform.node()} submits again what ends for a reason of "
        f"{translate_to_options('attributes.retry')}: it has to run until then. If it is killed, {hint} goes "
        "on"
    )
    return 0


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
    for name in ("stdout_path", "stderr_path"):
        path = getattr(spec, name)
        if len(found) > 1 and path is not None and getattr(found[0], name) == path:
            messages.warning(f"all jobs of the array write to {path}; %a in that path stands for the index")
    return found


def _hold(jobs: Iterable[jpsi.Job], executor: jpsi.JobExecutor) -> bool:
    """Have the batch system hold jobs when it gets them; return False if it cannot."""
    option = executor.system.capabilities.hold_option
    for job in jobs:
        if option and job.spec is not None:
            job.spec.attributes.set_custom_attribute(option, value=True)
    return bool(option)


def _defer(
    jobs: Sequence[jpsi.Job],
    executor: jpsi.JobExecutor,
    after: Dependencies,
    *,
    is_held: bool,
    as_json: bool,
) -> int:
    """Have a process submit jobs: once others have ended, or a few at a time, where no batch system does."""
    deferral = job_store.defer(executor, jobs, after.all, is_held=is_held)
    # the user must not lose sight of the jobs, which are on disk now
    _show(jobs, executor, as_json=as_json)
    shown = _shown_id(jobs[0])
    if is_held:
        messages.error(f"jpsi submits it to {executor.name} once it is released: jpsi release {shown}")
        return 0
    try:
        start_waiting(deferral)
    except jpsi.SubmitException as e:
        messages.error(f"it is on disk and not submitted: {e}; jpsi wait {shown} tries that again")
        return exit_codes.JPSI
    hint = f"If it is killed, jpsi ls shows that, and jpsi wait {shown} starts another"
    awaited = after.foreign
    others = f"job {awaited[0].job}" if len(awaited) == 1 else f"{len(awaited)} other jobs"
    if awaited:
        messages.error(
            f"{executor.name} cannot wait for {others}, so {deferral.process} does and then submits: it has "
            f"to run until then. {hint}"
        )
    else:
        messages.error(
            f"{executor.name} cannot limit how many run at a time, so {deferral.process} does: it has to run "
            f"until the last has started. {hint}"
        )
    return 0


def _submit(
    locations: Mapping[jpsi.Job, str],
    executor: jpsi.JobExecutor,
    explained: AbstractContextManager[None],
    *,
    as_json: bool,
) -> int:
    """Submit jobs within `explained`; `locations` has where each job was requested, for messages."""
    jobs = list(locations)
    located = [(location, job.spec) for job, location in locations.items()]
    try:
        with explained, reporting_refused_queues(executor, located):
            if len(jobs) == 1:
                executor.submit(jobs[0])
            else:
                executor.submit_many(jobs, checks_first=True)
    except KeyboardInterrupt:
        # the user must not lose sight of jobs that the batch system has
        submitted = [job for job in jobs if job.native_id is not None]
        _show(submitted, executor, as_json=as_json)
        messages.error(f"interrupted: {len(submitted)} of {len(jobs)} jobs were submitted")
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
        # the elements of an array have one location, and those of a command line have none
        named = [it for it in dict.fromkeys(affected) if it]
        more = f", and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
        where = f"{'; '.join(named[:_MAX_NAMED])}{more}: " if named else ""
        messages.write(messages.printable(f"  - {where}{reason}\n"))


def _show(jobs: Sequence[jpsi.Job], executor: jpsi.JobExecutor, *, as_json: bool) -> None:
    if not as_json:
        # an array is one thing
        messages.show("".join(f"{it}\n" for it in dict.fromkeys(map(_shown_id, jobs))))
        return
    for job in jobs:
        name = None if job.spec is None else job.spec.name
        content = {
            "id": job.id,
            "native_id": job.native_id,
            "name": name,
            "executor": executor.name,
            "array_id": None if job.spec is None else array_id(job.spec),
            "array_index": None if job.spec is None else array_index(job.spec.environment),
        }
        messages.show_json(content, indent=None)


def _shown_id(job: jpsi.Job) -> str:
    return (None if job.spec is None else array_id(job.spec)) or job.id

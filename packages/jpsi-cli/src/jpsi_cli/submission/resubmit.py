"""Implements `jpsi resubmit`: submits jobs on disk again, as new jobs, and prints their ids."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs

import jpsi
from jpsi.plugin import line
from jpsi_engine import job_store, reopen_queue
from jpsi_engine.job_store import Origin, StoredJob

from .. import exit_codes, messages
from ..error_boundary import SelectionError, translate_to_options
from ..stored_jobs import (
    Owner,
    array_sizes,
    dependency_words,
    describe_predecessors,
    describe_unmet,
    find_owner,
    find_repetitions,
    has_failed,
    job_with_index,
    job_words,
    read_dependencies,
    recall_jobs,
    select_jobs,
    settle_ends,
    settle_vain_waits,
    was_not_submitted,
)
from . import staging_progress
from .job_limits import report_ignored, require_fit, require_valid
from .job_spec import OptionValue, make_specs
from .repetitions import Repetition, plan_repetitions
from .submit import submit_to

# How many jobs that cannot be repeated a message names.
_MAX_PROBLEMS = 5
_MAX_NAMED = 4
_HOW_TO_SUBMIT = "the program that was to submit {} may still do so; end {} first: jpsi cancel {}"


def resubmit(
    *,
    jobs: Sequence[str],
    only_failed: bool,
    after: Sequence[str],
    as_json: bool,
    **options: OptionValue,
) -> int:
    """Submit jobs again, each to its executor, and return the exit code."""
    found = settle_vain_waits(settle_ends(select_jobs(jobs, job_store.jobs())))
    with job_store.lock_repetitions(found):
        selected = _select_failed(found) if only_failed else _select_last(found)
        notes = describe_predecessors(jobs, (job for job in found if job.repeats is None))
        return _repeat(selected, notes, after, options, as_json=as_json)


def _repeat(
    selected: Sequence[StoredJob],
    notes: Mapping[str, str],
    after: Sequence[str],
    options: Mapping[str, OptionValue],
    *,
    as_json: bool,
) -> int:
    """Submit jobs again, and return the exit code; `notes` are those of `describe_predecessors`."""
    problems = [problem for job in selected if (problem := _problem(job))]
    if problems:
        raise SelectionError("\n".join(_shortened(problems)))
    if unsent := [job for job in selected if job.was_given_up]:
        one = f"{job_with_index(unsent[0])} was never submitted; jpsi repeats it like one that failed"
        several = f"{len(unsent)} jobs were never submitted; jpsi repeats them like those that failed"
        messages.error(one if len(unsent) == 1 else several)
    typed = read_dependencies(after)
    plan = _plan(selected, typed)
    _report_dependencies(plan)
    made = make_specs(map(_spec, selected), (), options, is_expanding=False)
    specs = {job.id: spec for job, spec in zip(selected, made, strict=True)}
    new: dict[str, jpsi.Job] = {}
    executors: dict[Origin, jpsi.JobExecutor] = {}
    # what is wrong with one executor's jobs is found before those of another are submitted
    for origin, originals in job_store.by_origin(selected).items():
        executors[origin] = origin.open()
        new |= _make_jobs(executors[origin], originals, specs, is_split=len(plan) > 1)
    _report_predecessors(selected, notes)
    _report_owners(selected)
    with contextlib.ExitStack() as stack:
        for executor in executors.values():
            staging_progress.show(stack.enter_context(executor))
        return _Submission(executors, new, as_json=as_json).submit_all(plan)


def _plan(selected: Sequence[StoredJob], typed: Sequence[jpsi.Dependency]) -> list[Repetition]:
    """Return repetitions in their order; what was typed takes the place of jobs that are not repeated."""
    stored = job_store.jobs()
    plan = plan_repetitions(selected, stored)
    if typed:
        return [attrs.evolve(it, others=typed, unmet=(), unknown=()) for it in plan]
    awaited = {str(it.job) for repetition in plan for it in repetition.others}
    unclear = [job for job in stored if job.id in awaited and not job.status.final]
    if not unclear:
        return plan
    # what the batch system alone knows of them
    settle_ends(unclear)
    return plan_repetitions(selected, job_store.jobs())


def _report_dependencies(plan: Sequence[Repetition]) -> None:
    """Report jobs for which repetitions do not wait, as they are not on disk.

    Raises:
        SelectionError: repetitions could never start.
    """
    unmet = [it for it in plan if it.unmet]
    if unmet:
        stored = {job.id: job for job in job_store.jobs()}
        raise SelectionError("\n".join(_shortened([_describe_unmet(it, stored) for it in unmet])))
    unknown = list(dict.fromkeys(word for it in plan for word in it.unknown))
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        what = f"the old jobs waited for {unknown[0]}{more}, which jpsi does not know"
        messages.error(f"{what}; the new ones do not, unless --after names them")


def _describe_unmet(repetition: Repetition, stored: Mapping[str, StoredJob]) -> str:
    """Return why a repetition could never start, and all options by which it starts; `stored` is by id."""
    job, unmet = repetition.jobs[0], repetition.unmet[0]
    why = describe_unmet(unmet.kind, unmet.job, unmet.job.status)
    # what is typed takes the place of the others, too
    words = dependency_words((jpsi.DependencyKind.ANY, it.job) for it in repetition.unmet)
    words += dependency_words((it.kind, stored[str(it.job)]) for it in repetition.others)
    options = line(*(part for it in words for part in ("--after", it)))
    return f"{job_with_index(job)}: {why}; resubmit both, or start this one all the same: {options}"


def _shortened(problems: Sequence[str]) -> list[str]:
    more = [f"and {len(problems) - _MAX_PROBLEMS} more"] if len(problems) > _MAX_PROBLEMS else []
    return [*problems[:_MAX_PROBLEMS], *more]


def _make_jobs(
    executor: jpsi.JobExecutor,
    originals: Sequence[StoredJob],
    specs: Mapping[str, jpsi.JobSpec],
    *,
    is_split: bool,
) -> dict[str, jpsi.Job]:
    """Return the new jobs that repeat those of an executor, by the ids of the old ones.

    If they are split into several submissions, none of these alone would find all mistakes first.
    """
    repeated = job_store.repeated_specs({job.id: specs[job.id] for job in originals})
    for spec in repeated:
        # the old job was released
        (spec.attributes.custom_attributes or {}).pop(executor.system.capabilities.hold_option, None)
    locations = [(job_with_index(job), spec) for job, spec in zip(originals, repeated, strict=True)]
    require_fit(executor, locations)
    report_ignored(executor, locations)
    if is_split:
        require_valid(executor, locations)
    return {job.id: jpsi.Job(spec) for job, spec in zip(originals, repeated, strict=True)}


@attrs.define
class _Submission:
    """The submission of new jobs, each behind those that it waits for."""

    _executors: Mapping[Origin, jpsi.JobExecutor]
    #: By the ids of the jobs that they repeat.
    _new: Mapping[str, jpsi.Job]
    _as_json: bool = attrs.field(kw_only=True)
    #: The old jobs whose repetitions were not submitted, by id.
    _failed: dict[str, StoredJob] = attrs.field(factory=dict, init=False)

    def submit_all(self, plan: Sequence[Repetition]) -> int:
        """Submit jobs, and return the exit code."""
        codes = set()
        for it in plan:
            awaited = next((job for other in it.repeated if (job := self._failed.get(str(other.job)))), None)
            if awaited is None:
                codes.add(self._submit(it, is_alone=len(plan) == 1))
            else:
                _report_left_out_behind(it.jobs, awaited)
                self._failed |= {job.id: job for job in it.jobs}
        # a mistake means that nothing was submitted
        return exit_codes.JPSI if len(codes) > 1 else max(codes, default=0)

    def _submit(self, repetition: Repetition, *, is_alone: bool) -> int:
        """Submit jobs that wait for the same ones, and return the exit code; raise what befalls no others."""
        jobs, origin = repetition.jobs, repetition.jobs[0].origin
        executor, (name, _) = self._executors[origin], origin.asked_for
        repeated = [jpsi.Dependency(self._new[str(it.job)].id, it.kind) for it in repetition.repeated]
        locations = {self._new[job.id]: job_with_index(job) for job in jobs}
        wanted = [*repeated, *repetition.others]
        try:
            code = submit_to(executor, name, locations, wanted, is_held=False, as_json=self._as_json)
        except (jpsi.JpsiError, SelectionError) as e:
            if is_alone:
                raise
            prefix = f"{executor.name}: " if len(self._executors) > 1 else ""
            why = "; ".join(e.problems) if isinstance(e, jpsi.InvalidJobException) else str(e)
            messages.error(f"{prefix}{_not_repeated(jobs)}: {translate_to_options(why)}")
            is_mistake = isinstance(e, jpsi.InvalidJobException | SelectionError)
            code = exit_codes.USAGE if is_mistake else exit_codes.JPSI
        if code:
            found = {it.id for it in job_store.jobs() if it.native_id is not None or it.deferral is not None}
            self._failed |= {job.id: job for job in jobs if self._new[job.id].id not in found}
        return code


def _report_left_out_behind(jobs: Sequence[StoredJob], awaited: StoredJob) -> None:
    """Report jobs that are not repeated, as what they would wait for was not submitted."""
    why = f"the repetition of {job_with_index(awaited)} was not submitted, and comes first"
    messages.error(f"{_not_repeated(jobs)}: {why}")


def _not_repeated(jobs: Sequence[StoredJob]) -> str:
    return f"{_are(jobs)} not repeated"


def _are(jobs: Sequence[StoredJob]) -> str:
    first, count = job_with_index(jobs[0]), len(jobs)
    return f"{first} is" if count == 1 else f"{first} and {count - 1} more are"


def _report_predecessors(jobs: Sequence[StoredJob], notes: Mapping[str, str]) -> None:
    """Report jobs that are repeated though the user may mean the newest of that name alone."""
    if found := [job for job in jobs if job.id in notes]:
        messages.error(f"{_are(found)} repeated, too; {notes[found[0].id]}")


def _report_owners(jobs: Sequence[StoredJob]) -> None:
    """Warn of jobs of workflows and requests, which take no notice of the new ones."""
    owners = [find_owner(job) for job in jobs]
    for owner in Owner:
        found = [job for job, of in zip(jobs, owners, strict=True) if of is owner]
        if found:
            is_one = len(found) == 1
            whose = f"{_are(found)} {'that' if is_one else 'those'} of a {owner.noun}"
            what = f"which takes no notice of the new {'one' if is_one else 'ones'}"
            messages.warning(f"{whose}, {what}; to run it again there: {owner.value}")


def _select_last(selected: Sequence[StoredJob]) -> Sequence[StoredJob]:
    """Return the jobs without those that others of them repeat, so that a name means one new job for each."""
    superseded = {job.repeats for job in selected if not was_not_submitted(job)}
    found = [job for job in selected if job.id not in superseded]
    left_out = len(selected) - len(found)
    if left_out:
        which = "1 earlier run is" if left_out == 1 else f"{left_out} earlier runs are"
        messages.error(f"{which} left out; only the last run of each job is repeated")
    return found


def _select_failed(selected: Iterable[StoredJob]) -> list[StoredJob]:
    """Return those jobs that have failed or can never run and have no repetition; report what is left out."""
    stored = _settle_repetitions()
    repetitions = find_repetitions(list(stored.values()))
    jobs = [stored.get(job.id, job) for job in selected]
    _report_left_out(jobs, stored.values())
    if running := [job for job in jobs if _is_under_way(job)]:
        messages.error(_describe_running(running))
    failed = [job for job in jobs if has_failed(job) or job.was_given_up]
    found = {job.id: job for job in failed if job.id not in repetitions}
    if not failed:
        so_far = " so far" if running else ""
        messages.error(f"nothing to submit: none has failed or was cancelled{so_far}")
    elif not found:
        last = (repetitions[job.id] for job in failed)
        ids = list(dict.fromkeys(job.array_id or job.id for job in last))
        more = f" and {len(ids) - _MAX_NAMED} more" if len(ids) > _MAX_NAMED else ""
        listed = ", ".join(ids[:_MAX_NAMED])
        messages.error(f"nothing to submit: what failed was submitted again before, as {listed}{more}")
    # of a job and its repetition that was never submitted, one is enough
    return [job for job in found.values() if job.repeats not in found]


def _is_under_way(job: StoredJob) -> bool:
    """Return True if a job has not ended, and runs by itself, or once it is submitted or released."""
    return not (job.status.final or was_not_submitted(job) or _lacks_process(job))


def _lacks_process(job: StoredJob) -> bool:
    """Return True if a job is yet to be submitted, and no process does that."""
    deferral = job.deferral
    return deferral is not None and not (deferral.is_attended or deferral.is_held(job.id))


def _describe_running(jobs: Sequence[StoredJob]) -> str:
    """Return that jobs have not ended, with the command that waits for them."""
    is_one = len(jobs) == 1
    whose = f"{job_with_index(jobs[0])} has" if is_one else f"{len(jobs)} jobs have"
    ids = [jobs[0].id] if is_one else list(dict.fromkeys(job.array_id or job.id for job in jobs))
    more = f", and {len(ids) - _MAX_NAMED} more" if len(ids) > _MAX_NAMED else ""
    awaited = " ".join(ids[:_MAX_NAMED])
    return f"{whose} not ended, and {'is' if is_one else 'are'} left out: jpsi wait {awaited}{more}"


def _settle_repetitions() -> dict[str, StoredJob]:
    """Return all jobs on disk by id; find out first whether those that repeat others were submitted."""
    stored = job_store.jobs()
    unclear = [
        job
        for job in stored
        if job.repeats is not None and job.status.state is jpsi.JobState.NEW and not job.is_unsent
    ]
    if unclear:
        # their process was killed while it submitted them
        recall_jobs(unclear)
        stored = job_store.jobs()
    return {job.id: job for job in stored}


def _report_left_out(jobs: Sequence[StoredJob], stored: Iterable[StoredJob]) -> None:
    """Report jobs that did not fail, and may never run all the same; `stored` are all jobs."""
    if waiting := [job for job in jobs if _lacks_process(job)]:
        whose = f"{job_with_index(waiting[0])} is" if len(waiting) == 1 else f"{len(waiting)} jobs are"
        messages.error(f"{whose} yet to be submitted, but no process does that: jpsi wait {waiting[0].id}")
    unsent = [job for job in jobs if was_not_submitted(job) and not job.was_given_up]
    if unsent:
        is_one = len(unsent) == 1
        whose, them = (
            (f"{job_with_index(unsent[0])} was", "it") if is_one else (f"{len(unsent)} jobs were", "them")
        )
        how = _HOW_TO_SUBMIT.format(them, them, job_words(unsent, array_sizes(stored)))
        messages.error(f"{whose} never submitted, and left out: {how}")


def _problem(job: StoredJob) -> str:
    """Return why a job cannot be repeated; empty if it can."""
    if was_not_submitted(job) and not job.was_given_up:
        return f"{job_with_index(job)} was never submitted: {_HOW_TO_SUBMIT.format('it', 'it', job.id)}"
    if not job.status.final and not job.was_given_up:
        return f"{job_with_index(job)} has not ended: {job.remark or f'it is {job.status.state}'}"
    if job.damage and job.spec.executable is None:
        return f"{job_with_index(job)} cannot be repeated: {job.remark}"
    if find_owner(job) is Owner.REQUEST and not job.origin.is_remote and _is_missing(job.directory):
        why = f"is that of a request, and there is no directory {job.directory} any more"
        return f"{job_with_index(job)} {why}: {Owner.REQUEST.value}"
    return ""


def _is_missing(path: Path) -> bool:
    """Return True if nothing has a path; a path that the user may not follow may lead to something."""
    try:
        path.stat()
    except OSError as e:
        return e.errno in {errno.ENOENT, errno.ENOTDIR}
    return False


def _spec(job: StoredJob) -> jpsi.JobSpec:
    # a spec without a directory means the current one, which was another when the job was submitted
    return attrs.evolve(reopen_queue(job.spec), directory=job.spec.directory or job.directory)

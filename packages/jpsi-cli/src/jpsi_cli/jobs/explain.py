"""Implements `jpsi explain`: collects the facts about jobs, and shows why they wait or how they ended.

It reads the stored jobs, queries the batch systems and reads the last lines of standard error. `diagnosis`
derives a sentence and advice from these facts; `jpsi top` shows them as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import attrs

import jpsi
from jpsi.plugin import Observation, line
from jpsi_engine import QUEUE_REASON, excess_over_queues, job_store, round_up
from jpsi_engine.job_store import StoredJob

from .. import messages
from ..interpreters import find_missing_interpreter, has_windows_end
from ..stored_jobs import (
    array_sizes,
    best_status,
    describe_dependencies,
    describe_repetitions,
    exact_words,
    find_owner,
    find_repetitions,
    has_failed,
    index_list,
    job_title,
    job_words,
    read_usage,
    recall_jobs,
    select_job,
    select_jobs,
    shown_ids,
    was_not_opened,
)
from .alike import differ, group_alike
from .diagnosis import Diagnosis, JobFacts, diagnose, may_not_be_found
from .usage import describe_memory

# How much of standard error is read, and how many lines of it are shown.
_BYTES = 8192
_LINES = 10
# Of how many jobs the last lines are compared.
_MOST_READ = 1000
# How many jobs the command names that shows what others wrote.
_MAX_NAMED = 4
# How many jobs that are like the explained one are named.
_MAX_ALIKE = 3


def explain(*, jobs: Sequence[str], as_json: bool) -> int:
    """Explain the states of jobs, of those that are alike only one, and return the exit code."""
    stored = job_store.jobs()
    ids = shown_ids(stored)
    last_lines = _LastLines()
    groups = group_alike(select_jobs(jobs, stored), last_lines.of)
    failed = [alike for alike in groups if has_failed(alike[0])]
    repetitions = find_repetitions(stored) if failed else {}
    sizes = array_sizes(stored)
    # a command that repeats what has failed leaves out what has completed
    repeatable = array_sizes(it for it in stored if it.status.state is not jpsi.JobState.COMPLETED)
    for group in groups:
        alike = _last_first(group, repetitions)
        more = describe_others(alike, ids)
        if not as_json and (len(groups) > 1 or more or alike[0].array_index is not None):
            messages.show(messages.printable(f"==> {job_title(alike[0], ids[alike[0].id])}{more} <==\n"))
        facts = _with_repetitions(_facts_about(alike, sizes, repeatable), alike, repetitions, ids)
        others = _name_others(alike, ids) if differ(alike, last_lines.of) else ""
        _explain(alike[0], attrs.evolve(facts, others=others), as_json=as_json)
    return 0


def describe_others(alike: Sequence[StoredJob], ids: Mapping[str, str]) -> str:
    """Return how many jobs are like the first, and which; empty if none are.

    Args:
        alike: the jobs.
        ids: the ids of jobs as shown.
    """
    others = alike[1:]
    if not others:
        return ""
    more = f" and {len(others) - _MAX_ALIKE} more" if len(others) > _MAX_ALIKE else ""
    names = f": {', '.join(ids[it.id] for it in others[:_MAX_ALIKE])}{more}"
    return f" and {len(others)} more like it{index_list(others, ', ') or names}"


def _last_first(alike: Sequence[StoredJob], repetitions: Mapping[str, StoredJob]) -> Sequence[StoredJob]:
    """Return jobs with those behind the others that another of them repeats."""
    repeated = _repeated_among(alike, repetitions)
    return sorted(alike, key=lambda it: it.id in repeated)


def _repeated_among(alike: Sequence[StoredJob], repetitions: Mapping[str, StoredJob]) -> Collection[str]:
    """Return the ids of those of the jobs that another of them repeats."""
    ids = {it.id for it in alike}
    return {it for it in ids & repetitions.keys() if repetitions[it].id in ids}


def _facts_about(
    alike: Sequence[StoredJob], sizes: Mapping[str, int], repeatable: Mapping[str, int]
) -> JobFacts:
    """Return the facts about the first of jobs that are alike, with words for commands that mean them all.

    Args:
        alike: the jobs.
        sizes: how many jobs each array has.
        repeatable: how many of them have not completed.
    """
    found = alike[0]
    if len(alike) == 1 or found.array_id is None:
        return _facts(found, found.id)
    facts = _facts(found, found.array_id)
    if found.status.final:
        return attrs.evolve(facts, again=f"--failed {job_words(alike, repeatable)}")
    if found.status.state is jpsi.JobState.NEW:
        # others of the array may run, or have completed
        return attrs.evolve(facts, job=job_words(alike, sizes))
    return facts


def _explain(found: StoredJob, facts: JobFacts, *, as_json: bool) -> None:
    diagnosis = diagnose(facts)
    if as_json:
        content = {
            "id": found.id,
            "state": facts.status.state.value,
            "sentence": diagnosis.sentence,
            "advice": list(diagnosis.advice),
            "errors": list(facts.errors),
        }
        messages.show_json(content, indent=None)
    else:
        messages.show(_render(found, facts, diagnosis))


def _name_others(alike: Sequence[StoredJob], ids: Mapping[str, str]) -> str:
    """Return the words by which `jpsi logs` takes the jobs behind the first, or a few of them."""
    return line(*(ids.get(it, it) for it in exact_words(alike[1:])[:_MAX_NAMED]))


def render_explanation(job: StoredJob) -> str:
    """Return why a job is in its state, for people."""
    facts = _facts(job, job.id)
    if has_failed(job):
        stored = job_store.jobs()
        facts = _with_repetitions(facts, [job], find_repetitions(stored), shown_ids(stored))
    return _render(job, facts, diagnose(facts))


def _with_repetitions(
    facts: JobFacts,
    alike: Sequence[StoredJob],
    repetitions: Mapping[str, StoredJob],
    ids: Mapping[str, str],
) -> JobFacts:
    """Return the facts about jobs that are alike, with what has become of those that repeat them."""
    if not has_failed(alike[0]):
        return facts
    among = _repeated_among(alike, repetitions)
    last = [it for it in alike if it.id not in among]
    repeated = describe_repetitions(last, repetitions, ids)
    is_repeated = bool(repeated) and all(it.id in repetitions for it in last)
    return attrs.evolve(facts, repeated=repeated, is_repeated=is_repeated)


def _facts(job: StoredJob, shown_id: str) -> JobFacts:
    """Return the facts about a job; query its batch system if the job has not ended.

    While it has not, the advice names `shown_id`, such as the id of its array.
    """
    status, info, is_missing, executor = job.status, None, False, None
    if not status.final:
        job, status, info, is_missing, executor = _query(job)
    now = datetime.now(UTC)
    since = job.submitted if status.state is jpsi.JobState.QUEUED else job.started
    estimate = None if info is None else info.start_estimate
    errors = _last_lines(job) if status.state is jpsi.JobState.FAILED else ()
    return JobFacts(
        status=status,
        spec=job.spec,
        owner=find_owner(job),
        job=job.id if status.final else shown_id,
        directory=job.directory,
        remark=None if status.final else job.remark_about(shown_id),
        is_unsent=job.is_unsent,
        is_deferred=job.deferral is not None,
        missing_in=job.origin.name if is_missing else "",
        reruns=job.reruns,
        damage=(job.remark or "") if job.damage else "",
        was_cancelled_by_jpsi=job.was_cancelled_by_jpsi,
        elapsed=None if since is None else (status.time if status.final else now) - since,
        position=None if info is None else info.position,
        start_estimate=None if estimate is None else f"{estimate.astimezone():%Y-%m-%d %H:%M}",
        errors=errors,
        missing_interpreter=_find_missing_interpreter(job, status, errors),
        excess=() if executor is None or status.state is not jpsi.JobState.QUEUED else _excess(job, executor),
        queue=_describe_queue(job.spec.attributes),
        dependencies=describe_dependencies(job),
        memory=describe_memory(read_usage(job).memory),
        is_given_memory=job.origin.executor != "local",
        time_limit=_find_time_limit(job) if status.reason is jpsi.Reason.TIMEOUT else None,
        earlier_ends=[_end(number, status) for number, status in enumerate(job.earlier_ends, 1)],
    )


def _end(attempt: int, status: jpsi.JobStatus) -> str:
    """Return how an attempt of a job ended that was submitted again."""
    message = status.message or f"it ended with exit code {status.exit_code}"
    return f"attempt {attempt} ended at {status.time.astimezone():%Y-%m-%d %H:%M:%S}: {message}"


def _find_time_limit(job: StoredJob) -> timedelta | None:
    """Return the time limit that the batch system kept: the requested one, rounded up to its unit."""
    duration = job.spec.attributes.duration
    return duration and round_up(duration, job.origin.walltime_unit)


def _describe_queue(attributes: jpsi.JobAttributes) -> str:
    reason = attributes.get_custom_attribute(QUEUE_REASON)
    return f"jpsi chose the queue {attributes.queue_name}: {reason}" if reason else ""


def _excess(job: StoredJob, executor: jpsi.JobExecutor) -> Sequence[str]:
    """Return for which requests no queue of the batch system can ever start a job."""
    try:
        found = excess_over_queues(job.spec, executor.system.queues())
    except jpsi.JpsiError:
        return ()
    return [f"--{it.request}: {it.sentence}" for it in found]


def _query(
    job: StoredJob,
) -> tuple[StoredJob, jpsi.JobStatus, Observation | None, bool, jpsi.JobExecutor | None]:
    """Return a job and its status, as its batch system knows them now, and True if that does not show it.

    The last is the executor that follows the job, if one does.
    """
    status = job.status
    if job.deferral is not None or job.awaits_retry:
        return job, status, None, False, None
    recalled = recall_jobs([job])
    if status.state is jpsi.JobState.NEW:
        # recalling the job may have found out what became of it
        job = select_job(job.id, job_store.jobs(), "")
    if not job.is_unsent:
        recalled.report_failures()
    followed = recalled.jobs.get(job.id)
    if followed is None or followed.executor is None:
        return job, status, None, False, None
    info, is_missing = None, False
    try:
        info = followed.executor.info(followed)
        recalled.await_exited_processes([job])
        (job,) = job_store.reread([job]) or [job]
        if job.awaits_retry:
            return job, job.status, None, False, None
        is_missing = info is None and not followed.status.final
    except jpsi.JpsiError as e:
        if not followed.status.final:
            messages.warning(str(e))
    return job, best_status(job, followed.status), info, is_missing, followed.executor


def _last_lines(job: StoredJob) -> Sequence[str]:
    if was_not_opened(job, "stderr"):
        return ()
    try:
        part = job.output("stderr").read(-_BYTES, _BYTES)
    except jpsi.JpsiError:
        return ()
    text = "" if part is None else part.data.decode(errors="replace")
    return [line for line in text.splitlines() if line.strip()][-_LINES:]


class _LastLines:
    """Reads the last lines of jobs' standard errors, each once, and not those of very many."""

    def __init__(self) -> None:
        self._found: dict[str, str | None] = {}

    def of(self, job: StoredJob) -> str | None:
        """Return the last line; None if it is not read, or cannot be read."""
        if job.id not in self._found and len(self._found) < _MOST_READ:
            self._found[job.id] = _last_line(job)
        return self._found.get(job.id)


def _last_line(job: StoredJob) -> str | None:
    if not _has_local_files(job) or not job.streams.stderr.is_file():
        return None
    return next(iter(_last_lines(job)[-1:]), "")


def _find_missing_interpreter(job: StoredJob, status: jpsi.JobStatus, errors: Sequence[str]) -> str | None:
    """Return the interpreter that the program of a job names, if that job did not find it where it ran."""
    program = job.spec.executable or ""
    if "/" not in program or "$" in program or job.spec.container is not None:
        return None
    if not may_not_be_found(status, program, errors) or not _has_local_files(job):
        return None
    interpreter = find_missing_interpreter(job.directory / program, job.directory)
    # other machines may have other interpreters, but none whose name ends as lines of Windows do
    is_certain = _ran_here(job) or (interpreter is not None and has_windows_end(interpreter))
    return interpreter if is_certain else None


def _ran_here(job: StoredJob) -> bool:
    """Return True if a job is a process of this machine."""
    return job.origin.machine is not None and not job.origin.is_remote


def _has_local_files(job: StoredJob) -> bool:
    try:
        return job.output("stderr").is_local
    except jpsi.JpsiError:
        return False


def _render(job: StoredJob, facts: JobFacts, diagnosis: Diagnosis) -> str:
    lines = [f"{facts.status.state}: {diagnosis.sentence}"]
    lines += [f"  - {it}" for it in diagnosis.advice]
    if facts.errors:
        lines += [f"the last lines of {job.streams.stderr}:", *(f"  | {line}" for line in facts.errors)]
    return "".join(f"{messages.printable(line)}\n" for line in lines)

"""Finds the jobs that `--after` names, and says who waits for them: the batch system, or jpsi itself."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

import jpsi

from .. import messages
from ..error_boundary import SelectionError
from .selection import describe_predecessors, exact_words, match_jobs, no_match

# Most jobs have no dependencies, and are submitted without a look at others.
if TYPE_CHECKING:
    from jpsi_engine.job_store import StoredJob

# Users of Slurm and PBS type `afterok`.
_KINDS = {word: kind for kind in jpsi.DependencyKind for word in (kind.value, f"after{kind.value}")}
# The separators of words, which indices in brackets may contain as well.
_OUTER_COMMA, _OUTER_COLON = (re.compile(rf"{it}(?![^\[]*\])") for it in ",:")
_SUBJECT = "the job"
_OK = jpsi.DependencyKind.OK
# Directives have limits: jpsi, not the batch system, waits for more jobs than these.
_MAX_NATIVE = 50
# How many jobs that another waits for are named.
_MAX_NAMED = 3


@attrs.frozen
class Dependencies:
    """The jobs that a new job waits for and that have not ended."""

    #: Those for which its batch system waits, by native id.
    native: Sequence[jpsi.Dependency] = ()
    #: Those for which jpsi has to wait, by the ids that jpsi gave them.
    foreign: Sequence[jpsi.Dependency] = ()

    #: All of them, as `read_dependencies` returns them: a later process decides again who waits.
    all: Sequence[jpsi.Dependency] = ()

    #: Words for the others, which have ended as required: the attribute `job_store.MET`.
    met: Sequence[str] = ()


def read_dependencies(texts: Iterable[str]) -> list[jpsi.Dependency]:
    """Return the dependencies that were typed, by the ids that jpsi gave the jobs, or else by native ids.

    A text is a word for a job or several, such as `4711`; words are separated by commas, or by colons after a
    kind, as in `ok:4711:4712,any:sim`.

    Raises:
        SelectionError: a text is not of this form, or a word may mean several jobs.
    """
    typed = list(texts)
    if not typed:
        return []
    from jpsi_engine import job_store  # noqa: PLC0415

    jobs = job_store.jobs()
    return [
        jpsi.Dependency(it, kind)
        for text in typed
        for kind, word in _split(text, jobs)
        for it in _ids(word, kind, jobs)
    ]


def _split(text: str, jobs: Sequence[StoredJob]) -> Iterator[tuple[jpsi.DependencyKind, str]]:
    kind, words = _split_kind(text)
    if match_jobs(words, jobs):
        # names may contain the separators
        yield kind, words
        return
    if len(lines := words.splitlines()) > 1:
        # the quoted output of `jpsi submit`
        for it in lines:
            yield from _split(f"{kind.value}:{it}", jobs)
        return
    for part in _OUTER_COMMA.split(text):
        kind, words = _split_kind(part)
        head, colon, _ = words.partition(":")
        if colon and head.isalpha() and not match_jobs(head, jobs):
            msg = f"--after: {head!r} is none of ok, any and notok, nor is it a job"
            raise SelectionError(msg)
        for word in _OUTER_COLON.split(words):
            if not word:
                msg = f"--after: {text!r} is not of the form [KIND:]JOB with KIND one of ok, any, notok"
                raise SelectionError(msg)
            yield kind, word


def _split_kind(text: str) -> tuple[jpsi.DependencyKind, str]:
    head, colon, rest = text.partition(":")
    return (_KINDS[head], rest) if colon and head in _KINDS else (_OK, text)


def _ids(word: str, kind: jpsi.DependencyKind, jobs: Sequence[StoredJob]) -> list[str]:
    found = match_jobs(word, jobs)
    earlier = describe_predecessors([word], found)
    if any(job.id in earlier and kind.is_met(job.status.state) is False for job in found):
        newest = max(found, key=lambda it: it.submitted)
        count = len({job.array_id or job.id for job in found})
        messages.error(
            f"--after: {word} stands for {count} jobs; the newest alone is {newest.array_id or newest.id}"
        )
        # what follows is an error about one of them
        return [job.id for job in found]
    left = sum(not job.status.final for job in found)
    # an array is one thing
    if left and len({job.array_id or job.id for job in found}) > 1:
        some = "the one of them that has" if left == 1 else f"the {left} of them that have"
        awaited = "all of them" if left == len(found) else f"{some} not ended"
        messages.error(f"--after: {word} stands for {len(found)} jobs; the new job waits for {awaited}")
    # a word that means no job of jpsi's may be a native id
    return [job.id for job in found] or [word]


def sort_dependencies(
    wanted: Iterable[jpsi.Dependency], executor: jpsi.JobExecutor, name: str | None
) -> Dependencies:
    """Return the dependencies that are left, by who waits for them.

    Args:
        wanted: as `read_dependencies` returns them.
        executor: the executor of the new job.
        name: the name that the user gave it.

    Raises:
        InvalidJobException: a job ended as it must not; it names all.
        SelectionError: there is no such job.
    """
    wanted = list(wanted)
    if not wanted:
        return Dependencies()
    from jpsi_engine import job_store  # noqa: PLC0415

    jobs = {job.id: job for job in job_store.jobs()}
    find_native_id = _NativeDependencies(executor, _names(executor.name), configured_target(name))
    foreign, problems = list[jpsi.Dependency](), list[str]()
    met: list[tuple[jpsi.DependencyKind, StoredJob]] = []
    # by the dependency as wanted
    native: dict[jpsi.Dependency, jpsi.Dependency] = {}
    for dependency in wanted:
        word, kind = str(dependency.job), dependency.kind
        job = jobs.get(word)
        if job is None:
            _check_native_id(word, kind, executor)
            native[dependency] = dependency
            continue
        is_met = kind.is_met(job.status.state)
        if is_met is False:
            problems.append(describe_unmet(kind, job, job.status))
        elif is_met:
            met.append((kind, job))
        elif (native_id := find_native_id(job, kind)) is not None:
            native[dependency] = jpsi.Dependency(native_id, kind)
        else:
            foreign.append(dependency)
    if problems:
        raise jpsi.InvalidJobException.of(_SUBJECT, list(dict.fromkeys(problems)))
    everything = [*native, *foreign]
    if len(native) > _MAX_NATIVE:
        foreign += [it for it in native if str(it.job) in jobs]
        native = {it: native[it] for it in native if str(it.job) not in jobs}
    return Dependencies([*native.values()], foreign, everything, dependency_words(met))


def dependency_words(awaited: Iterable[tuple[jpsi.DependencyKind, StoredJob]]) -> list[str]:
    """Return words for dependencies, as `--after` takes them: one for all of an array, which may be many."""
    by_kind: dict[jpsi.DependencyKind, dict[str, StoredJob]] = {}
    for kind, job in awaited:
        by_kind.setdefault(kind, {})[job.id] = job
    return [f"{kind.value}:{word}" for kind, jobs in by_kind.items() for word in exact_words(jobs.values())]


@contextlib.contextmanager
def naming_ended(
    wanted: Sequence[jpsi.Dependency], executor: jpsi.JobExecutor, name: str | None
) -> Iterator[None]:
    """Record how jobs ended if that makes the submission within the block fail; the arguments are as above.

    Raises:
        InvalidJobException: a job ended as it must not; it names all.
    """
    try:
        yield
    except (jpsi.InvalidJobException, jpsi.BulkException) as e:
        if wanted and not (isinstance(e, jpsi.BulkException) and e.done):
            from jpsi_engine import job_store  # noqa: PLC0415

            from .recall import settle_ends  # noqa: PLC0415

            names = {str(it.job) for it in wanted}
            settle_ends([job for job in job_store.jobs() if job.id in names])
            sort_dependencies(wanted, executor, name)
        raise


@attrs.define
class _NativeDependencies:
    """Finds the native ids of jobs for which the batch system of an executor can have others wait."""

    _executor: jpsi.JobExecutor
    #: All names of the executor, and the target.
    _names: frozenset[str]
    _target: str
    #: True for the kinds that it accepts for elements of arrays.
    _accepted: dict[jpsi.DependencyKind, bool] = attrs.field(factory=dict, init=False)

    def __call__(self, job: StoredJob, kind: jpsi.DependencyKind) -> str | None:
        """Return the native id of a job if it is one of its own, and can be waited for in this way."""
        system = self._executor.system
        is_own = job.origin.executor in self._names and job.origin.target == self._target
        if job.native_id is None or not is_own or kind not in system.capabilities.dependencies:
            return None
        try:
            # if the job itself reported it, it may be spelled otherwise
            native_id = system.hooks.canonical_id(native_id=job.native_id, site=system.site())
        except ValueError:
            return None
        if job.array is not None and kind not in self._accepted:
            # PBS, for one, accepts no elements; one of them stands for all
            self._accepted[kind] = self._accepts(jpsi.Dependency(native_id, kind))
        return native_id if job.array is None or self._accepted[kind] else None

    def _accepts(self, dependency: jpsi.Dependency) -> bool:
        spec = jpsi.JobSpec("true", attributes=jpsi.JobAttributes(after=[dependency]))
        try:
            self._executor.preview(jpsi.Job(spec))
        except jpsi.InvalidJobException:
            return False
        return True


def _names(name: str) -> frozenset[str]:
    """Return all names of an executor."""
    names = ({it.name, *it.aliases} for it in jpsi.plugins(load=False) if it.kind == "executor")
    return frozenset({name}).union(*(it for it in names if name in it))


def configured_target(name: str | None) -> str:
    """Return the target that a name of an executor means; empty if it means none."""
    settings = jpsi.configuration()
    wanted = (name or settings.default_executor or "").lower()
    return wanted if wanted in settings.targets else ""


def _check_native_id(word: str, kind: jpsi.DependencyKind, executor: jpsi.JobExecutor) -> None:
    """Raise if the batch system cannot wait for a job that jpsi has not submitted."""
    system = executor.system
    if word == "singleton":
        msg = "--after takes jobs; Slurm's singleton is --attribute slurm.dependency=singleton"
        raise SelectionError(msg)
    if not system.capabilities.dependencies:
        raise no_match(word)
    try:
        system.hooks.canonical_id(native_id=word, site=system.site())
    except ValueError as e:
        msg = f"{no_match(word)}; nor is it a job that others submitted: {e}"
        raise SelectionError(msg) from e
    if kind not in system.capabilities.dependencies:
        msg = f"{executor.name} cannot wait for {word} like that ({kind.value}), and jpsi did not submit it"
        raise SelectionError(msg)


def describe_unmet(kind: jpsi.DependencyKind, job: StoredJob, status: jpsi.JobStatus) -> str:
    """Return why a job can never start that waits for a job which ended in this way."""
    required = "complete" if kind is _OK else "fail"
    return f"the job {_describe_name(job)} was to {required} first, but it is {_describe_state(status)}"


def describe_dependencies(job: StoredJob) -> list[str]:
    """Return sentences about the jobs on disk that a job waits for, with their states."""
    if not job.native_dependencies:
        return []
    from jpsi_engine import job_store  # noqa: PLC0415  most commands name no dependencies

    return describe_awaited(_awaited(job, _by_native_id(job_store.jobs())))


def describe_vain_waits(waiting: Iterable[StoredJob], jobs: Iterable[StoredJob]) -> dict[str, str]:
    """Return a note for each job that waits in vain as far as is known, by its id.

    Args:
        waiting: the jobs.
        jobs: all jobs on disk.
    """
    blocked = [job for job in waiting if job.native_dependencies]
    known = _by_native_id(jobs) if blocked else {}
    notes = {}
    for job in blocked:
        unmet = [it for kind, it in _awaited(job, known) if kind.is_met(it.status.state) is False]
        if unmet:
            name, state = unmet[0].name or unmet[0].id[:8], _describe_state(unmet[0].status)
            notes[job.id] = f"it waits for {name}, which is {state}: jpsi ls --refresh"
    return notes


def _by_native_id(jobs: Iterable[StoredJob]) -> dict[tuple[object, str], list[StoredJob]]:
    """Return jobs by their executor and native id, which a batch system may give again."""
    found: dict[tuple[object, str], list[StoredJob]] = {}
    for job in sorted(jobs, key=lambda it: it.submitted):
        found.setdefault((job.origin, job.native_id or ""), []).append(job)
    return found


def _awaited(
    job: StoredJob, known: Mapping[tuple[object, str], Sequence[StoredJob]]
) -> list[tuple[jpsi.DependencyKind, StoredJob]]:
    """Return the jobs on disk that a job waits for: of those with one native id, the last before it."""
    found = []
    for it in job.native_dependencies:
        all_of_id = known.get((job.origin, str(it.job)), ())
        earlier = [other for other in all_of_id if other.submitted <= job.submitted]
        found += [(it.kind, other) for other in earlier[-1:]]
    return found


def describe_awaited(awaited: Iterable[tuple[jpsi.DependencyKind, StoredJob]]) -> list[str]:
    """Return sentences about jobs that another waits for: a few by name, and the number of the others.

    Those that keep it from starting for ever come first, then those that have not ended.
    """
    from ..output import summarize_states  # noqa: PLC0415  `jpsi run --after` needs no counts

    jobs = [
        job for _, job in sorted(awaited, key=lambda it: _URGENCY.index(it[0].is_met(it[1].status.state)))
    ]
    count = _MAX_NAMED if len(jobs) > _MAX_NAMED + 1 else len(jobs)
    sentences = [
        f"it depends on the job {_describe_name(it)}, which is {_describe_state(it.status)}"
        for it in jobs[:count]
    ]
    states = summarize_states(Counter(it.status.state for it in jobs[count:]))
    more = [f"it depends on {len(jobs) - count} more jobs: {states}"] if states else []
    return sentences + more


# The order of the jobs that another waits for, by whether the dependency is met.
_URGENCY = (False, None, True)


def _describe_name(job: StoredJob) -> str:
    index = "" if job.array_index is None else f"index {job.array_index}"
    details = ", ".join(filter(None, [job.name, index]))
    return f"{job.id} ({details})" if details else job.id


def _describe_state(status: jpsi.JobStatus) -> str:
    code = "" if status.exit_code is None else f" with exit code {status.exit_code}"
    return f"{status.state}{code}"

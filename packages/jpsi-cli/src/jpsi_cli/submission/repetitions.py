"""Decides for which jobs the repetitions of jobs wait, and in which order they are submitted."""

from __future__ import annotations

import graphlib
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import attrs

import jpsi
from jpsi_engine.job_store import Origin, StoredJob

from ..error_boundary import SelectionError
from ..stored_jobs import job_with_index, native_words, split_indices

_T = TypeVar("_T", bound=Hashable)


@attrs.frozen
class Repetition:
    """Jobs of one executor that are repeated together, since their repetitions wait for the same jobs."""

    jobs: Sequence[StoredJob]
    #: The jobs of the same command for whose repetitions theirs wait, by the ids of the old ones.
    repeated: Sequence[jpsi.Dependency] = ()
    #: Further jobs for which they wait, or that have ended as required, by their ids.
    others: Sequence[jpsi.Dependency] = ()
    #: Jobs that have ended otherwise and are not repeated, so that theirs could never start.
    unmet: Sequence[Unmet] = ()
    #: The ids of jobs that are not on disk, and for which some may still have waited.
    unknown: Sequence[str] = ()


@attrs.frozen
class Unmet:
    """A job that has not ended as another one requires, and is not repeated."""

    kind: jpsi.DependencyKind
    job: StoredJob


def plan_repetitions(selected: Sequence[StoredJob], stored: Sequence[StoredJob]) -> list[Repetition]:
    """Return repetitions of jobs in an order in which each comes behind those that it waits for.

    A repetition waits for the repetition of what its job waited for, if that is repeated as well; or else for
    the last repetition of that, unless it or one before has ended as required.

    Args:
        selected: the jobs that are repeated.
        stored: all jobs on disk, the oldest first.

    Raises:
        SelectionError: jobs would wait for each other.
        SubmitException: what a job waited for cannot be read.
    """
    groups: dict[tuple[Origin, Sequence[jpsi.Dependency]], list[StoredJob]] = {}
    for job in selected:
        groups.setdefault((job.origin, job.read_dependencies()), []).append(job)
    families = _Families.of(selected, stored)
    found = [families.resolve(awaited, jobs) for (_, awaited), jobs in groups.items()]
    places = {job.id: place for place, it in enumerate(found) for job in it.jobs}
    predecessors = [{places[str(it.job)] for it in repetition.repeated} for repetition in found]
    try:
        return [found[place] for place in _in_order(predecessors)]
    except graphlib.CycleError as e:
        first, second, *_ = (job_with_index(found[place].jobs[0]) for place in e.args[1])
        msg = f"the repetitions of {first} and {second} would wait for each other; repeat one after the other"
        raise SelectionError(msg) from e


def _in_order(predecessors: Sequence[Iterable[int]]) -> Iterator[int]:
    """Yield the places of a sequence in an order in which each comes behind its predecessors."""
    sorter = graphlib.TopologicalSorter(dict(enumerate(predecessors)))
    sorter.prepare()
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        yield from ready
        sorter.done(*ready)


@attrs.frozen
class _Families:
    """All jobs on disk, with those that repeat each other as a family."""

    _selected: Collection[str]
    #: The elements of arrays, by the ids that jpsi gave these.
    _arrays: Mapping[str, Sequence[StoredJob]]
    #: The jobs that have had a native id of an executor, or are elements of the array that has it.
    _native: Mapping[tuple[Origin, str], Sequence[StoredJob]]
    #: The first job of its family, by the id of each job.
    _roots: Mapping[str, str]
    #: The families by the ids of their first jobs, the oldest member first.
    _members: Mapping[str, Sequence[StoredJob]]

    @classmethod
    def of(cls, selected: Iterable[StoredJob], stored: Sequence[StoredJob]) -> _Families:
        """Return the families of all jobs on disk, of which some are repeated."""
        repeats = {job.id: job.repeats for job in stored if job.repeats is not None}
        roots = {job.id: _root(job.id, repeats) for job in stored}
        arrays = defaultdict[str, list[StoredJob]](list)
        native = defaultdict[tuple[Origin, str], list[StoredJob]](list)
        members = defaultdict[str, list[StoredJob]](list)
        for job in stored:
            members[roots[job.id]].append(job)
            arrays[job.array_id or job.id].append(job)
            for word in native_words(job):
                native[job.origin, word].append(job)
        return cls(frozenset(it.id for it in selected), arrays, native, roots, members)

    def resolve(self, awaited: Sequence[jpsi.Dependency], jobs: Sequence[StoredJob]) -> Repetition:
        """Return the repetition of jobs that waited for the same ones."""
        own = {self._roots.get(job.id) for job in jobs}
        repeated, others, unmet, unknown = list[jpsi.Dependency](), list[jpsi.Dependency](), [], []
        for dependency in awaited:
            kind, targets = dependency.kind, self._find(str(dependency.job), jobs[0])
            if not targets and any(job.started is None for job in jobs):
                unknown.append(str(dependency.job))
            for target in targets:
                # a job may wait for the one that it repeats
                root = self._roots[target.id]
                family = [target] if root in own else self._members[root]
                if (again := self._repeated_of(target, family)) is not None:
                    repeated.append(jpsi.Dependency(again.id, kind))
                elif (other := _awaited(kind, family[family.index(target) :])) is not None:
                    others.append(jpsi.Dependency(other.id, kind))
                else:
                    unmet.append(Unmet(kind, target))
        return Repetition(jobs, _once(repeated), _once(others), _once(unmet), _once(unknown))

    def _repeated_of(self, target: StoredJob, family: Sequence[StoredJob]) -> StoredJob | None:
        """Return the job of a family that is repeated, best a certain one; None if none of them is."""
        found = [it for it in family if it.id in self._selected]
        return target if target in found else next(reversed(found), None)

    def _find(self, word: str, job: StoredJob) -> Sequence[StoredJob]:
        """Return the jobs on disk that a word of a job's dependencies means; none if they are not there."""
        array, indices = split_indices(word)
        if indices and array in self._arrays:
            return [it for it in self._arrays[array] if any(it.array_index in some for some in indices)]
        if word in self._roots:
            return [it for it in self._members[self._roots[word]] if it.id == word]
        # a batch system may have given a native id again: the job waited for the last that had it
        found = [it for it in self._native.get((job.origin, word), ()) if it.submitted <= job.submitted]
        newest = max(found, key=lambda it: it.submitted, default=None)
        return [it for it in found if newest and (it.array_id or it.id) == (newest.array_id or newest.id)]


def _root(job_id: str, repeats: Mapping[str, str]) -> str:
    """Return the id of the first of the jobs that repeat each other."""
    while job_id in repeats:
        job_id = repeats[job_id]
    return job_id


def _awaited(kind: jpsi.DependencyKind, family: Iterable[StoredJob]) -> StoredJob | None:
    """Return the job that satisfies a dependency, or may do so: it, or a repetition; None if none can."""
    submitted = [it for it in family if not it.is_unsent or it.deferral is not None]
    met = next((it for it in submitted if kind.is_met(it.status.state)), None)
    return met or next((it for it in reversed(submitted) if not it.status.final), None)


def _once(found: Iterable[_T]) -> list[_T]:
    return list(dict.fromkeys(found))

"""Finds the jobs that a JOB argument means: a jpsi id or its beginning, a native id, or a name.

The commands about jobs on disk use it. It never guesses: a word that fits several jobs is an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ..error_boundary import SelectionError

if TYPE_CHECKING:
    from jpsi_engine.job_store import StoredJob

# How many jobs a message about an ambiguous word names.
_MAX_NAMED = 10
# The least number of characters that are shown of an id.
_MIN_LENGTH = 8


def select_jobs(words: Iterable[str], jobs: Sequence[StoredJob]) -> list[StoredJob]:
    """Return the jobs that the words mean, each once.

    Raises:
        SelectionError: a word means no job, or several.
    """
    found = {job.id: job for job in (_select_job(word, jobs) for word in words)}
    return list(found.values())


def _select_job(word: str, jobs: Sequence[StoredJob]) -> StoredJob:
    for matches in _matchers(word):
        found = [job for job in jobs if matches(job)]
        if len(found) == 1:
            return found[0]
        if found:
            raise SelectionError(_describe_ambiguity(word, found))
    msg = f"no job has the id, native id or name {word!r}; jpsi ls --all shows all"
    raise SelectionError(msg)


def _matchers(word: str) -> list[Callable[[StoredJob], bool]]:
    """Return the ways in which a word may mean a job; full ids and names take precedence over beginnings."""
    return [
        lambda job: job.id == word,
        lambda job: word in {job.native_id, job.name},
        lambda job: bool(word) and job.id.startswith(word),
    ]


def _describe_ambiguity(word: str, jobs: Sequence[StoredJob]) -> str:
    lines = [
        f"  {job.id}  {job.native_id or '-'}  {job.name or '-'}  {job.origin.name}  {job.status.state}"
        for job in jobs[-_MAX_NAMED:]
    ]
    more = [f"  and {len(jobs) - _MAX_NAMED} older ones"] if len(jobs) > _MAX_NAMED else []
    return "\n".join([f"{word!r} may be {len(jobs)} jobs; name one of them by its id:", *lines, *more])


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return the shortest unique beginning of each id, by the id.

    >>> short_ids(["aaaaaaaa11", "aaaaaaaa12", "b"])
    {'aaaaaaaa11': 'aaaaaaaa11', 'aaaaaaaa12': 'aaaaaaaa12', 'b': 'b'}
    """
    ordered = sorted(ids)
    common = [_common_length(one, other) for one, other in itertools.pairwise(ordered)]
    needed = [
        max(with_previous, with_next) + 1
        for with_previous, with_next in zip([0, *common], [*common, 0], strict=True)
    ]
    return {it: it[: max(_MIN_LENGTH, count)] for it, count in zip(ordered, needed, strict=False)}


def _common_length(one: str, other: str) -> int:
    """Return the length of the common beginning of two ids; 0 if their first characters differ.

    The first characters are those that `short_ids` keeps of every id.
    """
    if one[:_MIN_LENGTH] != other[:_MIN_LENGTH]:
        # this holds for nearly all ids, and the beginnings are shown in full anyway
        return 0
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))

"""Which job is meant by JOB: a jpsi id or its beginning, a native id, or a name. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ..error_boundary import SelectionError

if TYPE_CHECKING:
    from jpsi_engine.job_store import SpooledJob

# How many candidates a message names.
_NAMED = 10
# How many characters of an id are shown at least.
_SHORTEST = 8


def picked(words: Iterable[str], jobs: Sequence[SpooledJob]) -> list[SpooledJob]:
    """The jobs that the words mean, each once.

    Raises:
        SelectionError: a word means no job, or several.
    """
    found = {job.id: job for job in (_the_one(word, jobs) for word in words)}
    return list(found.values())


def _the_one(word: str, jobs: Sequence[SpooledJob]) -> SpooledJob:
    for is_meant in _ways(word):
        found = [job for job in jobs if is_meant(job)]
        if len(found) == 1:
            return found[0]
        if found:
            raise SelectionError(_ambiguous(word, found))
    msg = f"no job has the id, native id or name {word!r}; jpsi ls --all shows all"
    raise SelectionError(msg)


def _ways(word: str) -> list[Callable[[SpooledJob], bool]]:
    """How a word may mean a job: what is said in full is not taken for the beginning of something else."""
    return [
        lambda job: job.id == word,
        lambda job: word in {job.native_id, job.name},
        lambda job: bool(word) and job.id.startswith(word),
    ]


def _ambiguous(word: str, jobs: Sequence[SpooledJob]) -> str:
    lines = [
        f"  {job.id}  {job.native_id or '-'}  {job.name or '-'}  {job.origin.name}  {job.status.state}"
        for job in jobs[-_NAMED:]
    ]
    more = [f"  and {len(jobs) - _NAMED} older ones"] if len(jobs) > _NAMED else []
    return "\n".join([f"{word!r} may be {len(jobs)} jobs; name one of them by its id:", *lines, *more])


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """The shortest beginning of each id that no other one has.

    >>> short_ids(["aaaaaaaa11", "aaaaaaaa12", "b"])
    {'aaaaaaaa11': 'aaaaaaaa11', 'aaaaaaaa12': 'aaaaaaaa12', 'b': 'b'}
    """
    ordered = sorted(ids)
    common = [_common(one, other) for one, other in itertools.pairwise(ordered)]
    needed = [max(before, after) + 1 for before, after in zip([0, *common], [*common, 0], strict=True)]
    return {it: it[: max(_SHORTEST, count)] for it, count in zip(ordered, needed, strict=False)}


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike, if that is more than are shown at least."""
    if one[:_SHORTEST] != other[:_SHORTEST]:
        # of nearly all, and so many are shown anyway
        return 0
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))

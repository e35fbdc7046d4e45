"""Finds the jobs that a JOB argument means: a jpsi id or its beginning, a native id, or a name.

Indices behind an id or a name, as in `sweep[3]` and `sweep[3-5,8]`, mean those elements of an array alone.

The commands about jobs on disk use it. It never guesses: the beginning of several ids is an error, and so is
a native id that several systems have used.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..error_boundary import SelectionError

if TYPE_CHECKING:
    from jpsi_engine.job_store import StoredJob

# How many jobs a message about an ambiguous word names.
_MAX_NAMED = 10
# How many words a command has at most that a message advises.
_MAX_WORDS = 50
# The least number of characters that are shown of an id.
_MIN_LENGTH = 8


def select_jobs(words: Iterable[str], jobs: Sequence[StoredJob]) -> list[StoredJob]:
    """Return the jobs that the words mean, each once; a name or an array may be several jobs.

    A word of several lines, such as the quoted output of `jpsi submit`, means the jobs of all its lines.

    Raises:
        SelectionError: a word means no job, or `match_jobs` refuses it.
    """
    found: dict[str, StoredJob] = {}
    for word in words:
        matches = match_jobs(word, jobs)
        if not matches and len(lines := word.splitlines()) > 1:
            matches = select_jobs(lines, jobs)
        if not matches:
            raise no_match(word)
        found |= {job.id: job for job in matches}
    return list(found.values())


def select_job(word: str, jobs: Sequence[StoredJob], command: str) -> StoredJob:
    """Return the one job that a word means.

    Args:
        word: the word.
        jobs: all jobs.
        command: the command that the message advises for one of several jobs.

    Raises:
        SelectionError: the word means no job, or several.
    """
    found = select_jobs([word], jobs)
    if len(found) > 1:
        raise SelectionError(_describe_ambiguity(f"{word!r} means", found, _example(word, found, command)))
    return found[0]


def match_jobs(word: str, jobs: Sequence[StoredJob]) -> list[StoredJob]:
    """Return the jobs that a word means; none if there is no such job.

    An id takes precedence over native ids and names, and these over beginnings of ids. A native id that the
    batch system has given again means its newest job or array, and a name all jobs that have it.

    Raises:
        SelectionError: the word is the beginning of several ids, or a native id or name of unlike jobs, or
            none of the jobs has one of the indices, or any of a range of them.
    """
    for matches in _matchers(word):
        if found := [job for job in jobs if matches(job)]:
            return _current(word, found)
    if not word or (word.isdecimal() and len(word) < _MIN_LENGTH):
        # a short number is a native id, perhaps of a job that jpsi has not submitted
        return []
    ids = {it for job in jobs for it in (job.id, job.array_id) if it is not None and it.startswith(word)}
    found = [job for job in jobs if not ids.isdisjoint({job.id, job.array_id})]
    if len(ids) > 1:
        raise SelectionError(_describe_ambiguity(f"{word!r} is the beginning of the ids of", found))
    return found or _match_indices(word, jobs)


def _match_indices(word: str, jobs: Sequence[StoredJob]) -> list[StoredJob]:
    """Return the elements of arrays that an id or a name with the user's indices means."""
    name, indices = split_indices(word)
    if not indices:
        return []
    # behind a native id, indices are those of the batch system
    own = [job for job in match_jobs(name, jobs) if name not in native_words(job)]
    existing = {job.array_index for job in own}
    parts = zip(word[len(name) + 1 : -1].split(","), indices, strict=True)
    # a range may reach past the end, but an index that does not exist is a mistake
    missing = [text for text, part in parts if not any(it in part for it in existing)]
    if own and missing:
        known = indices_text(own)
        has = f"{name} has the indices {known}" if known else f"{name} has no indices"
        meant = f"{name}[{','.join(missing)}]"
        raise SelectionError(f"{meant!r} means no job: {has}")
    return [job for job in own if any(job.array_index in it for it in indices)]


def _current(word: str, found: list[StoredJob]) -> list[StoredJob]:
    """Return the jobs without those that had a native id before its batch system gave it again.

    Raises:
        SelectionError: the word is a native id of several systems, or a native id and a name.
    """
    if all(word in {job.id, job.array_id, job.name} for job in found):
        # jobs of a name may all be of one sweep, even if some ended before the last was submitted
        return found
    if len({(job.origin, job.array_native_id or job.native_id) for job in found}) > 1:
        raise SelectionError(_describe_ambiguity(f"{word!r} means", found))
    newest = max(found, key=lambda job: job.submitted)
    current = {
        job.array_id or job.id for job in found if not job.status.final or job.status.time >= newest.submitted
    }
    return [job for job in found if (job.array_id or job.id) in current]


def select_live_jobs(words: Iterable[str], jobs: Sequence[StoredJob]) -> list[StoredJob]:
    """Return the jobs that the words mean, without those that have ended if a word means others, too.

    Raises:
        SelectionError: as `select_jobs` does.
    """
    found: dict[str, StoredJob] = {}
    for word in words:
        matches = select_jobs([word], jobs)
        found |= {job.id: job for job in [it for it in matches if not it.status.final] or matches}
    return list(found.values())


def no_match(word: str) -> SelectionError:
    """Return the error for a word that means no job."""
    is_short = word.isdecimal() and len(word) < _MIN_LENGTH
    hint = f"; digits alone are the beginning of an id only if they are at least {_MIN_LENGTH}"
    msg = f"no job has the id, native id or name {word!r}; jpsi ls --all shows all{hint if is_short else ''}"
    return SelectionError(msg)


def _matchers(word: str) -> list[Callable[[StoredJob], bool]]:
    """Return the ways in which a word may mean jobs, the strongest first."""
    array = _ARRAY.fullmatch(word)
    name, indices = ("", []) if array is None else (array["array"], _read_indices(array["indices"]))
    return [
        lambda job: word in {job.id, job.array_id},
        lambda job: word == job.name or word in native_words(job),
        # as squeue and qstat show elements that wait
        lambda job: bool(indices) and name in _array_ids(job) and _has_index(job, indices),
    ]


# Several elements of an array, such as 17_[1-3,7%2] or 17[1-3].server.
_ARRAY = re.compile(r"(?P<array>[^\[\]]+?)_?\[(?P<indices>[0-9][0-9,:-]*)(?:%[0-9]+)?\](?:\..*)?")
_INDEXED = re.compile(r"(?P<array>.+)\[(?P<indices>[0-9][0-9,:-]*)\]")
_BRACKET = "["


def native_words(job: StoredJob) -> set[str]:
    """Return the texts for a job as its batch system has them: its native id, and all that mean its array."""
    if job.native_id is None:
        return set()
    if job.origin.machine is not None:
        return {job.native_id}
    return {job.native_id, job.native_id.partition(".")[0], *_array_ids(job)}


def _array_ids(job: StoredJob) -> set[str]:
    """Return the texts for the array of a job: its native id, without the server, without the brackets."""
    native_id = job.array_native_id or ""
    number = native_id.partition(".")[0]
    return {native_id, number, number.partition(_BRACKET)[0]} if native_id else set()


def split_indices(word: str) -> tuple[str, list[range]]:
    """Return what stands before the indices in a word such as `sweep[3-5,8]`, and the indices, if any."""
    array = _INDEXED.fullmatch(word)
    return (word, []) if array is None else (array["array"], _read_indices(array["indices"]))


def _read_indices(text: str) -> list[range]:
    from jpsi.plugin.kit import read_indices  # noqa: PLC0415  few words are indices

    try:
        return read_indices(text)
    except ValueError:
        return []


def _has_index(job: StoredJob, indices: Sequence[range]) -> bool:
    return job.array is not None and any(job.array[1] in it for it in indices)


def _describe_ambiguity(beginning: str, jobs: Sequence[StoredJob], by: str = "by its id") -> str:
    lines = [
        f"  {job.id}  {job.native_id or '-'}  {job.name or '-'}  {job.origin.name}  {job.status.state}"
        f"{'' if job.array_index is None else f'  index {job.array_index}'}"
        for job in jobs[-_MAX_NAMED:]
    ]
    more = [f"  and {len(jobs) - _MAX_NAMED} older ones"] if len(jobs) > _MAX_NAMED else []
    return "\n".join([f"{beginning} {len(jobs)} jobs; name one of them {by}", *lines, *more])


def _example(word: str, jobs: Sequence[StoredJob], command: str) -> str:
    """Return how to name one of several jobs that a word means, with an example."""
    last = jobs[-1]
    if last.array_id is None or last.array_index is None or any(it.array_id != last.array_id for it in jobs):
        return f"by its id, such as: {command} {last.id}"
    name, _ = split_indices(word)
    array = name if name == last.name or last.array_id.startswith(name) else last.array_id
    from jpsi.plugin import line  # noqa: PLC0415  few words are of several jobs

    # unquoted, some shells take the brackets for a pattern of files
    return f"by its index, such as: {command} {line(f'{array}[{last.array_index}]')}"


def job_title(job: StoredJob, shown_id: str, *, is_named: bool = True) -> str:
    """Return a short text for one job among others: its index in an array, an id to type, and its name.

    Args:
        job: the job.
        shown_id: its id as shown.
        is_named: False if a row of the job has its name.
    """
    is_process = job.native_id is None or job.origin.machine is not None
    known, name = shown_id if is_process else job.native_id, job.name if is_named else None
    if job.array_index is None:
        return f"{known} ({name})" if name else str(known)
    return f"index {job.array_index} ({', '.join(filter(None, [known, name]))})"


def index_list(jobs: Iterable[StoredJob], beginning: str) -> str:
    """Return the indices of elements after a beginning, such as `, index 3,5-9`; empty if they have none."""
    text = indices_text(jobs)
    return f"{beginning}index {text}" if text else ""


def array_sizes(jobs: Iterable[StoredJob]) -> Mapping[str, int]:
    """Return how many of the jobs are of each array."""
    return Counter(job.array_id for job in jobs if job.array_id is not None)


def job_words(jobs: Sequence[StoredJob], sizes: Mapping[str, int]) -> str:
    """Return for a shell the words by which commands take these jobs and no others.

    Of very many jobs it names some, and says how many it leaves out.

    Args:
        jobs: the jobs.
        sizes: how many jobs each array has, which is named by its id if these are all of them.
    """
    from jpsi.plugin import line  # noqa: PLC0415  few messages name several jobs

    own = array_sizes(jobs)
    whole = {array for array, count in own.items() if count == sizes.get(array)}
    words = [*sorted(whole), *exact_words(job for job in jobs if job.array_id not in whole)]
    more = f", and {len(words) - _MAX_WORDS} more" if len(words) > _MAX_WORDS else ""
    return line(*words[:_MAX_WORDS]) + more


def exact_words(jobs: Iterable[StoredJob]) -> list[str]:
    """Return words that mean these jobs: one for the indices of each array, and the ids of other jobs."""
    single: list[str] = []
    arrays: dict[str, list[StoredJob]] = {}
    for job in jobs:
        if job.array_id is None or job.array_index is None:
            single.append(job.id)
        else:
            arrays.setdefault(job.array_id, []).append(job)
    return [*(f"{array}[{indices_text(found)}]" for array, found in arrays.items()), *single]


def indices_text(jobs: Iterable[StoredJob]) -> str:
    """Return the indices of elements, such as `3,5-9`; empty if they have none."""
    from jpsi.plugin.kit import write_indices  # noqa: PLC0415  few jobs have indices

    indices = [job.array_index for job in jobs if job.array_index is not None]
    return write_indices(indices) if indices else ""


def job_with_index(job: StoredJob) -> str:
    """Return a text for a job in a sentence: its id, its name, and for the element of an array its index."""
    details = [job.name]
    if job.array_index is not None:
        is_process = job.native_id is None or job.origin.machine is not None
        details += [f"index {job.array_index}", None if is_process else f"native id {job.native_id}"]
    text = ", ".join(filter(None, details))
    return f"job {job.id} ({text})" if text else f"job {job.id}"


def describe_predecessors(words: Collection[str], jobs: Iterable[StoredJob]) -> dict[str, str]:
    """Return by id which job of several each is that ended before the newest of its name was submitted.

    An array counts as one job. Jobs whose name is none of the words were selected by their ids.
    """
    by_name: dict[str, list[StoredJob]] = {}
    names = {split_indices(word)[0] for word in words} | set(words)
    named = [job for job in jobs if job.name in names]
    for job in sorted(named, key=lambda it: it.submitted):
        by_name.setdefault(job.name or "", []).append(job)
    found = {}
    for name, namesakes in by_name.items():
        ids = list(dict.fromkeys(it.array_id or it.id for it in namesakes))
        numbers = {it: number for number, it in enumerate(ids, 1)}
        for job in namesakes:
            number = numbers[job.array_id or job.id]
            is_newest = number == len(ids)
            if job.status.final and not is_newest and job.status.time < namesakes[-1].submitted:
                which = f"this is number {number}, which had ended when the newest was submitted, {ids[-1]}"
                found[job.id] = f"{name} stands for {len(ids)} jobs: {which}"
    return found


def shown_ids(jobs: Iterable[StoredJob]) -> dict[str, str]:
    """Return the ids of jobs and of their arrays as they are shown, by these ids."""
    return short_ids({it for job in jobs for it in (job.id, job.array_id) if it is not None})


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

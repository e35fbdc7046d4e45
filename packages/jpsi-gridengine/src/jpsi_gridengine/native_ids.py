"""The native ids of Grid Engine jobs, arrays and array tasks."""

from __future__ import annotations

from collections.abc import Sequence

from jpsi.plugin import hookimpl
from jpsi.plugin.kit import IdForm, write_indices

# A job or an array task. qdel takes any other text as a pattern for names, and would end other jobs.
_IDS = IdForm("Grid Engine", r"[1-9][0-9]{0,9}(\.[1-9][0-9]{0,9})?")


@hookimpl
def canonical_id(native_id: str) -> str:
    """Return the id in its canonical form; raise ValueError if it is none."""
    return _IDS.canonical(native_id)


@hookimpl
def element_ids(native_id: str, indices: Sequence[int]) -> list[str]:
    """Return the native ids of an array's tasks with these indices."""
    return [f"{native_id}.{index}" for index in indices]


@hookimpl
def arrays_of(native_ids: Sequence[str]) -> dict[str, str]:
    """Return the array of each native id that is an array task; other ids are left out."""
    return {native_id: job_number(native_id) for native_id in native_ids if "." in native_id}


def job_number(native_id: str) -> str:
    """Return the number of a job, which all tasks of an array share.

    >>> job_number("17.3"), job_number("17")
    ('17', '17')
    """
    return native_id.partition(".")[0]


def compress_ids(native_ids: Sequence[str]) -> list[str]:
    """Return the fewest arguments that name these jobs; an array needs one per range of tasks.

    >>> compress_ids(["17.1", "18", "17.3", "17.2", "17.9"])
    ['18', '17.1-3', '17.9']
    """
    tasks: dict[str, list[int]] = {}
    for native_id in native_ids:
        array, is_task, index = native_id.partition(".")
        if is_task:
            tasks.setdefault(array, []).append(int(index))
    single = [native_id for native_id in native_ids if "." not in native_id]
    # a comma would separate two jobs
    runs = ((array, write_indices(indices).split(",")) for array, indices in tasks.items())
    return single + [f"{array}.{run}" for array, words in runs for run in words]

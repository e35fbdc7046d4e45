"""Makes the jobs of an array from one spec, for `jpsi submit --array` and programs.

The custom attribute `jpsi.array` of a spec has the indices, such as `1-100%10`. The spec of an element has
the id of the array and its limit instead, and its index and the range of all as variables of its environment.

If jobs are submitted again, they keep their indices, and become an array of their own.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from jpsi import JobSpec

#: The custom attribute with the indices of an array, in a spec that stands for several jobs.
ARRAY = "jpsi.array"
#: The custom attribute with the id that the elements of an array share.
ARRAY_ID = "jpsi.array_id"
#: The custom attribute with the number of elements that may run at a time.
AT_A_TIME = "jpsi.at_a_time"
#: The custom attribute with the id of the job that a job repeats.
REPEATS = "jpsi.repeats"
#: The custom attribute with the id of the job in whose allocation a job runs.
ALLOCATION = "jpsi.allocation"
#: The custom attribute with the jobs that a job was to wait for, but that had ended before it was submitted:
#: words such as `ok:ID` and `any:ID[3-5,8]`, with the ids that jpsi gave jobs, or arrays, and users' indices.
MET = "jpsi.after_ended"
#: The environment variable with the index of an element.
INDEX_VARIABLE = "JPSI_ARRAY_INDEX"

# The variables with the number of indices, the lowest, the highest, and the smallest step between two.
_RANGE = ("JPSI_ARRAY_COUNT", "JPSI_ARRAY_MIN", "JPSI_ARRAY_MAX", "JPSI_ARRAY_STEP")

_INDICES = re.compile(r"(?P<indices>[0-9][0-9,:-]*)(?:%(?P<limit>[0-9]{1,9}))?")
_INDEX = re.compile(r"[0-9]{1,18}")
# `$${...}` is no reference.
_REFERENCE = re.compile(rf"(?<!\$)\$\{{({'|'.join((INDEX_VARIABLE, *_RANGE))})\}}")
# No batch system takes more; a typing error must not fill the memory.
_MAX_ELEMENTS = 1_000_000
# The index in the path of a stream.
_PLACEHOLDER = "%a"


def array_specs(spec: JobSpec, indices: str | None = None) -> list[JobSpec]:
    """Return the specs of an array's elements; the spec itself if it describes one job.

    In the paths of its streams, `%a` stands for the index; in the values of its environment,
    `${JPSI_ARRAY_INDEX}` does, and the array's `_COUNT`, `_MIN`, `_MAX` and `_STEP` are replaced likewise.

    Args:
        spec: the spec, which is not changed.
        indices: the indices, and the limit of elements that run at a time, as in `1-100%10`, `0-9:3,20`; None
            takes those of the attribute `jpsi.array`.

    Raises:
        ValueError: the text names no indices.
    """
    custom = dict(spec.attributes.custom_attributes or {})
    own = custom.pop(ARRAY, None)
    text = own if indices is None else indices
    if text is None:
        return [spec]
    from jpsi.plugin.kit import read_indices  # noqa: PLC0415  for few jobs, with all that plugins need

    match = _INDICES.fullmatch(str(text))
    ranges = [] if match is None else read_indices(match["indices"])
    found = list(dict.fromkeys(index for it in ranges for index in it[: _MAX_ELEMENTS + 1]))
    if len(found) > _MAX_ELEMENTS:
        raise ValueError(f"{text!r} names more than {_MAX_ELEMENTS:,} indices, which no batch system takes")
    if match is not None and match["limit"] is not None and not int(match["limit"]):
        raise ValueError(f"{text!r} lets no job run at a time; after the %, give at least 1")
    if match is None or not found:
        raise ValueError(f"{text!r} names no indices of an array, such as 1-100, 0-9:3,20 or 1-100%10")
    if len(found) > 1:
        custom[ARRAY_ID] = _new_array_id()
    if match["limit"] is not None and int(match["limit"]) < len(found):
        custom[AT_A_TIME] = int(match["limit"])
    own = _range_variables(found)
    return [
        attrs.evolve(
            spec,
            attributes=attrs.evolve(spec.attributes, custom_attributes=dict(custom)),
            environment=_variables(spec, {**own, INDEX_VARIABLE: str(index)}),
            stdin_path=_with_index(spec.stdin_path, index),
            stdout_path=_with_index(spec.stdout_path, index),
            stderr_path=_with_index(spec.stderr_path, index),
        )
        for index in found
    ]


def _range_variables(indices: Sequence[int]) -> dict[str, str]:
    """Return the variables that say how an array is numbered.

    >>> _range_variables([3, 7, 5])
    {'JPSI_ARRAY_COUNT': '3', 'JPSI_ARRAY_MIN': '3', 'JPSI_ARRAY_MAX': '7', 'JPSI_ARRAY_STEP': '2'}
    """
    ordered = sorted(indices)
    step = min((after - before for before, after in itertools.pairwise(ordered)), default=1)
    return dict(zip(_RANGE, map(str, (len(ordered), ordered[0], ordered[-1], step)), strict=True))


def _variables(spec: JobSpec, own: Mapping[str, str]) -> dict[str, str | None]:
    """Return the environment of an element; references to its own variables in values are replaced."""
    set_by_user = {
        name: _REFERENCE.sub(lambda it: own[it[1]], value) if isinstance(value, str) else value
        for name, value in (spec.environment or {}).items()
    }
    return {**set_by_user, **own}


def _with_index(path: Path | None, index: int) -> Path | None:
    return None if path is None else Path(str(path).replace(_PLACEHOLDER, str(index)))


def array_problems(spec: JobSpec) -> list[str]:
    """Return why a spec is not that of one job; empty if it is."""
    if ARRAY not in (spec.attributes.custom_attributes or {}):
        return []
    return [f"the attribute {ARRAY} makes it several jobs: use jpsi submit, or jpsi_engine.array_specs"]


def array_id(spec: JobSpec) -> str | None:
    """Return the id of the array that a spec is an element of; None for a single job."""
    return _text((spec.attributes.custom_attributes or {}).get(ARRAY_ID))


def encoded_attribute(plain: Mapping[str, Any], name: str) -> str | None:
    """Return a custom attribute of an encoded spec that is a text; None if it has no such attribute."""
    found: object = plain
    for key in ("attributes", "custom_attributes", name):
        # as from JSON; a check for `Mapping` takes many times as long, for each of many jobs
        if not isinstance(found, dict):
            return None
        found = found.get(key)
    return _text(found)


def array_index(environment: Mapping[str, Any] | None) -> int | None:
    """Return the index of a job from the environment in its spec; None for a job without one."""
    text = _text((environment or {}).get(INDEX_VARIABLE))
    return int(text) if text is not None and _INDEX.fullmatch(text) else None


def single_spec(spec: JobSpec) -> JobSpec:
    """Return the spec of a job as that of one in no array and no allocation; it keeps its index."""
    custom = {
        name: value
        for name, value in (spec.attributes.custom_attributes or {}).items()
        if name not in {ARRAY_ID, AT_A_TIME, REPEATS, ALLOCATION, MET}
    }
    return attrs.evolve(spec, attributes=attrs.evolve(spec.attributes, custom_attributes=custom or None))


def _new_array_id() -> str:
    import uuid  # noqa: PLC0415  for arrays alone

    return str(uuid.uuid4())


def repeated_specs(specs: Mapping[str, JobSpec]) -> list[JobSpec]:
    """Return the specs of new jobs that repeat jobs; elements of one array are the elements of a new one.

    The new jobs keep their indices, and wait for no other jobs; `StoredJob.read_dependencies` tells for
    which the old ones did.

    Args:
        specs: the specs of the jobs that are repeated, by id.
    """
    counts = Counter(map(array_id, specs.values()))
    new_ids = {it: _new_array_id() for it, count in counts.items() if it is not None and count > 1}
    found = []
    for job_id, spec in specs.items():
        single = single_spec(spec)
        single.attributes.after = None
        single.attributes.set_custom_attribute(REPEATS, job_id)
        old_id, limit = array_id(spec), at_a_time(spec)
        if old_id in new_ids:
            single.attributes.set_custom_attribute(ARRAY_ID, new_ids[old_id])
            if limit is not None and limit < counts[old_id]:
                single.attributes.set_custom_attribute(AT_A_TIME, limit)
        found.append(single)
    return found


def _text(found: object) -> str | None:
    return found if isinstance(found, str) else None


def at_a_time(spec: JobSpec) -> int | None:
    """Return how many elements of the array of a spec may run at a time; None for no limit."""
    found = (spec.attributes.custom_attributes or {}).get(AT_A_TIME)
    return found if isinstance(found, int) else None

"""Checks fields of jobs in documents of other formats, such as workflows and requests.

They have the names and the forms that they have in job documents, whose reader checks them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from jpsi import InvalidJobException, JobAttributes, JobSpec

#: The attributes of jobs that such documents have.
JOB_ATTRIBUTES = (*JobAttributes.text_names(), "warn", "retry")
#: All fields that such documents have: the attributes, and those of the processes of a job.
JOB_FIELDS = (*JOB_ATTRIBUTES, "environment_setup", "container")
_PREFIX = "attributes.system.jpsi."


def job_field_problems(content: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Return what is wrong with fields of a job, given as plain values: pairs of a path and a sentence.

    >>> job_field_problems({"qos": "high", "mail": 3})
    [('mail', 'must be text, not 3; put it in quotes')]
    """
    # most programs that import the names above read no such fields
    from jpsi import read_document  # noqa: PLC0415
    from jpsi_engine.verdict import retry_problems  # noqa: PLC0415

    # with requests that may grow
    fields = {"resources": {"memory": 1 << 30}, **content}
    document = {
        "version": 1,
        "resources": [{"type": "slot", "count": 1, "label": "task", "with": [{"type": "core", "count": 1}]}],
        "tasks": [{"command": ["true"], "slot": "task", "count": {"per_slot": 1}}],
        "attributes": {"system": {"duration": 1, "jpsi": fields}},
    }
    try:
        spec = read_document(json.dumps(document, default=str, skipkeys=True))
    except InvalidJobException as e:
        parts = [it.partition(_PREFIX)[2].partition(": ") for it in e.problems]
        return [(path, sentence) for path, _, sentence in parts]
    found = [it.removeprefix("attributes.retry: ").partition(" ") for it in retry_problems(spec)]
    return [(f"retry.{name}", sentence) for name, _, sentence in found]


def retry_field_problems(spec: JobSpec, *, is_complete: bool = False) -> Sequence[str]:
    """Return what is wrong with the attribute `retry` of a spec, for the reader of job documents.

    What its entries need of other fields counts if the spec `is_complete`: else options may still set them.
    """
    if not spec.attributes.retry:
        return []
    from jpsi_engine.verdict import retry_entry_problems, retry_problems  # noqa: PLC0415  as above

    if is_complete:
        return retry_problems(spec)
    return [f"attributes.retry[{name!r}] {sentence}" for name, sentence in retry_entry_problems(spec)]

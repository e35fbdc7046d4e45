"""Checks fields of jobs in documents of other formats, such as workflows and requests.

They have the names and the forms that they have in job documents, whose reader checks them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import jpsi
from jpsi import InvalidJobException, JobAttributes, JobSpec
from jpsi_engine import verdict

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
    # with requests that may grow
    fields = {"resources": {"memory": 1 << 30}, **content}
    document = {
        "version": 1,
        "resources": [{"type": "slot", "count": 1, "label": "task", "with": [{"type": "core", "count": 1}]}],
        "tasks": [{"command": ["true"], "slot": "task", "count": {"per_slot": 1}}],
        "attributes": {"system": {"duration": 1, "jpsi": fields}},
    }
    try:
        spec = jpsi.read_document(json.dumps(document, default=str, skipkeys=True))
    except InvalidJobException as e:
        parts = [it.partition(_PREFIX)[2].partition(": ") for it in e.problems]
        return [(path, sentence) for path, _, sentence in parts]
    found = [it.removeprefix("attributes.retry: ").partition(" ") for it in verdict.retry_problems(spec)]
    return [(f"retry.{name}", sentence) for name, _, sentence in found]


def retry_field_problems(spec: JobSpec, *, is_complete: bool = False) -> Sequence[str]:
    """Return what is wrong with the attribute `retry` of a spec, for the reader of job documents.

    What its entries need of other fields counts if the spec `is_complete`: else options may still set them.
    """
    if not spec.attributes.retry:
        return []
    if is_complete:
        return verdict.retry_problems(spec)
    return [f"attributes.retry[{name!r}] {sentence}" for name, sentence in verdict.retry_entry_problems(spec)]

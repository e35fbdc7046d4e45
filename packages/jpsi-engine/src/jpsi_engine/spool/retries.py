"""Records the ends of attempts that others may follow; the first record of an end counts for all clients."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import attrs

from jpsi import JobState, JobStatus
from jpsi.plugin import Evidence
from jpsi.plugin.engine import TIME_SOURCE, decode
from jpsi_engine.spool.damage import DAMAGE
from jpsi_engine.spool.spool import RETRY_KEY, Spool
from jpsi_engine.spool.status_values import encode_status
from jpsi_engine.verdict import Retry, decide_retry

#: The facts about retries in the metadata of statuses.
ATTEMPT, RETRY_REASON = "attempt", "retry_reason"
# In the metadata of the end of an attempt after the first: when it began.
_ATTEMPT_STARTED = "attempt_started"
# In the record of a retry: the number of the next attempt among those that began, and when the first was
# submitted and the first began.
_NEXT, _SUBMITTED, _STARTED = "next", "submitted", "started"
# In it, too: the array of the first attempt.
_ARRAY = "array"


def record_end(
    spool: Spool, job_id: str, attempt: int, status: JobStatus, started: datetime | None
) -> Mapping[str, Any]:
    """Record the end of an attempt that another may follow; return the record that counts, the first.

    Args:
        spool: the spool of the job.
        job_id: the job.
        attempt: the attempt that has ended for certain.
        status: its final status.
        started: when it began; None if it did not.

    Raises:
        OSError: it could not be recorded.
    """
    earlier = spool.last_retried(job_id, attempt)
    before = None if earlier is None else earlier[1][RETRY_KEY]
    began = {} if before is None or started is None else {_ATTEMPT_STARTED: started.isoformat()}
    status = attrs.evolve(status, metadata={**status.metadata, **retry_metadata(before), **began})
    content: dict[str, Any] = {**_encode(status), RETRY_KEY: None}
    intent = spool.find_intent(job_id, attempt)
    if intent is not None:
        reasons = spool.retry_reasons(job_id, attempt)
        try:
            retry, why_not = decide_retry(decode(intent.content["spec"]), status, reasons)
        except DAMAGE:
            retry, why_not = None, "its request is damaged"
        if retry is not None and spool.is_retry_cancelled(job_id, attempt):
            # its program may have ended by itself meanwhile
            retry, why_not = None, "it was cancelled" if status.state is JobState.FAILED else ""
        if retry is not None:
            first = {} if before is None else before
            content[RETRY_KEY] = {
                **retry.content,
                _NEXT: len(reasons) + 2,
                _SUBMITTED: first.get(_SUBMITTED, intent.content["time"]),
                _STARTED: first.get(_STARTED) or (None if started is None else started.isoformat()),
                _ARRAY: intent.place.array if before is None and intent.place else first.get(_ARRAY),
            }
        elif why_not:
            content["message"] = f"{status.message or 'it failed'}; it is not submitted again, as {why_not}"
    spool.finish(job_id, attempt, content)
    return spool.read_final(job_id, attempt) or content


def _encode(status: JobStatus) -> dict[str, Any]:
    content = encode_status(status)
    try:
        json.dumps(content)
    except (TypeError, ValueError):
        # details of a plugin that JSON cannot hold
        content = encode_status(attrs.evolve(status, metadata={}))
    return content


def read_retry(content: Mapping[str, Any] | None) -> Retry | None:
    """Return the decision in the record of an end; None if no attempt follows, or it cannot be parsed."""
    try:
        return Retry.from_content(content[RETRY_KEY]) if content and content.get(RETRY_KEY) else None
    except DAMAGE:
        return None


def read_first_array(record: Mapping[str, Any] | None) -> str | None:
    """Return the array of the first attempt of a job, by the record of a retry; None if there is none."""
    return None if record is None else record.get(_ARRAY)


def retry_metadata(record: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the metadata of a status says of the attempt that follows by this record of a retry."""
    return {} if record is None else {ATTEMPT: record[_NEXT], RETRY_REASON: record["reason"]}


def reached_status(record: Mapping[str, Any]) -> JobStatus:
    """Return the status that a job keeps until the attempt that follows by this record has got further."""
    state = JobState.QUEUED if record[_STARTED] is None else JobState.ACTIVE
    time = datetime.fromisoformat(record[_STARTED] or record[_SUBMITTED])
    metadata = {TIME_SOURCE: "marker", **retry_metadata(record)}
    return JobStatus(state, time=time, evidence=Evidence.MARKER, metadata=metadata)


def status_before(spool: Spool, job_id: str, attempt: int) -> JobStatus | None:
    """Return the status that a job had reached by the ends of its attempts up to this one; None if none."""
    try:
        ended = spool.last_retried(job_id, attempt + 1)
        return None if ended is None else reached_status(ended[1][RETRY_KEY])
    except (OSError, *DAMAGE):
        return None

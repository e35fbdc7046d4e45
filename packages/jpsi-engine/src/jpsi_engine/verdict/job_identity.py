"""Decides which job an observation is about: a native id alone proves nothing.

A controller that crashes before it has saved a job gives the job's native id to another user's job, and every
controller reuses its ids when it has used them all. So each job of jpsi carries a tag, and the batch system's
report about a native id counts for the job whose tag it shows.
"""

from __future__ import annotations

import enum
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from jpsi.plugin import JobState

if TYPE_CHECKING:
    from jpsi.plugin import Observation

# Systems print the time of a submission in whole seconds, rounded by some and truncated by others.
_SAME_TIME = timedelta(seconds=1)


class Owner(enum.Enum):
    """The owner of the job that an observation is about."""

    #: The job that was queried.
    OWN = "own"
    #: Another job, which has the native id now.
    FOREIGN = "foreign"
    #: The observation does not say.
    UNKNOWN = "unknown"


def owner_of(
    observation: Observation,
    tag: str | None,
    submitted: datetime | None = None,
    *,
    began: datetime | None = None,
    is_requeued: bool = False,
) -> Owner:
    """Return the owner of the job that an observation is about.

    Args:
        observation: the batch system's report about the native id of the job.
        tag: the job's tag; None for a job that jpsi did not submit, for which every report is believed.
        submitted: the time when the batch system accepted the job, as an earlier report with the tag has it.
        began: the time of the job's first marker, by which the batch system had accepted it; None if it has
            left none.
        is_requeued: True if the batch system has requeued the job, which on some systems changes the
            submission time.
    """
    if tag is None or observation.tag == tag:
        return Owner.OWN
    if observation.tag:
        return Owner.FOREIGN
    if observation.submitted is None or (submitted or began) is None:
        return Owner.UNKNOWN if observation.tag is None else Owner.FOREIGN
    if not _is_in_time(observation.submitted, submitted, began):
        return Owner.UNKNOWN if is_requeued else Owner.FOREIGN
    if observation.tag is None:
        # a submission time before this job began proves nothing without an earlier report
        return Owner.OWN if submitted is not None else Owner.UNKNOWN
    # A user or a site may have changed the text that carried the tag; or a controller was killed, restarted
    # and accepted another job within a second. A job that waits, or began to run later, is not this one.
    is_another = began is None or (not is_requeued and not _has_begun_by(observation, began))
    return Owner.FOREIGN if is_another else Owner.UNKNOWN


def _is_in_time(submit_time: datetime, submitted: datetime | None, began: datetime | None) -> bool:
    """Return True if the batch system accepted a job together with this one, or before this one began."""
    if submitted is not None:
        return abs(submit_time - submitted) <= _SAME_TIME
    return began is not None and submit_time <= began + _SAME_TIME


def _has_begun_by(observation: Observation, began: datetime) -> bool:
    """Return True if an observation can be about a job that has begun to run by this time."""
    if observation.state is JobState.ACTIVE and observation.time is not None:
        return observation.time <= began + _SAME_TIME
    return observation.state is not JobState.QUEUED


def is_refused(observation: Observation, owner: Owner) -> bool:
    """Return True if a request must not be sent, as the native id is, or may be, another job's."""
    return owner is Owner.FOREIGN or (owner is Owner.UNKNOWN and observation.tag == "")


def is_own(observation: Observation | None, tag: str | None) -> bool:
    """Return True if an observation reports a job, and may be about the one that carries the tag."""
    if observation is None or not observation.exists:
        return False
    return owner_of(observation, tag) is not Owner.FOREIGN

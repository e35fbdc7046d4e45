"""Tells whose job an answer is about: a native id alone proves nothing.

A controller that crashes before it has written a job down gives the job's native id to somebody else's, and
every controller gives its ids anew when it has used them all. So each job of jpsi's carries a tag, and what a
batch system says about a native id counts for the job whose tag it says that id carries.
"""

from __future__ import annotations

import enum
from datetime import datetime, timedelta

from jpsi.contract.observation import Observation
from jpsi.model import JobState

#: Stands for the tag of a submission that is not made yet; as long as one may be.
SOME_TAG = f"jpsi-00000000-0000-0000-0000-000000000000-{'0' * 18}"

# Systems print the time of a submission in whole seconds, some rounded and some cut.
_SAME_TIME = timedelta(seconds=1)


class Owner(enum.Enum):
    """The owner of the job that an observation is about."""

    #: The job that was asked about.
    OWN = "own"
    #: Another job, which has the native id now.
    STRANGER = "stranger"
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
    """Return whose job an observation is about.

    Args:
        observation: what the batch system said about the native id of the job.
        tag: what the job carries; None for a job that is none of jpsi's, of which every answer is believed.
        submitted: when the batch system took the job, as an earlier answer with the tag said.
        began: when the job left its first marker, by which time the batch system had taken it; None if it has
            left none.
        is_requeued: whether the batch system has put the job back, which on some systems changes that time.
    """
    if tag is None or observation.tag == tag:
        return Owner.OWN
    if observation.tag:
        return Owner.STRANGER
    if observation.submitted is None or (submitted or began) is None:
        return Owner.UNKNOWN if observation.tag is None else Owner.STRANGER
    if not _is_in_time(observation.submitted, submitted, began):
        return Owner.UNKNOWN if is_requeued else Owner.STRANGER
    if observation.tag is None:
        # that another job was not taken before this one began is no proof
        return Owner.OWN if submitted is not None else Owner.UNKNOWN
    # A user or a site may have changed the text that carried the tag; or a controller was killed, and started
    # again, and took another job, within a second. One that waits, or began to run later, is not this one.
    is_another = began is None or (not is_requeued and not _has_begun_by(observation, began))
    return Owner.STRANGER if is_another else Owner.UNKNOWN


def _is_in_time(told: datetime, submitted: datetime | None, began: datetime | None) -> bool:
    """Return whether the batch system took a job when it took this one, or before this one began to run."""
    if submitted is not None:
        return abs(told - submitted) <= _SAME_TIME
    return began is not None and told <= began + _SAME_TIME


def _has_begun_by(told: Observation, began: datetime) -> bool:
    """Return whether an observation can be about a job that has begun to run by this time."""
    if told.state is JobState.ACTIVE and told.time is not None:
        return told.time <= began + _SAME_TIME
    return told.state is not JobState.QUEUED


def is_refused(observation: Observation, owner: Owner) -> bool:
    """Return whether a request must not be sent, as the native id is a stranger's or may well be."""
    return owner is Owner.STRANGER or (owner is Owner.UNKNOWN and observation.tag == "")


def is_own(observation: Observation | None, tag: str | None) -> bool:
    """Return whether an observation tells of a job, and may be about the one that carries a tag."""
    if observation is None or not observation.exists:
        return False
    return owner_of(observation, tag) is not Owner.STRANGER

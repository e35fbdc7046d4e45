"""Finds out if a job is that of a workflow or a request, which take no notice of what repeats it.

Their packages set the variables by which it is recognised.
"""

from __future__ import annotations

from enum import Enum

from jpsi_engine.job_store import StoredJob


class Owner(Enum):
    """The kind of document that a job was submitted for; its value is the command that runs that again."""

    WORKFLOW = "jpsi workflow run --failed FILE"
    REQUEST = "jpsi request run FILE"

    @property
    def noun(self) -> str:
        """The word for it."""
        return self.name.lower()


# The variables that all jobs of a workflow, or of a request, have in their specs.
_VARIABLES = {Owner.WORKFLOW: {"JPSI_TASK", "JPSI_REPLICAS"}, Owner.REQUEST: {"JPSI_EXECUTION"}}


def find_owner(job: StoredJob) -> Owner | None:
    """Return the kind of document that a job was submitted for; None for a job of its own.

    What repeats the job of a workflow or a request is a job of its own, though it has the variables.
    """
    if job.repeats is not None:
        return None
    variables = (job.spec.environment or {}).keys()
    return next((owner for owner, needed in _VARIABLES.items() if needed <= variables), None)

"""Maps jobs of the fake batch system to LSF's words for states and reasons.

Tests and `jpsi fake` run jobs on the fake, without a real LSF.
"""

from __future__ import annotations

from datetime import UTC, datetime

from jpsi_testing.fake import FakeJob, FakeState, node_name

# Pending reasons, as in lsbatch/lib/lsb.reason.c of volclava
#: The dependency of the job is not satisfied yet.
WAITS = "Job dependency condition not satisfied"
#: The dependency of the job will never be satisfied.
NEVER = "Dependency condition invalid or never satisfied"
#: The array of the element has reached its limit of running elements.
LIMITED = "The job array has reached its running element limit"

_STATES = {
    FakeState.PENDING: "PEND",
    FakeState.HELD: "PSUSP",
    FakeState.RUNNING: "RUN",
    FakeState.COMPLETED: "DONE",
}
_PENDING = {
    "resources": "Job slot limit reached",
    "held": "The job was suspended by the user while pending",
    "begin": "The job has a specified start time",
}
_TERMINATIONS = {
    FakeState.CANCELLED: "TERM_OWNER: job killed by owner",
    FakeState.TIMEOUT: "TERM_RUNLIMIT: job killed after reaching LSF run time limit",
    FakeState.OUT_OF_MEMORY: "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit",
    FakeState.NODE_FAIL: "TERM_REMOVE_HUNG_JOB: job removed from the LSF system",
}
_ORPHAN = "TERM_ORPHAN_SYSTEM: orphan job terminated automatically by LSF"


def nodes(job: FakeJob) -> list[str]:
    """Return the node of each slot of a job."""
    found: list[str] = job.attributes.get("nodes", [node_name(0)])
    return found


def lead(job: FakeJob) -> str:
    """Return the node on which a job's script runs."""
    return nodes(job)[0]


def is_done(job: FakeJob) -> bool:
    """Return True if LSF calls an ended job DONE; LSF decides by the exit code, even for killed jobs."""
    ended_well = job.exit_code == 0 and job.state in {FakeState.CANCELLED, FakeState.TIMEOUT}
    return job.state is FakeState.COMPLETED or (job.started is not None and ended_well)


def native_state(job: FakeJob) -> str:
    """Return LSF's own name of the job's state."""
    return "DONE" if is_done(job) else _STATES.get(job.state, "EXIT")


def code(job: FakeJob) -> int | None:
    """Return the exit code; None if LSF has none, as for a job that it could not start."""
    if not job.state.final or job.started is None or job.state is FakeState.NODE_FAIL:
        return None
    return None if job.exit_code is None and job.signal is None else job.shell_code


def termination(job: FakeJob) -> str:
    """Return the reason why LSF ended a job; "" if it did not."""
    return _ORPHAN if job.why == NEVER and job.state.final else _TERMINATIONS.get(job.state, "")


def pending(job: FakeJob) -> str:
    """Return the reason why a job is pending; "" if it is not."""
    if job.state not in {FakeState.PENDING, FakeState.HELD}:
        return ""
    default = "New job is waiting for scheduling" if job.state is FakeState.PENDING else _PENDING["held"]
    return _PENDING.get(job.why, job.why) or default


def has_run(job: FakeJob) -> bool:
    """Return True if a job has run on a node."""
    return job.started is not None and not job.failed_to_start


def format_time(seconds: float | None) -> str:
    """Return a time as LSF prints it in paragraphs."""
    return datetime.fromtimestamp(int(seconds or 0), UTC).strftime("%a %b %e %H:%M:%S")

"""Derives the end of a job from the exit status that PBS or Torque reports, without guessing.

The hooks hand its functions to `observe_jobs`, which calls them for each finished job.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from jpsi.plugin import JobState, Reason

from .listing import ListedJob

_COMPLETED, _FAILED, _CANCELED = JobState.COMPLETED, JobState.FAILED, JobState.CANCELED
#: The batch system reports 256 + n if signal n ended its shell; the shell itself exits with 128 + n.
_SHELL_SIGNAL_BASE, _SIGNAL_BASE, _LAST_SIGNAL = 256, 128, 127
_TERMINATED = _SHELL_SIGNAL_BASE + 15


@attrs.frozen(slots=True)
class End:
    """The end of a job: its state, reason and exit code, as far as the batch system reports them."""

    state: JobState
    reason: Reason | None = None
    #: A sentence for the user, if the state alone is not enough.
    message: str | None = None
    exit_code: int | None = None
    #: True if the job ran; None if the batch system does not say.
    ran: bool | None = True


_DELETED = End(_CANCELED, Reason.CANCELLED, "the job was deleted")
_PREEMPTED = End(_FAILED, Reason.PREEMPTED, "the job had to make room for another job, and was deleted")
_NEVER_RAN = attrs.evolve(_DELETED, ran=False)
_NEVER_SATISFIED = End(
    _CANCELED,
    Reason.DEPENDENCY,
    "a job that this one depends on has ended so that this one never starts",
    ran=False,
)
_OVER_WALLTIME = End(_FAILED, Reason.TIMEOUT, "the job used up its duration and was ended")
_OVER_CPU_TIME = End(_FAILED, Reason.TIMEOUT, "the job used up its CPU time and was ended")
_OUT_OF_MEMORY = End(_FAILED, Reason.OUT_OF_MEMORY, "the job used more memory than it may")
_NODE_LOST = End(_FAILED, Reason.NODE_FAIL, "a node of the job failed")
_TOO_MANY_CPUS = End(_FAILED, None, "the job used more CPUs than it may")

# src/include/job.h of OpenPBS 23.06.06: JOB_EXEC_INIT* from a node that was restarted, _FAIL of the
# connection between nodes, and _KILL_*; any other negative code is a job that could not be started.
_OPENPBS_CODES = {
    **dict.fromkeys((-4, -5, -6, -14, -20), _NODE_LOST),
    -24: _TOO_MANY_CPUS,
    -25: _TOO_MANY_CPUS,
    -26: _OUT_OF_MEMORY,
    -27: _OUT_OF_MEMORY,
    -28: _OVER_CPU_TIME,
    -29: _OVER_WALLTIME,
}
# src/include/pbs_job.h of Torque 6.1.3: JOB_EXEC_INIT*, _OVERLIMIT_*
_TORQUE_CODES = {
    **dict.fromkeys((-4, -5, -6), _NODE_LOST),
    -10: _OUT_OF_MEMORY,
    -11: _OVER_WALLTIME,
    -12: _OVER_CPU_TIME,
}
# src/include/job.h of OpenPBS 23.06.06: JOB_SUBSTATE_TERMINATED, set by qdel, and _FINISHED
_TERMINATED_BY_QDEL, _FINISHED = 91, 92
# The comment of a job that was deleted names who did it: the scheduler, if preempt_order has a D.
_BY_SCHEDULER = "terminated by Scheduler@"


def derive_openpbs_end(job: ListedJob) -> End | None:
    """Return the end of a job that PBS calls finished; None if needed attributes are missing or malformed."""
    code, substate = job.number("Exit_status"), job.number("substate")
    if substate is None or (code is None and job.text("Exit_status")):
        return None
    deleted = substate == _TERMINATED_BY_QDEL
    if code is None:
        if not deleted and job.text("depend").startswith("after"):
            return _NEVER_SATISFIED
        # a job that finished without ever running needs a cause; without one the listing is incomplete
        return None if substate == _FINISHED else _end_without_code(job, deleted=deleted)
    end = _decode_code(code, _OPENPBS_CODES)
    if not deleted:
        return end
    deletion = _PREEMPTED if _BY_SCHEDULER in job.text("comment") else _DELETED
    return attrs.evolve(deletion, exit_code=end.exit_code)


def derive_torque_end(job: ListedJob) -> End | None:
    """Return the end of a job that Torque calls completed; None if its exit status is malformed."""
    if "result of dependency" in job.text("comment"):
        return _NEVER_SATISFIED
    code = job.number("Exit_status")
    if code is None:
        return None if job.text("Exit_status") else _end_without_code(job, deleted=True)
    end = _decode_code(code, _TORQUE_CODES)
    # This code is all that Torque reports about a job that qdel ended.
    return attrs.evolve(_DELETED, exit_code=end.exit_code) if code == _TERMINATED else end


def _end_without_code(job: ListedJob, *, deleted: bool) -> End:
    """Return the end of a job without an exit code, which never ran or was not rerun."""
    end = _NEVER_RAN if deleted else End(_FAILED, Reason.LAUNCH, "the job could not be started", ran=False)
    return attrs.evolve(end, ran=None) if job.number("run_count") else end


def _decode_code(code: int, codes: Mapping[int, End]) -> End:
    if code in codes:
        return codes[code]
    if code < 0:
        return End(_FAILED, Reason.LAUNCH, f"the job could not be started (Exit_status {code})", ran=None)
    if code <= _SHELL_SIGNAL_BASE:
        return End(_FAILED if code else _COMPLETED, exit_code=code)
    signal = code - _SHELL_SIGNAL_BASE
    return End(_FAILED, Reason.SIGNAL, exit_code=_SIGNAL_BASE + signal if signal <= _LAST_SIGNAL else None)

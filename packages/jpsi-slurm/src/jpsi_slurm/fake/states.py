"""Slurm's words for jobs of the fake batch system, as a line of a listing has them.

Tests and `jpsi fake` run jobs on the fake, without a real Slurm.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from jpsi_testing.fake import FakeJob, FakeState, Invocation

from .nodes import node_list, node_names

#: The reason codes of jobs whose dependency is not satisfied yet, or never will be.
WAITS, NEVER = "Dependency", "DependencyNeverSatisfied"
#: The short forms of states in squeue(1).
SHORT_STATES = {
    "PENDING": "PD",
    "RUNNING": "R",
    "COMPLETING": "CG",
    "COMPLETED": "CD",
    "FAILED": "F",
    "CANCELLED": "CA",
    "TIMEOUT": "TO",
    "NODE_FAIL": "NF",
    "OUT_OF_MEMORY": "OOM",
}
# Slurm's words for reasons of the fake scheduler why a job is pending; other reasons are printed as they are
_REASONS = {"resources": "Resources", "held": "JobHeldUser", "begin": "BeginTime", "node": "NodeDown"}
_END_REASONS = {
    FakeState.TIMEOUT: "TimeLimit",
    FakeState.NODE_FAIL: "NodeDown",
    FakeState.OUT_OF_MEMORY: "OutOfMemory",
}
# slurm_errno.h: ESLURMD_SETUP_ENVIRONMENT_ERROR, which takes the place of a wait(2) status
_SETUP_ERROR = 4021
# src/common/slurm_protocol_defs.h: SIG_OOM
_OUT_OF_MEMORY = 253
#: The attributes with the own number of an array element, and with those of a heterogeneous job's components.
NUMBER, COMPONENT_NUMBERS = "number", "numbers"
#: The attribute of a heterogeneous job with the nodes of its components.
COMPONENT_NODES = "placed"


def job_number(job: FakeJob) -> str:
    """Return the number of a job, which for an element differs from the shown id."""
    return str(job.attributes.get(NUMBER) or job.number)


class Line(NamedTuple):
    """The job, array or component that one line of a listing describes."""

    job: FakeJob
    #: Its name in the line.
    displayed_id: str
    #: The index of the component, for a heterogeneous job.
    component: int = 0

    @property
    def number(self) -> str:
        """The number of the job, element or component."""
        numbers = self.job.attributes.get(COMPONENT_NUMBERS)
        return str(numbers[self.component]) if numbers else job_number(self.job)

    @property
    def state(self) -> str:
        """The state in the queue."""
        if self.job.ending is not None:
            return "COMPLETING"
        return "PENDING" if self.job.state is FakeState.HELD else self.job.state.name

    @property
    def accounted_state(self) -> str:
        """The state in the accounting, where a completing job is still running."""
        own = {"CANCELLED": f"CANCELLED by {os.getuid()}", "COMPLETING": "RUNNING"}
        return own.get(self.state, self.state)

    @property
    def reason(self) -> str:
        """The reason why the job is pending, or ended as it did."""
        job = self.job
        if job.state is FakeState.PENDING:
            return _REASONS.get(job.why, job.why) or "None"
        if job.state is FakeState.HELD:
            return "JobHeldUser"
        if job.state is FakeState.FAILED:
            return "NonZeroExitCode" if job.exit_code else "JobLaunchFailure"
        return _END_REASONS.get(job.state, NEVER if job.why == NEVER else "None")

    @property
    def status(self) -> int:
        """A wait(2) status, or one of Slurm's error numbers."""
        job = self.job
        if self._could_not_start:
            return _SETUP_ERROR
        if job.state is FakeState.OUT_OF_MEMORY:
            return _OUT_OF_MEMORY
        if not job.state.final or job.state is FakeState.NODE_FAIL:
            return 0
        return job.signal if job.signal is not None else (job.exit_code or 0) << 8

    @property
    def exit_code(self) -> str:
        """The exit code as sacct before Slurm 25.11 prints it: minus 128 if above 127."""
        code, number = self.status >> 8 & 0xFF, self.status & 0x7F
        return f"0:{number}" if number else f"{code % 128}:0"

    @property
    def nodes(self) -> str:
        """The nodes of the job or component in Slurm's notation; "" if it has none."""
        if self.job.started is None and not self._could_not_start:
            return ""
        if COMPONENT_NODES in self.job.attributes:
            return str(self.job.attributes[COMPONENT_NODES][self.component])
        return node_list(node_names(self.job.attributes.get("nodes", 1)))

    @property
    def nodes_or_reason(self) -> str:
        """The nodes, or the reason of a job that has none."""
        is_pending = self.job.state in {FakeState.PENDING, FakeState.HELD}
        return f"({self.reason})" if is_pending or not self.nodes else self.nodes

    @property
    def _could_not_start(self) -> bool:
        return self.job.state is FakeState.FAILED and self.job.failed_to_start


def format_time(seconds: float | None, invocation: Invocation, unknown: str) -> str:
    """Return a time as a command of this invocation prints it."""
    if seconds is None:
        return unknown
    return invocation.local_time(seconds).replace(tzinfo=None).isoformat()


def format_elapsed(job: FakeJob, now: float) -> str:
    """Return the time for which a job has run."""
    return _format_duration(
        0 if job.started is None else int((now if job.ended is None else job.ended) - job.started)
    )


def format_limit(job: FakeJob) -> str:
    """Return the walltime of a job."""
    return "UNLIMITED" if job.time_limit is None else _format_duration(int(job.time_limit))


def _format_duration(seconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"

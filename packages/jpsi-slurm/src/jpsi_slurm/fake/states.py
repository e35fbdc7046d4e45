"""Slurm's words for jobs of the fake batch system, as a line of a listing has them.

Tests and `jpsi fake` run jobs on the fake, without a real Slurm.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from jpsi_testing.fake import FakeJob, FakeState, Invocation

from .nodes import node_list, node_names

#: The reason codes of jobs whose dependency is not satisfied yet, or never will be.
WAITS, NEVER = "Dependency", "DependencyNeverSatisfied"
#: The short forms of states in squeue(1), in the order in which it lists them.
SHORT_STATES = {
    "PENDING": "PD",
    "RUNNING": "R",
    "COMPLETED": "CD",
    "CANCELLED": "CA",
    "FAILED": "F",
    "TIMEOUT": "TO",
    "NODE_FAIL": "NF",
    "OUT_OF_MEMORY": "OOM",
    "COMPLETING": "CG",
}
# Slurm's words for reasons of the fake scheduler why a job is pending; other reasons are printed as they are
_REASONS = {"resources": "Resources", "held": "JobHeldUser", "begin": "BeginTime", "node": "NodeDown"}
_END_REASONS = {
    FakeState.TIMEOUT: "TimeLimit",
    FakeState.NODE_FAIL: "NodeDown",
    FakeState.OUT_OF_MEMORY: "OutOfMemory",
}
# src/squeue/print.c, _print_job_reason_list
_WITH_REASON = frozenset({"PENDING", "TIMEOUT", "OUT_OF_MEMORY", "FAILED"})
# slurm_errno.h: ESLURMD_SETUP_ENVIRONMENT_ERROR, which takes the place of a wait(2) status
_SETUP_ERROR = 4021
# src/common/slurm_protocol_defs.h: SIG_OOM
_OUT_OF_MEMORY = 253
#: The attributes with the own number of an array element, and with those of a heterogeneous job's components.
NUMBER, COMPONENT_NUMBERS = "number", "numbers"
#: The attribute of a heterogeneous job with the nodes of its components.
COMPONENT_NODES = "placed"
#: The attribute of a job with the names of its nodes, if they are not those of the fake cluster.
HOSTS = "hosts"


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
        if HOSTS in self.job.attributes:
            return ",".join(self.job.attributes[HOSTS])
        return node_list(node_names(self.job.attributes.get("nodes", 1)))

    def option(self, name: str, default: str = "(null)") -> str:
        """Return the value of an option that the job was submitted with."""
        return str(self.job.attributes.get("options", {}).get(name) or default)

    @property
    def cpus(self) -> int:
        """The number of processors: those of all tasks."""
        return self.job.slots * int(self.option("cpus-per-task", "1"))

    @property
    def nodes_or_reason(self) -> str:
        """The nodes, or the reason of a job that has none or did not end well; squeue(1), %R."""
        return f"({self.reason})" if self.state in _WITH_REASON or not self.nodes else self.nodes

    @property
    def _could_not_start(self) -> bool:
        return self.job.state is FakeState.FAILED and self.job.failed_to_start


_PATTERN = re.compile(r"%(?P<width>[0-9]*)(?P<letter>[A-Za-z%])")


def expand_pattern(path: str, values: Mapping[str, str]) -> str:
    """Return a path whose patterns are replaced by their values; sbatch(1), FILENAME PATTERN.

    >>> expand_pattern("out/%x-%4j.%%", {"x": "heat", "j": "17"})
    'out/heat-0017.%'
    """
    if "\\" in path:
        return path.replace("\\", "")

    def replace(match: re.Match[str]) -> str:
        letter = match["letter"]
        value = "%" if letter == "%" else values.get(letter, match[0])
        # at most 10 digits
        return value.zfill(min(int(match["width"] or 0), 10)) if value.isdecimal() else value

    return _PATTERN.sub(replace, path)


def format_time(seconds: float | None, invocation: Invocation, unknown: str) -> str:
    """Return a time as a command of this invocation prints it."""
    if seconds is None:
        return unknown
    return invocation.local_time(seconds).replace(tzinfo=None).isoformat()


def elapsed_seconds(job: FakeJob, now: float) -> int:
    """Return the seconds for which a job has run."""
    return 0 if job.started is None else int((now if job.ended is None else job.ended) - job.started)


def format_elapsed(job: FakeJob, now: float) -> str:
    """Return the time for which a job has run, as squeue prints it."""
    return _format_duration(elapsed_seconds(job, now))


def format_left(job: FakeJob, now: float) -> str:
    """Return the time that is left of a job's walltime, as squeue prints it."""
    if job.time_limit is None:
        return "UNLIMITED"
    return _format_duration(max(0, int(job.time_limit) - elapsed_seconds(job, now)))


def format_clock(seconds: float | None) -> str:
    """Return a duration as sacct and scontrol print it; None is no limit.

    >>> format_clock(62), format_clock(90000), format_clock(None)
    ('00:01:02', '1-01:00:00', 'UNLIMITED')
    """
    if seconds is None:
        return "UNLIMITED"
    days, rest = divmod(int(seconds), 86400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def format_limit(job: FakeJob) -> str:
    """Return the walltime of a job."""
    return "UNLIMITED" if job.time_limit is None else _format_duration(int(job.time_limit))


def _format_duration(seconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"

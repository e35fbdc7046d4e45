"""Job specs: the specs with which the entries of a plan are submitted. Pure."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import attrs

from jpsi import Dependency, Job, JobAttributes, JobSpec, escape

from ..document import ONE_SLOT, as_resources
from ..planning import Entry, Kind
from .staging import staging_command


def inside_command(path: Path, entry_id: str) -> tuple[str, ...]:
    """Return the command that runs the inside of an allocation, on its first node."""
    return (sys.executable, "-m", "jpsi_jobspec.inside", str(path), entry_id)


def submitted_spec(entry: Entry) -> JobSpec | None:
    """Return the spec of the first replica of an entry without dependencies; None if it needs no job.

    In the command of a group, RUN stands for the folder of the run.
    """
    if entry.kind is Kind.ALLOCATION:
        return job_spec(attrs.evolve(entry, command=inside_command(Path("RUN"), entry.id)))
    return job_spec(entry) if entry.command else None


def job_spec(
    entry: Entry,
    replica: int = 1,
    after: list[Dependency | Job] | None = None,
    staging: Path = Path("RUN/staged"),
) -> JobSpec:
    """Return the spec of one replica of an entry.

    Without a duration in the document or the plan, the batch system chooses the walltime, not jpsi; without a
    directory, the job runs in the user's home. The job gets the words of the command as the document has
    them.

    Args:
        entry: of a plan, with a command.
        replica: its number, from 1.
        after: dependencies for the batch system.
        staging: the folder of the run with the archives of staged files.
    """
    duration = entry.attributes.duration
    environment: dict[str, str | None] = {
        "JPSI_TASK": entry.task or entry.id,
        "JPSI_REPLICA": str(replica),
        "JPSI_REPLICAS": str(entry.replicas),
    }
    attributes = JobAttributes(
        duration=timedelta(0) if duration is None else duration,
        custom_attributes={**entry.constraints, **entry.attributes.options} or None,
    )
    if after:
        attributes.after = [*after]
    is_process = entry.staged and entry.kind is not Kind.ALLOCATION
    command = staging_command(entry.staged, staging, entry.command) if is_process else entry.command
    return JobSpec(
        command[0],
        [escape(word) for word in command[1:]],
        name=entry.id.replace("/", "."),
        directory=Path(entry.attributes.cwd or "~"),
        environment={**environment, **entry.attributes.environment},
        resources=as_resources(entry.shape or ONE_SLOT),
        # one process, on the first node of an allocation, starts all that runs inside
        launcher="single" if entry.kind is Kind.ALLOCATION else None,
        attributes=attributes,
    )

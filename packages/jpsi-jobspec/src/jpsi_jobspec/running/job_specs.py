"""Job specs: what an entry of a plan is submitted as. Pure."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import attrs

from jpsi import Dependency, Job, JobAttributes, JobSpec, escape

from ..document import ONE_SLOT, as_resources
from ..planning import Entry, Kind
from .staging import with_staged


def inside_command(path: Path, entry_id: str) -> tuple[str, ...]:
    """The words that run what is inside of an allocation, on its first node."""
    return (sys.executable, "-m", "jpsi_jobspec.inside", str(path), entry_id)


def submitted_spec(entry: Entry) -> JobSpec | None:
    """What is submitted for the first replica of an entry, if nothing has to be waited for; None is nothing.

    The folder of the run that a group runs the inside of is called RUN.
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
    """What one replica of an entry runs, and with what.

    A time that was not given, and that no plan has put in, is the batch system's to choose, not jpsi's;
    without a directory it is the user's home. Words of a command arrive as they were written.

    Args:
        entry: of a plan, with a command.
        replica: which one, from 1.
        after: what the batch system has it wait for.
        staging: the folder of the run with the archives of what is staged.
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
    command = with_staged(entry.staged, staging, entry.command) if is_process else entry.command
    return JobSpec(
        command[0],
        [escape(word) for word in command[1:]],
        name=entry.id.replace("/", "."),
        directory=Path(entry.attributes.cwd or "~"),
        environment={**environment, **entry.attributes.environment},
        resources=as_resources(entry.shape or ONE_SLOT),
        # what runs inside of an allocation is started by one process, on its first node
        launcher="single" if entry.kind is Kind.ALLOCATION else None,
        attributes=attributes,
    )

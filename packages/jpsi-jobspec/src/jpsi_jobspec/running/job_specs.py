"""Makes the job specs of the entries of a plan, and checks that an executor accepts them.

The starter makes jobs of them. A run begins only if all of them are accepted.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from datetime import timedelta
from pathlib import Path

import attrs

from jpsi import (
    Container,
    Dependency,
    InvalidJobException,
    Job,
    JobAttributes,
    JobExecutor,
    JobSpec,
    SubmitException,
    escape,
)
from jpsi_engine import QueueLimits, describe_ignored, describe_rounding

from ..document import ONE_SLOT, as_resources
from ..planning import Entry, Kind, Plan
from .staging import staging_command

# The number of entries with the same problem that a message names.
_MAX_NAMES = 3


def group_command(path: Path, entry_id: str) -> tuple[str, ...]:
    """Return the command of a group's job, which runs on the first node of its allocation."""
    return (sys.executable, "-m", "jpsi_jobspec.group_supervisor", str(path), entry_id)


def submitted_spec(entry: Entry) -> JobSpec | None:
    """Return the spec of the first replica of an entry without dependencies; None if it needs no job.

    In the command of a group, RUN stands for the folder of the run.
    """
    if entry.kind is Kind.ALLOCATION:
        return job_spec(attrs.evolve(entry, command=group_command(Path("RUN"), entry.id)))
    return job_spec(entry) if entry.command else None


def job_spec(
    entry: Entry,
    replica: int = 1,
    after: list[Dependency | Job] | None = None,
    staging: Path = Path("RUN/staged"),
) -> JobSpec:
    """Return the spec of one replica of an entry.

    Without a duration in the document or the plan, the batch system chooses the walltime, not jpsi. The job
    gets the words of the command as the document has them.

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
        after=[*after] if after else None,
        custom_attributes={**entry.constraints, **entry.attributes.options} or None,
        **entry.attributes.of_job().job,
    )
    container, setup = (entry.attributes.job.get(it) for it in ("container", "environment_setup"))
    is_process = entry.staged and entry.kind is not Kind.ALLOCATION
    command = staging_command(entry.staged, staging, entry.command) if is_process else entry.command
    return JobSpec(
        command[0],
        [escape(word) for word in command[1:]],
        name=entry.id.replace("/", "."),
        directory=Path(entry.attributes.cwd or "~"),
        environment={**environment, **entry.attributes.environment},
        environment_setup=setup,
        container=None if container is None else Container(**container),
        resources=as_resources(entry.shape or ONE_SLOT),
        # one process, on the first node of an allocation, starts all that runs inside
        launcher="single" if entry.kind is Kind.ALLOCATION else None,
        attributes=attributes,
    )


@attrs.frozen(slots=True)
class Misfits:
    """Sentences about entries of a plan that do not fit the executor."""

    #: Why no queue can ever start some.
    excess: Sequence[str]
    #: The queues of others that the batch system does not list, and may have all the same; time limits that
    #: it rounds up; requests without an effect.
    warnings: Sequence[str]


def check_jobs(plan: Plan) -> Sequence[str]:
    """Return warnings about the jobs of a plan; raise if one cannot be submitted, or can never start.

    Entries that differ only in the arguments of their commands are checked once.

    Raises:
        InvalidJobException: some jobs can never run on the target; the error names all reasons and entries.
        JpsiError: there is no such executor.
    """
    known: dict[Hashable, Sequence[str]] = {}
    found: dict[str, list[str]] = {}
    with JobExecutor(plan.target) as executor:
        for entry in plan.entries:
            key = _problem_key(entry)
            if key not in known:
                known[key] = _find_problems(entry, executor)
            for problem in known[key]:
                found.setdefault(problem, []).append(entry.id)
        problems = [f"{render_names(ids)}: {problem}" for problem, ids in found.items()]
        misfits = find_misfits(plan, executor)
    problems += misfits.excess
    hidden = [it.id for top in plan.entries for it in top.walk() if it.command and _hides_staged(it)]
    if hidden:
        problems.append(f"{render_names(hidden)}: a container does not see the files that steps stage")
    if problems:
        raise InvalidJobException.of(plan.source, problems)
    return [f"{plan.source}: {it}" for it in misfits.warnings]


def find_misfits(plan: Plan, executor: JobExecutor) -> Misfits:
    """Return which entries of a plan do not fit the executor; a failed query excludes nothing."""
    named = [(it.id, submitted_spec(it)) for it in plan.entries]
    specs = [it for _, it in named]
    limits, unit = QueueLimits(executor), executor.system.capabilities.walltime_unit
    changed = (describe_rounding(executor.name, unit, specs), describe_ignored(executor.name, specs))
    whys = {it.id: it.why_duration for it in plan.entries}
    excess: dict[tuple[str, str], list[str]] = {}
    for found, ids in limits.find_excess(named).items():
        for entry_id in ids:
            why = whys[entry_id] if found.request == "time" else ""
            excess.setdefault((found.sentence, why), []).append(entry_id)
    return Misfits(
        [f"{render_names(ids)}: {'; '.join(filter(None, it))}" for it, ids in excess.items()],
        [
            *(f"{render_names(ids)}: {it}" for it, ids in limits.find_unlisted(named).items()),
            *filter(None, changed),
        ],
    )


def _hides_staged(entry: Entry) -> bool:
    return bool(entry.staged) and "container" in entry.attributes.job


def _problem_key(entry: Entry) -> Hashable:
    """Return a key that is the same for entries with the same problems."""
    attributes = entry.attributes
    options = {**entry.constraints, **attributes.options}
    texts = (repr(attributes.environment), repr(options), repr(attributes.job))
    fields = (attributes.duration, attributes.cwd, *texts)
    return (entry.kind, entry.shape, entry.command[:1], bool(entry.staged), *fields)


def _find_problems(entry: Entry, executor: JobExecutor) -> Sequence[str]:
    spec = submitted_spec(entry)
    try:
        if spec is not None:
            executor.preview(Job(spec))
    except InvalidJobException as e:
        # documents have no such key
        return [it.replace(", or set create_directory", "") for it in e.problems]
    except SubmitException:
        # the executor has no preview, or does not answer now, which is no problem of the job
        return ()
    return ()


def render_names(ids: Sequence[str]) -> str:
    """Return the names of entries, only the first ones of many."""
    more = len(ids) - _MAX_NAMES
    return ", ".join(ids[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")

"""Checks, before the first submission, that the executor accepts every job of a plan."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from jpsi import InvalidJobException, Job, JobExecutor, SubmitException

from ..planning import Entry, Plan
from .job_specs import submitted_spec

# The number of entries with the same problem that a message names.
_MAX_NAMES = 3


def check_jobs(plan: Plan) -> None:
    """Raise if a job of a plan cannot be submitted.

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
    if found:
        raise InvalidJobException.of(
            plan.source, [f"{_render_names(ids)}: {problem}" for problem, ids in found.items()]
        )


def _problem_key(entry: Entry) -> Hashable:
    """Return a key that is the same for entries with the same problems."""
    attributes = entry.attributes
    options = {**entry.constraints, **attributes.options}
    fields = (attributes.duration, attributes.cwd, repr(attributes.environment), repr(options))
    return (entry.kind, entry.shape, entry.command[:1], bool(entry.staged), *fields)


def _find_problems(entry: Entry, executor: JobExecutor) -> Sequence[str]:
    spec = submitted_spec(entry)
    if spec is None:
        return ()
    try:
        executor.preview(Job(spec))
    except InvalidJobException as e:
        # documents have no such key
        return [it.replace(", or set create_directory", "") for it in e.problems]
    except SubmitException:
        # the executor has no preview, or does not answer now, which is no problem of the job
        return ()
    return ()


def _render_names(ids: Sequence[str]) -> str:
    """Return the names of entries, only the first ones of many."""
    more = len(ids) - _MAX_NAMES
    return ", ".join(ids[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")

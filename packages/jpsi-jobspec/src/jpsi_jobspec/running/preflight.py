"""Asks about every job of a plan, before the first one is submitted, whether it can run where it is to."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from jpsi import InvalidJobException, Job, JobExecutor, SubmitException

from ..planning import Entry, Plan
from .job_specs import submitted_spec

# How many of those with the same problem are named.
_NAMED = 3


def check_jobs(plan: Plan) -> None:
    """See that every job of a plan can be submitted.

    It is asked once about jobs that differ in the words of their commands alone.

    Raises:
        InvalidJobException: some can never run there; it names every reason, with the entries.
        JpsiError: there is no such executor.
    """
    known: dict[Hashable, Sequence[str]] = {}
    found: dict[str, list[str]] = {}
    with JobExecutor(plan.target) as executor:
        for entry in plan.entries:
            key = _key(entry)
            if key not in known:
                known[key] = _problems(entry, executor)
            for problem in known[key]:
                found.setdefault(problem, []).append(entry.id)
    if found:
        raise InvalidJobException.of(
            plan.source, [f"{_named(ids)}: {problem}" for problem, ids in found.items()]
        )


def _key(entry: Entry) -> Hashable:
    """What two entries have in common about which the same would be said."""
    attributes = entry.attributes
    options = {**entry.constraints, **attributes.options}
    given = (attributes.duration, attributes.cwd, repr(attributes.environment), repr(options))
    return (entry.kind, entry.shape, entry.command[:1], bool(entry.staged), *given)


def _problems(entry: Entry, executor: JobExecutor) -> Sequence[str]:
    spec = submitted_spec(entry)
    if spec is None:
        return ()
    try:
        executor.preview(Job(spec))
    except InvalidJobException as e:
        # which is no word of documents
        return [it.replace(", or set create_directory", "") for it in e.problems]
    except SubmitException:
        # it tells no more than that, or does not answer now, which is no problem of the job
        return ()
    return ()


def _named(ids: Sequence[str]) -> str:
    """The entries, of many the first."""
    more = len(ids) - _NAMED
    return ", ".join(ids[:_NAMED]) + (f" and {more} more" if more > 0 else "")

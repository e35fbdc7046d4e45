"""Queries jobs as the queue of their batch system shows them now, and what they used, for people.

`job_store.shown` calls it for `jpsi doctor` and the like, `job_store.account` for `jpsi usage`. No status of
a job depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

# Listing jobs imports this module, and needs none of what these import on first use.
from jpsi import plugin
from jpsi_engine import scheduler, verdict

if TYPE_CHECKING:
    from datetime import datetime

    from jpsi import System
    from jpsi.plugin import ExecutorHooks, Observation, Site

#: The names of the figures about use in the metadata of a status.
FIGURES = ("used.cpu", "used.memory", "used.process_memory")
# The number of jobs in one command if the plugin sets no limit
_JOBS = 200


@attrs.frozen(slots=True, kw_only=True)
class ShownJob:
    """A job that its batch system, or the machine whose process it is, shows at this moment."""

    native_id: str
    #: The batch system's own name of its state.
    native_state: str
    #: The shell command that ends it; None if one command is not enough.
    cancel_command: str | None = None


def query_shown_jobs(system: System, wanted: Mapping[str, tuple[str, str | None]]) -> Mapping[str, ShownJob]:
    """Return those jobs that the queue shows and that have not ended, by their ids.

    A job whose native id belongs to another job by now is left out.

    Args:
        system: the batch system.
        wanted: the tag of each job, and its native id if it is known.

    Raises:
        SubmitException: the batch system does not answer.
        TransportError: the command could not be run.
    """
    hooks, site, limit = system.hooks, system.site(), system.capabilities.ids_per_query
    ids, size = list(wanted), limit or _JOBS
    found: dict[str, ShownJob] = {}
    for some in (ids[begin : begin + size] for begin in range(0, len(ids), size)):
        unnamed = [wanted[job_id][0] for job_id in some if wanted[job_id][1] is None]
        by_tag = _find(system, unnamed, site) if unnamed else {}
        names = {job_id: wanted[job_id][1] or by_tag.get(wanted[job_id][0]) for job_id in some}
        native_ids = list(dict.fromkeys(filter(None, names.values())))
        if not native_ids:
            continue
        command = hooks.query(native_ids=None if limit is None else native_ids, site=site)
        seen = hooks.parse_status(result=system.query(command), native_ids=native_ids, site=site)
        for job_id, native_id in names.items():
            it = seen.get(native_id or "")
            if native_id and it and it.exists and not it.final and it.tag in {None, wanted[job_id][0]}:
                found[job_id] = _shown(native_id, it, hooks, site)
    return found


def _shown(native_id: str, it: Observation, hooks: ExecutorHooks, site: Site) -> ShownJob:
    command = hooks.cancel(native_ids=[native_id], site=site, seen={native_id: it})
    text = None if command.stdin is not None else plugin.line(*command.argv)
    return ShownJob(native_id=native_id, native_state=it.native_state, cancel_command=text)


@attrs.frozen(slots=True)
class EndedJob:
    """A job that has ended, for a query of the accounting."""

    native_id: str
    tag: str | None
    #: When it began, by its own marker; None if there is none.
    began: datetime | None


def query_usage(system: System, wanted: Mapping[str, EndedJob]) -> Mapping[str, Mapping[str, float]] | None:
    """Return what the accounting says that jobs have used, by their ids; None if there is no accounting.

    A job of which it does not say yet that it has ended is left out, and one whose native id belongs to
    another job by now.

    Raises:
        SubmitException: the batch system does not answer.
        TransportError: the command could not be run.
    """
    hooks, site = system.hooks, _probed(system)
    offered = hooks.capabilities(site=site)
    named = dict.fromkeys(job.native_id for job in wanted.values())
    native_ids = [it for it in named if _is_id(it, hooks, site)]
    arrays = hooks.arrays_of(native_ids=native_ids, site=site) if offered.arrays and native_ids else {}
    groups = scheduler.split_by_array(native_ids, arrays, scheduler.ids_per_accounting(offered))
    seen = scheduler.query_accounting(hooks, site, groups, system.query)
    if isinstance(seen, str):
        return None
    return {
        job_id: {name: it for name in FIGURES if (it := record.details.get(name))}
        for job_id, job in wanted.items()
        if (record := seen.get(job.native_id)) is not None
        and record.exists
        and record.final
        and verdict.owner_of(record, job.tag, began=job.began) is not verdict.Owner.FOREIGN
    }


def _is_id(text: str, hooks: ExecutorHooks, site: Site) -> bool:
    # an invalid id could make the whole query fail, or select other jobs
    try:
        return bool(hooks.canonical_id(native_id=text, site=site))
    except ValueError:
        return False


def _probed(system: System) -> Site:
    """Return the site with what its probe finds, such as what the accounting measures."""
    hooks, site = system.hooks, system.site()
    command = hooks.probe(site=site)
    if site.offers or isinstance(command, plugin.NotOffered):
        return site
    return attrs.evolve(site, offers=hooks.parse_probe(result=system.query(command), site=site))


def _find(system: System, tags: Sequence[str], site: Site) -> Mapping[str, str]:
    command = system.hooks.find(tags=tags, site=site)
    if isinstance(command, plugin.NotOffered):
        return {}
    return system.hooks.parse_find(result=system.query(command), tags=tags, site=site)

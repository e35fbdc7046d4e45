"""Finds native ids that a batch system has reused for other jobs after jobs of jpsi ended."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from jpsi.plugin import JpsiError, Observation
from jpsi_engine.scheduler.backend import Backend
from jpsi_engine.scheduler.native_ids import intent_tag
from jpsi_engine.spool import Intent, Spool
from jpsi_engine.verdict import Marker

log = logging.getLogger(__name__)


def reused_native_ids(backend: Backend, spool: Spool, owners: Mapping[str, Intent]) -> frozenset[str]:
    """Return the native ids that now belong to other jobs in the batch system than their owners in the spool.

    Only an owner that has left an exit marker can have lost its id, and only then is the batch system
    queried: does it have an unfinished job with that id, and does that job lack the owner's tag? A job with
    the tag is the owner, which is being cleaned up or runs again. In doubt, for example if the batch system
    does not answer, the id is still the owner's.

    Args:
        backend: the batch system.
        spool: the spool that holds the owners.
        owners: the last attempts of jobs, by native id.

    Raises:
        OSError: the spool cannot be read.
    """
    job_ids = {owner.job_id for owner in owners.values()}
    # the markers stay in place for the processes that follow these jobs
    ended_ids = {marker.job_id for marker in spool.news(job_ids) if _has_ended([marker])}
    ended = {
        native_id: owner
        for native_id, owner in owners.items()
        if owner.job_id in ended_ids or spool.is_final(owner.job_id, _has_ended)
    }
    if not ended:
        return frozenset()
    try:
        # the tags come first: a job that the batch system drops after that is not in the states
        reused = _ids_without_tag(backend, ended)
        states = backend.query_states(reused) if reused else {}
    except JpsiError as e:
        log.info("%s did not say whether it has reused native ids: %s", backend.display_name, e)
        return frozenset()
    return frozenset(native_id for native_id in reused if _is_unfinished(states.get(native_id)))


def _ids_without_tag(backend: Backend, owners: Mapping[str, Intent]) -> list[str]:
    """Return the native ids whose jobs do not carry the owner's tag; none if tags cannot be queried."""
    tags = {native_id: intent_tag(owner) for native_id, owner in owners.items()}
    found = backend.find_by_tags(sorted(set(tags.values())))
    if found is None:
        return []
    arrays = backend.arrays_of(list(owners))
    return [it for it, carried in tags.items() if found.get(carried) not in {it, arrays.get(it, it)}]


def _has_ended(markers: Iterable[Marker]) -> bool:
    return any(marker.kind == "exit" for marker in markers)


def _is_unfinished(states: Observation | None) -> bool:
    return states is not None and states.state is not None and not states.final

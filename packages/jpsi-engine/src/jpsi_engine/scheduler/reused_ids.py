"""Native ids that a batch system has given to other jobs since the jobs of jpsi's ended that had them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from jpsi.plugin import JpsiError, Observation
from jpsi_engine.scheduler.backend import Backend
from jpsi_engine.scheduler.native_ids import intent_tag
from jpsi_engine.spool import Intent, Spool
from jpsi_engine.verdict import Marker

log = logging.getLogger(__name__)


def given_anew(backend: Backend, spool: Spool, owners: Mapping[str, Intent]) -> frozenset[str]:
    """Those of these native ids by which the batch system now has other jobs than their owners in the spool.

    Only if an owner has left how it ended can that be, and only then is anybody asked: whether the batch
    system has a job of that id that has not ended, and not by the owner's tag, as one that it has not let go
    of yet, or runs again. In doubt, as where nobody answers, it is the owner.

    Args:
        backend: the batch system.
        spool: where the owners are.
        owners: the last attempts of jobs, by native id.

    Raises:
        OSError: the spool cannot be read.
    """
    job_ids = {owner.job_id for owner in owners.values()}
    # left where they are, for those who follow these jobs
    new = {marker.job_id for marker in spool.news(job_ids) if _has_ended([marker])}
    ended = {
        native_id: owner
        for native_id, owner in owners.items()
        if owner.job_id in new or spool.is_final(owner.job_id, _has_ended)
    }
    if not ended:
        return frozenset()
    try:
        # first: what the batch system lets go of meanwhile is not mentioned then
        left = _without(backend, ended)
        seen = backend.states(left) if left else {}
    except JpsiError as e:
        log.info("%s does not tell whether native ids have begun anew: %s", backend.place, e)
        return frozenset()
    return frozenset(native_id for native_id in left if _is_living(seen.get(native_id)))


def _without(backend: Backend, owners: Mapping[str, Intent]) -> list[str]:
    """The native ids that no job has which carries its owner's tag; none if nobody can be asked for tags."""
    tags = {native_id: intent_tag(owner) for native_id, owner in owners.items()}
    found = backend.find(sorted(set(tags.values())))
    if found is None:
        return []
    arrays = backend.arrays_of(list(owners))
    return [it for it, carried in tags.items() if found.get(carried) not in {it, arrays.get(it, it)}]


def _has_ended(markers: Iterable[Marker]) -> bool:
    return any(marker.kind == "exit" for marker in markers)


def _is_living(seen: Observation | None) -> bool:
    return seen is not None and seen.state is not None and not seen.final

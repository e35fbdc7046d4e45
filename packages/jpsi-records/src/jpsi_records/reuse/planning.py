"""What would come of a wish, without anything being written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs
from sqlalchemy import Connection

from ..files import digest_of
from ..model import Execution, Request, Reuse, Wish, canonical, write_wish
from ..store import executions
from .matching import Evidence, NearMiss, choose, near_misses
from .resolver import Resolution

# How many of the newest executions of the same program are compared.
_COMPARED = 50
# How many of those that come closest are told.
_TOLD = 5


@attrs.frozen(slots=True, kw_only=True)
class Plan:
    """How a wish would be satisfied at the time of asking."""

    wish: Wish
    resolution: Resolution
    #: The execution that satisfies it; None if a new one would run, or nothing.
    hit: Execution | None
    #: What came closest, if nothing satisfies it.
    near_misses: Sequence[NearMiss] = ()
    #: What a new execution may lack here, a sentence each.
    warnings: Sequence[str] = ()

    @property
    def runs(self) -> bool:
        """Whether a new execution would be made."""
        return self.hit is None and self.wish.reuse is not Reuse.ONLY

    @property
    def id(self) -> str:
        """The same as long as the same would come of the same wish.

        An execution that goes on from running to its end is the same; of a new one, what it would compute.
        """
        what = self.resolution.wanted if self.hit is None else self.hit.id
        told = canonical([write_wish(self.wish), self.hit is None, what])
        return digest_of(told.encode()).removeprefix("sha256:")[:16]


def plan(
    connection: Connection, wish: Wish, resolution: Resolution, now: datetime, evidence: Evidence
) -> Plan:
    """What would come of a wish now; reads, and does not write."""
    hit = match(connection, wish, resolution, now, evidence)
    if hit is not None or wish.reuse is Reuse.NEVER:
        return Plan(wish=wish, resolution=resolution, hit=hit)
    wanted = resolution.wanted
    close = executions.of_fingerprints(connection, resolution.fingerprints)
    known = {it.id for it in close}
    close += [it for it in executions.of_program(connection, wanted, _COMPARED) if it.id not in known]
    nearest = near_misses(wanted, close, wish, now, evidence)
    return Plan(wish=wish, resolution=resolution, hit=None, near_misses=nearest[:_TOLD])


def passed_over(
    connection: Connection, request: Request, now: datetime, evidence: Evidence
) -> Sequence[NearMiss]:
    """What was there before the execution of a request was made, and comes closest to it."""
    if request.execution is None:
        return ()
    execution = executions.get(connection, request.execution)
    others = executions.of_program(connection, execution.preimage, _COMPARED)
    earlier = [it for it in others if it.created_at < execution.created_at]
    return near_misses(execution.preimage, earlier, request.wish, now, evidence)[:_TOLD]


def match(
    connection: Connection, wish: Wish, resolution: Resolution, now: datetime, evidence: Evidence
) -> Execution | None:
    """The execution that satisfies a wish; None if there is none, or none is to be used."""
    if wish.reuse is Reuse.NEVER:
        return None
    return choose(executions.of_fingerprints(connection, resolution.fingerprints), wish, now, evidence)

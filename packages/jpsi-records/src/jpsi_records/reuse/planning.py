"""Plans: the result that a request would have, computed without writing anything."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs
from sqlalchemy import Connection

from ..files import digest_of
from ..model import Execution, Request, RequestSpec, Reuse, canonical, write_request_spec
from ..store import executions
from .matching import Evidence, NearMiss, choose, near_misses
from .resolver import Resolution

# The number of recent executions of the same program that are compared.
_COMPARED = 50
# The number of near misses in a plan.
_TOLD = 5


@attrs.frozen(slots=True, kw_only=True)
class Plan:
    """The way in which a request would be satisfied at the time of the preview."""

    spec: RequestSpec
    resolution: Resolution
    #: The execution that satisfies it; None if none does.
    hit: Execution | None
    #: The closest executions, if none satisfies it.
    near_misses: Sequence[NearMiss] = ()
    #: Warnings about a new execution on this machine, one sentence each.
    warnings: Sequence[str] = ()

    @property
    def runs(self) -> bool:
        """True if a new execution would be created."""
        return self.hit is None and self.spec.reuse is not Reuse.ONLY

    @property
    def id(self) -> str:
        """An id that stays the same while the same spec has the same result.

        An execution that goes on from running to its end is the same result; a new one is identified by its
        canonical key.
        """
        what = self.resolution.wanted if self.hit is None else self.hit.id
        told = canonical([write_request_spec(self.spec), self.hit is None, what])
        return digest_of(told.encode()).removeprefix("sha256:")[:16]


def plan(
    connection: Connection, spec: RequestSpec, resolution: Resolution, now: datetime, evidence: Evidence
) -> Plan:
    """Return the current plan for a request spec; this only reads."""
    hit = match(connection, spec, resolution, now, evidence)
    if hit is not None or spec.reuse is Reuse.NEVER:
        return Plan(spec=spec, resolution=resolution, hit=hit)
    wanted = resolution.wanted
    close = executions.of_fingerprints(connection, resolution.fingerprints)
    known = {it.id for it in close}
    close += [it for it in executions.of_program(connection, wanted, _COMPARED) if it.id not in known]
    nearest = near_misses(wanted, close, spec, now, evidence)
    return Plan(spec=spec, resolution=resolution, hit=None, near_misses=nearest[:_TOLD])


def passed_over(
    connection: Connection, request: Request, now: datetime, evidence: Evidence
) -> Sequence[NearMiss]:
    """Return the near misses among the executions that are older than that of a request."""
    if request.execution is None:
        return ()
    execution = executions.get(connection, request.execution)
    others = executions.of_program(connection, execution.preimage, _COMPARED)
    earlier = [it for it in others if it.created_at < execution.created_at]
    return near_misses(execution.preimage, earlier, request.spec, now, evidence)[:_TOLD]


def match(
    connection: Connection, spec: RequestSpec, resolution: Resolution, now: datetime, evidence: Evidence
) -> Execution | None:
    """Return the recorded execution that satisfies a request spec; None if none does or reuse is excluded."""
    if spec.reuse is Reuse.NEVER:
        return None
    return choose(executions.of_fingerprints(connection, resolution.fingerprints), spec, now, evidence)

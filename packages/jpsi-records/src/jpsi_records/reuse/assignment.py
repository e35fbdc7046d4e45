"""The choice of an execution for a committed request: reuse one, create one, or wait for predecessors."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import attrs
from sqlalchemy import Connection

from ..errors import ChangedError, NothingToReuseError, StateError
from ..model import (
    Execution,
    ExecutionState,
    Purity,
    Request,
    RequestSpec,
    RequestState,
    Reuse,
    new_id,
    unmet_filters,
    write_request_spec,
)
from ..store import executions, requests
from .matching import Evidence, objections
from .planning import Plan, match
from .resolver import Resolution


class Outlook(enum.Enum):
    """The state of a request's predecessors."""

    READY = "ready"
    WAITS = "waits"
    #: A predecessor has ended without success.
    FAILED = "dependency_failed"


def outlook(connection: Connection, spec: RequestSpec) -> Outlook:
    """Return the state of a request spec's predecessors: all have succeeded, one has failed, or one is open.

    Raises:
        NotFoundError: a predecessor does not exist.
    """
    found = {_outlook(connection, requests.get(connection, it)) for it in spec.predecessors}
    return next((it for it in (Outlook.FAILED, Outlook.WAITS) if it in found), Outlook.READY)


def _outlook(connection: Connection, request: Request) -> Outlook:
    if request.state is not RequestState.FINAL:
        return Outlook.WAITS
    if request.execution is None or request.outcome != "complete":
        return Outlook.FAILED
    execution = executions.get(connection, request.execution)
    is_well = execution.has_succeeded(request.spec.success_exit_codes)
    return Outlook.READY if is_well else Outlook.FAILED


def execution_for(  # noqa: PLR0913, PLR0917  the inputs of the decision
    connection: Connection,
    request: Request,
    resolution: Resolution,
    now: datetime,
    planned: str | None,
    evidence: Evidence,
) -> tuple[Execution, Mapping[str, Any]]:
    """Return the execution for a request, an old or a new one, and the data of the `assigned` event.

    Raises:
        StateError: the execution that a draft has no longer satisfies it.
        ChangedError: the result differs from the preview `planned`.
        NothingToReuseError: no execution matches, and the request excludes a new run.
    """
    if request.execution is not None:
        chosen = executions.get(connection, request.execution)
        if wrong := list(objections(chosen, request.spec, now, evidence)):
            msg = (
                f"execution {chosen.id}, which request {request.id} has, does not satisfy it any more: "
                f"{'; '.join(wrong)}; reset the request"
            )
            raise StateError(msg)
        return chosen, {"is_new": False}
    hit = find_existing(connection, request, resolution, now, planned, evidence)
    if hit is not None:
        return hit, {"is_new": False}
    return _new(connection, request, resolution, now, evidence)


def find_existing(  # noqa: PLR0913, PLR0917  as above
    connection: Connection,
    request: Request,
    resolution: Resolution,
    now: datetime,
    planned: str | None,
    evidence: Evidence,
) -> Execution | None:
    """Return the recorded execution that satisfies a request; None if it needs a new one.

    Raises the errors of `execution_for`.
    """
    hit = match(connection, request.spec, resolution, now, evidence)
    found = Plan(spec=request.spec, resolution=resolution, hit=hit)
    if planned not in {None, found.id}:
        what = "a new execution would run" if hit is None else f"execution {hit.id} satisfies it"
        msg = f"since the preview {planned} something has changed: now {what}; that is plan {found.id}"
        raise ChangedError(msg)
    if hit is None and request.spec.reuse is Reuse.ONLY:
        msg = f"nothing that is there satisfies request {request.id}, and it may not cause a run"
        raise NothingToReuseError(msg)
    return hit


def _new(
    connection: Connection, request: Request, resolution: Resolution, now: datetime, evidence: Evidence
) -> tuple[Execution, Mapping[str, Any]]:
    spec = request.spec
    new = _execution(spec, resolution, now)
    for it in unmet_filters(spec.filters, new):
        msg = f"nothing that is there satisfies request {request.id}, and a new execution would not: {it}"
        raise NothingToReuseError(msg)
    same = executions.of_fingerprints(connection, resolution.fingerprints)
    refused = {it.id: list(objections(it, spec, now, evidence)) for it in same}
    # An execution that does not satisfy this request and has not ended keeps its fingerprint: do not join it.
    is_joined = not any(refused[it.id] for it in same if not it.state.ended)
    is_shared = spec.reuse is not Reuse.NEVER and spec.computation.purity is not Purity.OFF and is_joined
    return executions.add(connection, new, is_shared=is_shared), {"is_new": True, "refused": refused}


def _execution(spec: RequestSpec, resolution: Resolution, now: datetime) -> Execution:
    return Execution(
        id=new_id(now),
        fingerprint=resolution.fingerprints[0],
        preimage=resolution.wanted,
        state=ExecutionState.QUEUED,
        recorded=spec.recorded,
        placement=write_request_spec(attrs.evolve(spec, placement=spec.requested)).get("placement", {}),
        attempts=spec.attempts,
        created_at=now,
    )


def with_chosen_execution(spec: RequestSpec, execution_id: str) -> RequestSpec:
    """Return the request spec, restricted to one execution."""
    chosen = ("id", "=", execution_id)
    return attrs.evolve(spec, reuse=Reuse.ONLY, filters=(*spec.filters, chosen))

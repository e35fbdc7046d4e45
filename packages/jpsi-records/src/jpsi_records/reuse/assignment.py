"""Which execution a request gets when it is committed, or why it has to wait for one."""

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
    RequestState,
    Reuse,
    Wish,
    new_id,
    unmet_filters,
    write_wish,
)
from ..store import executions, requests
from .matching import Evidence, objections
from .planning import Plan, match
from .resolver import Resolution


class Outlook(enum.Enum):
    """What becomes of a request that needs others to have ended well."""

    READY = "ready"
    WAITS = "waits"
    #: One of the others has ended otherwise.
    FAILED = "dependency_failed"


def outlook(connection: Connection, wish: Wish) -> Outlook:
    """Whether a wish can be satisfied, as far as that depends on other requests.

    Raises:
        NotFoundError: there is no such request.
    """
    found = {_outlook(connection, requests.get(connection, it)) for it in wish.predecessors}
    return next((it for it in (Outlook.FAILED, Outlook.WAITS) if it in found), Outlook.READY)


def _outlook(connection: Connection, request: Request) -> Outlook:
    if request.state is not RequestState.FINAL:
        return Outlook.WAITS
    if request.execution is None or request.outcome != "complete":
        return Outlook.FAILED
    execution = executions.get(connection, request.execution)
    is_well = execution.has_succeeded(request.wish.success_exit_codes)
    return Outlook.READY if is_well else Outlook.FAILED


def execution_for(  # noqa: PLR0913, PLR0917  what the decision rests on
    connection: Connection,
    request: Request,
    resolution: Resolution,
    now: datetime,
    planned: str | None,
    evidence: Evidence,
) -> tuple[Execution, Mapping[str, Any]]:
    """The execution that a request gets, new or not, and why it does.

    Raises:
        ChangedError: it is another than was planned.
        NothingToReuseError: there is none, and none may be made.
    """
    if request.execution is not None:
        chosen = executions.get(connection, request.execution)
        if wrong := list(objections(chosen, request.wish, now, evidence)):
            msg = (
                f"execution {chosen.id}, which request {request.id} has, does not satisfy it any more: "
                f"{'; '.join(wrong)}; reset the request"
            )
            raise StateError(msg)
        return chosen, {"is_new": False}
    hit = there_already(connection, request, resolution, now, planned, evidence)
    if hit is not None:
        return hit, {"is_new": False}
    return _new(connection, request, resolution, now, evidence)


def there_already(  # noqa: PLR0913, PLR0917  as above
    connection: Connection,
    request: Request,
    resolution: Resolution,
    now: datetime,
    planned: str | None,
    evidence: Evidence,
) -> Execution | None:
    """The execution that is there, and that a request gets; None if it gets a new one.

    Raises as `execution_for` does.
    """
    hit = match(connection, request.wish, resolution, now, evidence)
    found = Plan(wish=request.wish, resolution=resolution, hit=hit)
    if planned not in {None, found.id}:
        what = "a new execution would run" if hit is None else f"execution {hit.id} satisfies it"
        msg = f"since the preview {planned} something has changed: now {what}; that is plan {found.id}"
        raise ChangedError(msg)
    if hit is None and request.wish.reuse is Reuse.ONLY:
        msg = f"nothing that is there satisfies request {request.id}, and it may not cause a run"
        raise NothingToReuseError(msg)
    return hit


def _new(
    connection: Connection, request: Request, resolution: Resolution, now: datetime, evidence: Evidence
) -> tuple[Execution, Mapping[str, Any]]:
    wish = request.wish
    new = _execution(wish, resolution, now)
    for it in unmet_filters(wish.filters, new):
        msg = f"nothing that is there satisfies request {request.id}, and a new execution would not: {it}"
        raise NothingToReuseError(msg)
    same = executions.of_fingerprints(connection, resolution.fingerprints)
    refused = {it.id: list(objections(it, wish, now, evidence)) for it in same}
    # One that has not ended, and does not satisfy the request, must not be joined for its fingerprint.
    is_joined = not any(refused[it.id] for it in same if not it.state.ended)
    is_shared = wish.reuse is not Reuse.NEVER and wish.computation.purity is not Purity.OFF and is_joined
    return executions.add(connection, new, is_shared=is_shared), {"is_new": True, "refused": refused}


def _execution(wish: Wish, resolution: Resolution, now: datetime) -> Execution:
    return Execution(
        id=new_id(now),
        fingerprint=resolution.fingerprints[0],
        preimage=resolution.wanted,
        state=ExecutionState.QUEUED,
        recorded=wish.recorded,
        placement=write_wish(attrs.evolve(wish, placement=wish.requested)).get("placement", {}),
        attempts=wish.attempts,
        created_at=now,
    )


def of_choice(wish: Wish, execution_id: str) -> Wish:
    """The wish that one execution alone satisfies."""
    chosen = ("id", "=", execution_id)
    return attrs.evolve(wish, reuse=Reuse.ONLY, filters=(*wish.filters, chosen))

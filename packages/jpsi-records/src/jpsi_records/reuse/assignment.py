"""Assigns an execution to a request: reuses one, creates one, or lets the request wait for its predecessors.

`Records` uses it for previews (`plan`) and commits (`execution_for`). A commit fails if its result would
differ from that of the preview.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from .. import model
from ..errors import ChangedError, NothingToReuseError, StateError
from ..files import digest_of
from ..store import REQUEST, Transaction, events, executions, ledger, requests
from .matching import Evidence, Matcher, NearMiss
from .resolver import Resolution

# How many recent executions of the same program are compared to find near misses.
_COMPARED = 50
# The number of near misses in a plan.
_MAX_NEAR_MISSES = 5


class Outlook(enum.Enum):
    """The state of a request's predecessors."""

    READY = "ready"
    WAITS = "waits"
    #: A predecessor has ended without success.
    FAILED = "dependency_failed"


def outlook(tx: Transaction, spec: model.RequestSpec) -> Outlook:
    """Return the state of a request spec's predecessors: all have succeeded, one has failed, or one is open.

    Raises:
        NotFoundError: a predecessor does not exist.
    """
    found = {_outlook(tx, requests.get(tx, it)) for it in spec.predecessors}
    return next((it for it in (Outlook.FAILED, Outlook.WAITS) if it in found), Outlook.READY)


def describe_failed_predecessor(tx: Transaction, spec: model.RequestSpec) -> str:
    """Return a sentence about the first predecessor that has ended without success; empty if none has."""
    predecessors = [requests.get(tx, it) for it in spec.predecessors]
    failed = next((it for it in predecessors if _outlook(tx, it) is Outlook.FAILED), None)
    if failed is None:
        return ""
    execution = None if failed.execution is None else executions.get(tx, failed.execution)
    return f"request {failed.id} was to complete first, but it is {failed.shown_state}{_cause(execution)}"


def _cause(execution: model.Execution | None) -> str:
    if execution is None:
        return ""
    if execution.failed_without_result:
        return f" ({execution.reason})"
    return "" if execution.exit_code is None else f" with exit code {execution.exit_code}"


def _outlook(tx: Transaction, request: model.Request) -> Outlook:
    if request.state is not model.RequestState.FINAL:
        return Outlook.WAITS
    if request.execution is None or request.outcome != "complete":
        return Outlook.FAILED
    has_succeeded = executions.get(tx, request.execution).has_succeeded(request.spec.success_exit_codes)
    return Outlook.READY if has_succeeded else Outlook.FAILED


@attrs.frozen(slots=True, kw_only=True)
class Plan:
    """The way in which a request would be satisfied at the time of the preview."""

    spec: model.RequestSpec
    resolution: Resolution
    #: The execution that satisfies it; None if none does.
    hit: model.Execution | None
    #: The closest executions, if none satisfies it.
    near_misses: Sequence[NearMiss] = ()
    #: Warnings about a new execution on this machine, one sentence each.
    warnings: Sequence[str] = ()

    @property
    def runs(self) -> bool:
        """True if a new execution would be created."""
        return self.hit is None and self.spec.reuse is not model.Reuse.ONLY

    @property
    def id(self) -> str:
        """An id that stays the same while the same spec has the same result.

        An execution that goes on from running to its end is the same result; a new one is identified by its
        canonical key.
        """
        result = self.resolution.wanted if self.hit is None else self.hit.id
        text = model.canonical([model.write_request_spec(self.spec), self.hit is None, result])
        return digest_of(text.encode()).removeprefix("sha256:")[:16]


def plan(tx: Transaction, spec: model.RequestSpec, resolution: Resolution, evidence: Evidence) -> Plan:
    """Return the current plan for a request spec; this only reads."""
    if spec.reuse is model.Reuse.NEVER:
        return Plan(spec=spec, resolution=resolution, hit=None)
    matcher = Matcher(spec, tx.now, evidence)
    same = executions.of_fingerprints(tx, resolution.fingerprints)
    hit = matcher.choose(same)
    if hit is not None:
        return Plan(spec=spec, resolution=resolution, hit=hit)
    of_program = executions.of_program(tx, resolution.wanted, _COMPARED)
    close = {it.id: it for it in (*same, *of_program)}.values()
    nearest = matcher.near_misses(resolution.wanted, close, _MAX_NEAR_MISSES)
    return Plan(spec=spec, resolution=resolution, hit=None, near_misses=nearest)


def passed_over(tx: Transaction, request: model.Request, evidence: Evidence) -> Sequence[NearMiss]:
    """Return the near misses among the executions that are older than that of a request."""
    if request.execution is None:
        return ()
    execution = executions.get(tx, request.execution)
    others = executions.of_program(tx, execution.preimage, _COMPARED)
    earlier = [it for it in others if it.created_at < execution.created_at]
    matcher = Matcher(request.spec, tx.now, evidence)
    return matcher.near_misses(execution.preimage, earlier, _MAX_NEAR_MISSES)


def execution_for(
    tx: Transaction, request: model.Request, resolution: Resolution, planned: str | None, evidence: Evidence
) -> tuple[model.Execution, Mapping[str, Any]]:
    """Return the execution for a request, an old or a new one, and the data of the `assigned` event.

    An old one that has no job, and that only cancelled requests have, gets the placement of this request.

    Raises:
        StateError: the execution that a draft has no longer satisfies it.
        ChangedError: the result differs from the preview `planned`.
        NothingToReuseError: no execution matches, and the request excludes a new run.
    """
    matcher = Matcher(request.spec, tx.now, evidence)
    hit: model.Execution | None
    if request.execution is not None:
        hit = chosen = executions.get(tx, request.execution)
        if objections := list(matcher.objections(chosen)):
            raise StateError(
                f"execution {chosen.id}, which request {request.id} has, does not satisfy it any more: "
                f"{'; '.join(objections)}; reset the request"
            )
    else:
        hit = find_existing(tx, request, resolution, planned, evidence)
    if hit is None:
        return _new(tx, request, resolution, matcher)
    cancelled = _cancelled_requests(tx, request, hit)
    if not cancelled:
        return hit, {"is_new": False}
    new = _execution_of(tx, request, resolution)
    placed = attrs.evolve(hit, placement=new.placement, recorded=new.recorded, attempts=new.attempts)
    if placed != hit and not any(matcher.objections(placed)):
        hit = _place(tx, request, placed, cancelled)
    return hit, {"is_new": True, "was_cancelled": True}


def find_existing(
    tx: Transaction, request: model.Request, resolution: Resolution, planned: str | None, evidence: Evidence
) -> model.Execution | None:
    """Return the recorded execution that satisfies a request; None if it needs a new one.

    Raises the errors of `execution_for`.
    """
    hit = None
    if request.spec.reuse is not model.Reuse.NEVER:
        same = executions.of_fingerprints(tx, resolution.fingerprints)
        hit = Matcher(request.spec, tx.now, evidence).choose(same)
    current = Plan(spec=request.spec, resolution=resolution, hit=hit)
    if planned not in {None, current.id}:
        result = "a new execution would run" if hit is None else f"execution {hit.id} satisfies it"
        msg = f"since the preview {planned} something has changed: now {result}; that is plan {current.id}"
        raise ChangedError(msg)
    if hit is None and request.spec.reuse is model.Reuse.ONLY:
        msg = f"no execution satisfies request {request.id}, and `reuse: only` excludes a new one"
        raise NothingToReuseError(msg)
    return hit


def _cancelled_requests(
    tx: Transaction, request: model.Request, execution: model.Execution
) -> Sequence[model.Request]:
    """Return the other requests of an execution if all of them are cancelled and it has no job, else none."""
    others = REQUEST.c.execution == execution.id, REQUEST.c.id != request.id
    unfinished = [it for it in requests.some(tx, *others) if it.state is not model.RequestState.FINAL]
    has_job = execution.state is not model.ExecutionState.QUEUED
    is_wanted = any(it.state is not model.RequestState.CANCELLED for it in unfinished)
    return () if has_job or is_wanted else unfinished


def _place(
    tx: Transaction, request: model.Request, placed: model.Execution, cancelled: Sequence[model.Request]
) -> model.Execution:
    """Record the placement that an execution got from a request, and return it.

    No dispatcher submits it meanwhile: each first changes its state, and there is one writer at a time.
    """
    for it in cancelled:
        # if its user takes the cancellation back, it must not run with the placement of this request
        ledger.release(tx, it, placed)
    executions.place(tx, placed)
    events.add(tx, "placed", request=request.id, execution=placed.id, placement=placed.placement)
    return executions.get(tx, placed.id)


def _execution_of(tx: Transaction, request: model.Request, resolution: Resolution) -> model.Execution:
    """Return a new execution for a request; it is not inserted."""
    spec = request.spec
    return model.Execution(
        id=model.new_id(tx.now),
        fingerprint=resolution.fingerprints[0],
        preimage=resolution.wanted,
        state=model.ExecutionState.QUEUED,
        recorded=spec.recorded,
        placement=model.requested_placement(spec),
        attempts=spec.attempts,
        created_at=tx.now,
    )


def _new(
    tx: Transaction, request: model.Request, resolution: Resolution, matcher: Matcher
) -> tuple[model.Execution, Mapping[str, Any]]:
    spec = request.spec
    new = _execution_of(tx, request, resolution)
    for it in model.unmet_filters(spec.filters, new):
        raise NothingToReuseError(f"no execution satisfies request {request.id}, nor would a new one: {it}")
    same = executions.of_fingerprints(tx, resolution.fingerprints)
    refused = {it.id: list(matcher.objections(it)) for it in same}
    # An execution that does not satisfy this request and has not ended keeps its fingerprint: do not join it.
    is_joined = not any(refused[it.id] for it in same if not it.state.ended)
    is_shared = (
        spec.reuse is not model.Reuse.NEVER and spec.computation.purity is not model.Purity.OFF and is_joined
    )
    return executions.add(tx, new, is_shared=is_shared), {"is_new": True, "refused": refused}


def with_chosen_execution(spec: model.RequestSpec, execution_id: str) -> model.RequestSpec:
    """Return the request spec, restricted to one execution."""
    chosen = ("id", "=", execution_id)
    return attrs.evolve(spec, reuse=model.Reuse.ONLY, filters=(*spec.filters, chosen))

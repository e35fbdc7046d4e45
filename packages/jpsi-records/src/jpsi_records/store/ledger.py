"""Changes states and priorities of requests and executions, with all consequences in the same transaction.

`Records` and the dispatcher use it. A change of one request can change the priority of its execution, of the
children of that, the outcome of other requests and the accounting: this module keeps them consistent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement

from ..inbox import Report
from ..model import UNWANTED, Execution, ExecutionState, Request, RequestState
from . import events, executions, requests
from .database import Transaction
from .executions import HELD
from .schema import EXECUTION, REQUEST, UNFINISHED


def assign(tx: Transaction, request: Request, execution: Execution, why: Mapping[str, Any]) -> None:
    """Assign an execution to a request and record why; finish the request if the execution has ended."""
    requests.change(tx, request.id, execution=execution.id)
    events.add(tx, "assigned", request=request.id, execution=execution.id, **why)
    if execution.state.ended:
        _finish(tx, request, execution, _outcome(request, execution))
    else:
        settle(tx, execution.id)


def settle(tx: Transaction, execution_id: str) -> None:
    """Recompute the priority of an execution from its requests, and then those of its child executions."""
    pending = [execution_id]
    for parent in pending:
        has_changed = _settle_one(tx, parent)
        children = requests.some(tx, REQUEST.c.parent == parent, UNFINISHED)
        found = {it.execution: None for it in children if it.execution is not None}
        # a child may have been settled before another parent of it changed
        pending += [it for it in found if has_changed or it not in pending]


def _settle_one(tx: Transaction, execution_id: str) -> bool:
    """Recompute the priority of an execution from its requests; return True if it has changed."""
    has_changed = False
    execution = executions.get(tx, execution_id)
    interested = requests.some(tx, REQUEST.c.execution == execution_id, UNFINISHED)
    if not execution.state.ended:
        priority = max((_contribution(tx, it) for it in interested), default=0)
        if has_changed := priority != execution.priority:
            executions.change(tx, execution_id, priority=priority)
            events.add(tx, "priority", execution=execution_id, priority=priority)
    for request in interested:
        events.account(tx, request, execution, is_interested=True)
    return has_changed


def _contribution(tx: Transaction, request: Request) -> float:
    """Return the contribution of an unfinished request to the priority of its execution; zero is none.

    A child request has the priority of its parent execution, unless its own is zero or less.
    """
    priority = request.priority or 0
    if priority <= 0 or (request.expires_at is not None and request.expires_at <= tx.now):
        return 0
    if request.parent is None:
        return priority
    parent = executions.get(tx, request.parent)
    return 0 if parent.state.ended else max(0, parent.priority)


def move(
    tx: Transaction,
    execution_id: str,
    state: ExecutionState,
    *conditions: ColumnElement[bool],
    **values: Any,  # noqa: ANN401  columns are of any type
) -> bool:
    """Change an execution's state if it has not ended and the conditions hold; return True if it changed."""
    still = EXECUTION.c.state.in_([it.value for it in ExecutionState if not it.ended])
    was_given_up = executions.get(tx, execution_id).reason == UNWANTED
    if not executions.change(tx, execution_id, still, *conditions, state=state.value, **values):
        return False
    result = {key: it for key, it in values.items() if key in {"exit_code", "reason"}}
    events.add(tx, "state", execution=execution_id, state=state.value, **result)
    if state.ended:
        _end(tx, executions.get(tx, execution_id), was_given_up=was_given_up)
    else:
        settle(tx, execution_id)
    return True


def _end(tx: Transaction, execution: Execution, *, was_given_up: bool) -> None:
    for request in requests.some(tx, REQUEST.c.execution == execution.id, UNFINISHED):
        is_wanted = _contribution(tx, request) > 0
        if was_given_up and is_wanted and execution.state is ExecutionState.CANCELLED:
            # Its priority was raised during the cancellation: it gets another execution.
            release(tx, request, execution)
        else:
            _finish(tx, request, execution, _outcome(request, execution))
    for request in requests.some(tx, REQUEST.c.parent == execution.id, UNFINISHED):
        withdraw(tx, request, "cancelled")


def release(tx: Transaction, request: Request, execution: Execution) -> None:
    """Detach an execution from a request, which gets another one once it is wanted."""
    events.account(tx, request, execution, is_interested=False)
    requests.change(tx, request.id, execution=None)
    events.add(tx, "released", request=request.id, execution=execution.id)


def _outcome(request: Request, execution: Execution) -> str:
    if execution.failed_without_result and request.state is not RequestState.CANCELLED:
        return "failed"
    if execution.state is not ExecutionState.COMPLETE:
        return "cancelled"
    return "complete" if execution.has_succeeded(request.spec.success_exit_codes) else "failed"


def withdraw(tx: Transaction, request: Request, outcome: str) -> None:
    """Finish a request early; its execution, if any, continues if another request needs it."""
    execution = None if request.execution is None else executions.get(tx, request.execution)
    _finish(tx, request, execution, outcome)
    if execution is not None:
        settle(tx, execution.id)
        discard(tx, execution.id)


def discard(tx: Transaction, execution_id: str) -> None:
    """Cancel a queued execution unless an unfinished request has it."""
    is_held_by_request = REQUEST.c.execution == execution_id, REQUEST.c.state != RequestState.FINAL.value
    is_waiting = executions.get(tx, execution_id).state is ExecutionState.QUEUED
    if is_waiting and not requests.some(tx, *is_held_by_request):
        move(tx, execution_id, ExecutionState.CANCELLED, reason=UNWANTED, finished_at=tx.now)


def _finish(tx: Transaction, request: Request, execution: Execution | None, outcome: str) -> None:
    requests.change(tx, request.id, state=RequestState.FINAL.value, outcome=outcome)
    if execution is not None:
        events.account(tx, request, execution, is_interested=False)
    execution_id = None if execution is None else execution.id
    events.add(tx, "final", request=request.id, execution=execution_id, outcome=outcome)


def catch_up(tx: Transaction) -> None:
    """Apply priority changes of users who may not write executions: pass them on to the executions."""
    for execution_id in events.behind(tx):
        settle(tx, execution_id)
        interested = requests.some(tx, REQUEST.c.execution == execution_id, UNFINISHED)
        tx.changed.requests.update(it.id for it in interested)


def expire(tx: Transaction) -> list[Request]:
    """Finish the requests whose expiry time has passed."""
    due = requests.some(tx, UNFINISHED, REQUEST.c.expires_at <= tx.now)
    for request in due:
        withdraw(tx, request, "cancelled" if request.state is RequestState.CANCELLED else "expired")
    return due


def waiting(tx: Transaction) -> list[Request]:
    """Return the unfinished requests that have no execution."""
    return requests.some(tx, UNFINISHED, REQUEST.c.execution.is_(None))


def unwanted(tx: Transaction) -> list[Execution]:
    """Return the executions that have a job but no request with a priority above 0."""
    return executions.some(tx, HELD, EXECUTION.c.priority <= 0)


def give_up(tx: Transaction, execution: Execution) -> bool:
    """Close an execution to further requests before its job is cancelled; False if it is needed again."""
    is_unwanted = EXECUTION.c.priority <= 0
    is_given_up = executions.change(tx, execution.id, is_unwanted, is_shared=0, reason=UNWANTED)
    if is_given_up:
        events.add(tx, "given up", execution=execution.id)
    return is_given_up


def record_progress(
    tx: Transaction,
    execution_id: str,
    progress: float | None,
    report: Report,
    *conditions: ColumnElement[bool],
    **by: str,
) -> None:
    """Record the progress of an execution, or a report of its job, if the conditions hold."""
    current = executions.get(tx, execution_id)
    values: dict[str, Any] = {} if progress in {None, current.progress} else {"progress": progress}
    status = report.added_to(current.status)
    values |= {} if status == current.status else {"status": status}
    is_changed = bool(values) and executions.change(tx, execution_id, *conditions, **values)
    # What a user reports is recorded even if it changes nothing.
    if report.is_success is not None and (by or (is_changed and "status" in values)):
        data = {"reported": report.outcome, "message": report.message, **by}
        events.add(tx, "reported", execution=execution_id, **data)

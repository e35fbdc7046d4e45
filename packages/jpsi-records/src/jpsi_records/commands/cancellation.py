"""Implements `jpsi request cancel` and `priority`, which end the job if no dispatcher runs that would."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING

import click

from jpsi import JpsiError

from .. import formatting
from ..model import Execution, ExecutionState, Request, RequestState
from .command import JSON, REQUEST, Output, command, dispatch_command
from .interrupts import Interrupts
from .messages import describe_missing_dispatcher
from .submission import announced, dispatching, echo

if TYPE_CHECKING:
    from ..records import Records

# The time within which most batch systems end a job.
_END_SECONDS = 30.0
_WITH_JOB = {ExecutionState.CLAIMED, ExecutionState.RUNNING}


@command(
    "Cancel a request; its job goes on if another request needs the result.",
    *(REQUEST, JSON),
    more="If no dispatcher runs, it ends the job itself, and waits up to 30 seconds for the end.",
)
def cancel(records: Records, request: str) -> Output:
    """Cancel a request, unless it has ended, and end its job if no dispatcher does."""
    was_over = records.request(request).state is RequestState.FINAL
    found = _end_job(records, records.cancel(request))
    execution = None if found.execution is None else records.execution(found.execution)
    text = f"request {found.id} is over already: {found.outcome}"
    return Output(
        f"{text if was_over else formatting.cancelled(found, execution)}\n", formatting.as_json(found)
    )


@command(
    "Change the priority of a request; 0 or less cancels it.",
    *(REQUEST, click.Argument(["priority"], type=float), JSON),
    name="priority",
    more="With 0 or less the job ends as with `jpsi request cancel`.",
)
def set_priority(records: Records, request: str, priority: float) -> Request:
    """Change the priority of a request, and with 0 or less end its job if no dispatcher does."""
    was_cancelled = records.request(request).state is RequestState.CANCELLED
    found = records.set_priority(request, priority)
    if priority <= 0:
        return _end_job(records, found)
    return announced(records, found) if was_cancelled else found


def _end_job(records: Records, request: Request) -> Request:
    """End the job of a request whose priority is zero if no dispatcher does; return the request then."""
    if request.execution is not None:
        echo(_end_unwanted(records, request.execution))
    return records.request(request.id)


def _end_unwanted(records: Records, execution_id: str) -> Iterator[str]:
    """End the job of an execution that no request needs; yield what users should know of jobs that run on."""
    if not _is_left(records, execution_id):
        return
    if records.may_dispatch:
        try:
            _await_end(records, execution_id)
        except JpsiError as e:
            yield str(e)
        else:
            if _is_left(records, execution_id):
                yield _describe_unknown_end(records)
            elif _has_left_children(records, execution_id):
                yield f"jobs that it has requested run on: {describe_missing_dispatcher(records)}"
            return
    yield f"its job runs on: {describe_missing_dispatcher(records)}"


def _is_left(records: Records, execution_id: str) -> bool:
    """Return True if an execution has a job that no request needs, and no dispatcher runs, which ends it."""
    return _is_unwanted(records.execution(execution_id)) and not records.dispatchers()


def _has_left_children(records: Records, execution_id: str) -> bool:
    children = [it.execution for it in records.requests(parent=execution_id) if it.execution is not None]
    return any(map(_is_unwanted, records.executions(children).values())) and not records.dispatchers()


def _is_unwanted(execution: Execution) -> bool:
    return execution.priority <= 0 and execution.state in _WITH_JOB


def _await_end(records: Records, execution_id: str) -> None:
    interrupts, end = Interrupts(), monotonic() + _END_SECONDS

    def is_over() -> bool:
        interrupts.check()
        return monotonic() >= end

    try:
        with dispatching(records, interrupts) as dispatcher:
            dispatcher.end_unwanted(execution_id, is_over=is_over)
    except KeyboardInterrupt:
        echo([f"interrupted: {_describe_unknown_end(records)}"])
        raise


def _describe_unknown_end(records: Records) -> str:
    follow = f"`{dispatch_command(records)} --until-idle` waits for it and records it"
    return f"the request is cancelled, and the end of its job is not known yet; {follow}"

"""Formats records as text and as JSON, for the output of `jpsi request`."""

from __future__ import annotations

import enum
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import attrs

from . import model

if TYPE_CHECKING:
    import jpsi

    from .reuse import NearMiss, Plan

# The keys of the JSON output that differ from the names of fields
_KEYS = {"spec": "request_spec"}
_GAP = "  "
# How many near misses are shown that are equally close.
_MOST_CLOSEST = 3
# The least widths to which a result and a command are shortened.
_SHORTEST_RESULT, _SHORTEST_COMMAND = 16, 12
# The columns of requests that are left out if there is no room, the first one first.
_LEFT_OUT_FIRST = ("EXECUTION", "OWNER", "PRIORITY")


def as_json(value: Any) -> str:  # noqa: ANN401  records, or lists of them
    """Return records as a JSON document."""
    return json.dumps(value, default=_plain, indent=2, ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:  # noqa: ANN401  as above
    match value:
        case model.RequestSpec():
            return model.write_request_spec(value)
        case enum.Enum():
            return value.value
        case datetime():
            return value.isoformat()
    return {_KEYS.get(it.name, it.name): getattr(value, it.name) for it in attrs.fields(type(value))}


def plan(found: Plan) -> str:
    """Return the text of a preview."""
    if found.hit is not None:
        outcome = f"execution {found.hit.id} satisfies it, {state(found.hit)}"
    else:
        outcome = "a new execution would run" if found.runs else "nothing satisfies it, and nothing would run"
    lines = [f"plan {found.id}: {outcome}", *(f"warning: {printable(it)}" for it in found.warnings)]
    closest = _closest(found.near_misses)
    for near in closest:
        lines += ["", f"close: execution {near.execution.id}, {state(near.execution)}"]
        lines += [f"  {printable(str(it))}" for it in (*near.differences, *near.objections)]
    if left := len(found.near_misses) - len(closest):
        lines += ["", f"and {left} more, which --json lists"]
    return "\n".join(lines) + "\n"


def _closest(near: Sequence[NearMiss]) -> Sequence[NearMiss]:
    """Return the near misses of the least distance, at most `_MOST_CLOSEST`."""
    return [it for it in near if it.distance == near[0].distance][:_MOST_CLOSEST]


def plan_json(found: Plan) -> str:
    """Return a preview as JSON."""
    return as_json(
        {
            "plan": found.id,
            "hit": found.hit,
            "runs": found.runs,
            "preimage": json.loads(found.resolution.wanted),
            "near_misses": list(found.near_misses),
            "warnings": list(found.warnings),
        }
    )


def state(execution: model.Execution) -> str:
    """Return a short text for the state of an execution.

    >>> from datetime import datetime, UTC
    >>> state(model.Execution(id="", fingerprint="", preimage="", state="complete", exit_code=3,
    ...                       created_at=datetime.now(UTC)))
    'failed with exit code 3'
    """
    match execution.state:
        case model.ExecutionState.COMPLETE:
            end = "failed" if execution.has_failed else "complete"
            return f"{end} with exit code {execution.exit_code}"
        case model.ExecutionState.RUNNING:
            return f"running, {execution.progress:.0%} done"
        case model.ExecutionState.CANCELLED:
            return f"{'failed' if execution.failed_without_result else 'cancelled'} ({execution.reason})"
        case _:
            return f"{execution.state.value}, priority {execution.priority:g}"


def explanation(request: model.Request, events: Sequence[model.Event], near: Sequence[NearMiss]) -> str:
    """Return a text that explains why a request has its execution."""
    assigned = assignment(request, events)
    if assigned is None:
        why = next((str(it.data["why"]) for it in reversed(events) if it.kind == "refused"), "")
        state_text = f"request {request.id} is {request.shown_state} and has no execution"
        return f"{state_text}{why and f': {printable(why)}'}\n"
    if not assigned.data.get("is_new"):
        return f"execution {assigned.execution} existed: it computes the same, and satisfies the request\n"
    if assigned.data.get("was_cancelled"):
        reason = "waited for requests that were cancelled, and is computed for it"
        return f"execution {assigned.execution} {reason}\n"
    lines = [f"execution {assigned.execution} was made for it: no earlier execution satisfied it"]
    refused = assigned.data.get("refused", {})
    for execution, why in refused.items():
        lines.append(f"  execution {execution} computes the same, but {printable('; '.join(why))}")
    for other in _closest([it for it in near if it.differences]):
        lines.append(f"  execution {other.execution.id} is close:")
        lines += [f"    {printable(str(it))}" for it in other.differences]
    return "\n".join(lines) + "\n"


def assignment(request: model.Request, events: Iterable[model.Event]) -> model.Event | None:
    """Return the event that says why a request has its execution; None if it has none."""
    # The commit of a satisfied draft assigns the same execution again; the first event has the reason.
    return next((it for it in events if it.kind == "assigned" and it.execution == request.execution), None)


def assigned(execution: model.Execution) -> str:
    """Return one line about the execution of a request that was just made or changed."""
    return f"execution {execution.id}, {state(execution)}"


def result(found: model.Request, execution: model.Execution, *, is_new: bool) -> str:
    """Return one line about the end of a request: its execution, and where the result came from."""
    if is_new and execution.started_at is None and execution.state.ended:
        source = f"execution {execution.id} never ran"
    elif is_new and execution.state is model.ExecutionState.CANCELLED:
        source = f"execution {execution.id} has no result"
    elif is_new:
        source = f"computed by execution {execution.id}"
    elif execution.finished_at is not None and execution.finished_at <= found.created_at:
        source = f"reused the result of execution {execution.id} of {_time(execution.finished_at)}"
    else:
        source = f"computed by execution {execution.id}, which another request had started"
    is_complete = execution.state is model.ExecutionState.COMPLETE
    end = f"{found.outcome} with exit code {execution.exit_code}" if is_complete else state(execution)
    return f"{source}: {end}"


def outcome(found: model.Request, execution: model.Execution | None) -> str:
    """Return one line about the state of a request, with the reason if it has failed without a result."""
    if execution is None or found.outcome != "failed" or not execution.failed_without_result:
        return f"request {found.id}: {found.shown_state}"
    error = execution.status.get("error", "")
    return f"request {found.id}: {state(execution)}{error and f': {printable_lines(error)}'}"


# What users call the keys of a placement for which there are options.
_PLACEMENT_WORDS = {"executor": "the executor (-x)", "duration": "the time limit (--time)"}
# The executor if the configuration names no default.
_DEFAULT_EXECUTOR = "local"


def placement_warning(
    request: model.Request,
    execution: model.Execution,
    attempts: Iterable[model.Attempt],
    interested: Iterable[model.Request],
    configuration: jpsi.Configuration | None,
) -> str | None:
    """Return which parts of a request's placement have no effect and why; None if its execution has all.

    Args:
        request: the request.
        execution: its execution.
        attempts: those of the execution.
        interested: all requests that have this execution.
        configuration: the configuration of the dispatcher; None if it is unknown.
    """
    executor = next((it.executor for it in attempts if it.ended_at is None), None)
    if executor is None and "executor" not in execution.placement and configuration is not None:
        executor = configuration.default_executor or _DEFAULT_EXECUTOR
    actual = {**execution.placement, **({} if executor is None else {"executor": executor})}
    wanted = model.requested_placement(request.spec)
    different = [name for name, it in wanted.items() if actual.get(name) != it]
    if _is_same_executor(wanted.get("executor"), actual.get("executor"), configuration):
        different = [it for it in different if it != "executor"]
    unused = [_PLACEMENT_WORDS.get(it, it) for it in different]
    if execution.state.ended or not unused:
        return None
    names = " and ".join(filter(None, (", ".join(unused[:-1]), unused[-1])))
    does = "runs" if execution.state is model.ExecutionState.RUNNING else "waits"
    others = [it.id for it in interested if it.id != request.id and it.state is model.RequestState.COMMITTED]
    for_whom = f" for request {others[0]}" if others else ""
    where = actual.get("executor", "the default executor")
    verb = "has" if len(unused) == 1 else "have"
    return f"{names} {verb} no effect, because the computation already {does} on {where}{for_whom}"


def _is_same_executor(
    wanted: str | None, actual: str | None, configuration: jpsi.Configuration | None
) -> bool:
    """Return True if two names mean the same executor or target, or a target and the executor of it."""
    if wanted is None or actual is None:
        return wanted == actual
    one, other = wanted.lower(), actual.lower()
    targets = {} if configuration is None else configuration.targets
    executors = {name: (it.executor or "").lower() for name, it in targets.items()}
    return one == other or executors.get(one) == other or executors.get(other) == one


def cancelled(found: model.Request, execution: model.Execution | None) -> str:
    """Return the result of cancelling a request as text."""
    if execution is not None and found.outcome not in {None, "cancelled"}:
        return f"request {found.id} was not cancelled: its job had ended before, {state(execution)}"
    if found.state is model.RequestState.COMMITTED and (found.priority or 0) > 0:
        return f"request {found.id} was not cancelled: its priority was raised meanwhile"
    is_wanted = execution is not None and not execution.state.ended and execution.priority > 0
    more = "; another request still wants this execution" if is_wanted else ""
    assigned = "" if execution is None else f" execution {execution.id},"
    has_job = execution is not None and execution.state is not model.ExecutionState.QUEUED
    until = " as long as its job runs" if has_job else ""
    back = "" if found.outcome else f"; `jpsi request priority {found.id} 1` takes that back{until}"
    return f"request {found.id}:{assigned} cancelled{more}{back}"


def requests(
    found: Iterable[model.Request],
    executions: Mapping[str, model.Execution],
    computed: Container[str],
    width: int | None = None,
) -> str:
    """Return a table of requests, with their executions, which those in `computed` have caused.

    If it is wider than a terminal with this width, columns are left out, and results and commands are cut.
    Without a width nothing is.
    """
    rows: list[tuple[str, ...]] = [
        ("REQUEST", "STATE", "PRIORITY", "OWNER", "EXECUTION", "RESULT", "COMMAND")
    ]
    rows += (_request_row(it, executions.get(it.execution or ""), computed) for it in found)
    return table(rows if width is None else _fit(rows, width))


def _fit(rows: Sequence[tuple[str, ...]], width: int) -> list[tuple[str, ...]]:
    """Return the rows of requests with the columns that fit a terminal of this width, some of them cut."""
    columns = {column[0]: column for column in zip(*rows, strict=True)}
    sizes = {name: max(map(len, column)) + len(_GAP) for name, column in columns.items()}
    # no gap follows the last column
    room = width - _SHORTEST_COMMAND
    del sizes["COMMAND"]
    for name in _LEFT_OUT_FIRST:
        if sum(sizes.values()) > room:
            del columns[name], sizes[name]
    result = max(_SHORTEST_RESULT, sizes["RESULT"] - len(_GAP) - max(0, sum(sizes.values()) - room))
    columns["RESULT"] = tuple(_cut(it, result) for it in columns["RESULT"])
    sizes["RESULT"] = max(map(len, columns["RESULT"])) + len(_GAP)
    command = max(_SHORTEST_COMMAND, width - sum(sizes.values()))
    columns["COMMAND"] = tuple(_cut(it, command) for it in columns["COMMAND"])
    return list(zip(*columns.values(), strict=True))


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - 1]}…"


def _request_row(
    request: model.Request, execution: model.Execution | None, computed: Container[str]
) -> tuple[str, ...]:
    priority = "-" if request.priority is None else f"{request.priority:g}"
    execution_id, result_text = ("-", "-") if execution is None else (execution.id, state(execution))
    if request.state is model.RequestState.CANCELLED:
        # its execution may wait or run for others
        result_text = "-"
    if execution is not None and execution.state is model.ExecutionState.COMPLETE:
        result_text = f"{'computed' if request.id in computed else 'reused'}: {result_text}"
    computation = request.spec.computation
    command = request.name or " ".join(computation.command) or computation.container_image or ""
    return (
        request.id,
        request.shown_state,
        priority,
        request.owner,
        execution_id,
        result_text,
        printable(command),
    )


def usage(found: Iterable[model.Interval]) -> str:
    """Return a table of accounting intervals."""
    rows = [("FROM", "TO", "USER", "PRIORITY", "STATE", "REQUEST")]
    for it in found:
        end = "now" if it.end is None else _time(it.end)
        state_value = it.state.value
        rows.append((_time(it.start), end, printable(it.user), f"{it.priority:g}", state_value, it.request))
    return table(rows)


def details(
    found: model.Request | None,
    execution: model.Execution | None,
    attempts: Sequence[model.Attempt],
    events: Sequence[model.Event],
) -> str:
    """Return everything about a request or an execution as text."""
    lines = []
    if found is not None:
        lines += [
            f"request    {found.id}",
            f"owner      {printable(found.owner)}",
            f"state      {found.shown_state}",
            f"priority   {'-' if found.priority is None else f'{found.priority:g}'}",
        ]
        lines += [] if found.expires_at is None else [f"expires    {_time(found.expires_at)}"]
        lines.append(_modified(found))
    if execution is not None:
        lines += [
            f"execution  {execution.id}",
            f"           {state(execution)}",
            f"output     {execution.output or '-'}",
            f"log        {execution.log or '-'}",
            _modified(execution),
        ]
        lines += [f"{key:<10} {printable_lines(it, ' ' * 11)}" for key, it in execution.status.items()]
    lines += [
        f"attempt {it.number}  {it.state} on {it.executor}, job {it.job}, native id {it.native_id or '-'}"
        for it in attempts
    ]
    lines += ["", *(_event(it) for it in events)]
    return "\n".join(lines).rstrip() + "\n"


def _modified(record: model.Request | model.Execution) -> str:
    by = f" by {printable(record.modified_by)}" if record.modified_by else ""
    return f"modified   {_time(record.modified_at)}{by}"


def _event(event: model.Event) -> str:
    data = ", ".join(f"{key} {it}" for key, it in event_data(event).items() if it == 0 or it)
    return printable(f"{_time(event.time)}  {event.kind}{f': {data}' if data else ''}")


def event_data(event: model.Event) -> Mapping[str, Any]:
    """Return the data of an event as users read it: a failure without a result is no cancellation."""
    has_no_result = event.data.get("state") == model.ExecutionState.CANCELLED.value
    is_failure = has_no_result and event.data.get("reason") not in model.CANCELLATIONS
    return {**event.data, "state": "failed"} if is_failure else event.data


def _time(time: datetime) -> str:
    return time.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def table(rows: Sequence[tuple[str, ...]]) -> str:
    r"""Align rows of cells in columns.

    >>> table([("A", "B"), ("aa", "b")])
    'A   B\naa  b\n'
    """
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = (_GAP.join(f"{cell:{size}}" for cell, size in zip(row, sizes, strict=True)) for row in rows)
    return "".join(f"{it.rstrip()}\n" for it in padded)


def printable(text: str) -> str:
    """Return text with escapes in place of characters that would control a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str, indent: str = "") -> str:
    """Return text like `printable`, in its lines; each but the first is indented."""
    return f"\n{indent}".join(map(printable, text.split("\n")))

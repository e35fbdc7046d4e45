"""Invariants of the records after any sequence of actions."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_dispatcher import Clock, spec
from jpsi_records.errors import RecordsError
from jpsi_records.model.entities import About, Execution, ExecutionState, Request, RequestState
from jpsi_records.records.records import Records
from jpsi_records.store.ledger import expire, move
from jpsi_records.store.schema import EXECUTION, METADATA

LIVE = {ExecutionState.QUEUED, ExecutionState.CLAIMED, ExecutionState.RUNNING}
ACTS = ("start", "finish", "cancel", "invalidate", "rerun")
KINDS = (*["submit", "child", "after", "expiring", "priority"] * 2, "pass", "advance", *ACTS)
STEP = st.tuples(
    st.sampled_from(KINDS), st.integers(0, 7), st.integers(0, 3) | st.just(-1), st.sampled_from("ab")
)
STEPS = st.lists(STEP, min_size=5, max_size=30)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Records, Clock]]:
    """Yield records and their clock; to open them takes longer than an example."""
    clock = Clock()
    with Records(tmp_path_factory.mktemp("records"), user="a", now=clock) as records:
        yield records, clock


@settings(max_examples=100)
@given(STEPS)
def test_invariants_hold_after_any_actions(
    opened: tuple[Records, Clock], steps: list[tuple[str, int, int, str]]
) -> None:
    records, clock = opened
    clock.time = Clock().time
    with records.database.writing() as tx:
        for table in reversed(METADATA.sorted_tables):
            tx.execute(table.delete())
    for kind, which, number, user in steps:
        records.user = user
        with contextlib.suppress(RecordsError):
            do(records, clock, kind, which, number)
        check(records, clock)


def do(records: Records, clock: Clock, kind: str, which: int, number: int) -> None:
    requests, made = records.requests(), everything(records)
    request = requests[which % len(requests)] if requests else None
    execution = made[which % len(made)] if made else None
    if kind in {"submit", "child", "after", "expiring"}:
        asks_after = [request.id] if request and kind == "after" else []
        more = About(
            expires_at=clock.time + timedelta(minutes=which) if kind == "expiring" else None,
            parent=execution.id if execution and kind == "child" else None,
        )
        records.submit(spec(str(which % 5), after=asks_after), more, priority=number)
    elif kind == "pass":
        clock.advance(60 * which)
        with records.database.writing() as tx:
            expire(tx)
    elif kind == "advance":
        records.advance()
    elif kind == "priority" and request:
        records.user = request.owner
        records.set_priority(request.id, number)
    elif execution:
        act(records, clock, kind, execution, number)


def act(records: Records, clock: Clock, kind: str, execution: Execution, number: int) -> None:
    def into(state: ExecutionState, **values: object) -> None:
        with records.database.writing() as tx:
            move(tx, execution.id, state, **values)

    steps: dict[str, Callable[[], object]] = {
        "start": lambda: into(ExecutionState.RUNNING, started_at=clock()),
        "finish": lambda: into(ExecutionState.COMPLETE, exit_code=max(0, number), finished_at=clock()),
        "cancel": lambda: into(ExecutionState.CANCELLED, reason="lost", finished_at=clock()),
        "invalidate": lambda: records.invalidate(execution.id),
        "rerun": lambda: records.rerun(execution.id, priority=number),
    }
    steps[kind]()


def everything(records: Records) -> list[Execution]:
    from jpsi_records.store import executions  # noqa: PLC0415

    with records.database.reading() as tx:
        return executions.some(tx)


def check(records: Records, clock: Clock) -> None:
    made = {it.id: it for it in everything(records)}
    requests = records.requests()
    with records.database.reading() as tx:
        rows = tx.execute(EXECUTION.select()).mappings().all()
    shared = Counter(
        it["fingerprint"] for it in rows if it["is_shared"] and ExecutionState(it["state"]) in LIVE
    )
    assert max(shared.values(), default=1) == 1
    for execution in made.values():
        interested = [it for it in requests if it.execution == execution.id]
        if execution.state.ended:
            assert {it.state for it in interested} <= {RequestState.FINAL}
        else:
            assert execution.priority == max((counted(it, made, clock) for it in interested), default=0)
    open_intervals = Counter(it.request for it in records.usage() if it.end is None)
    for it in requests:
        is_interested = it.state is not RequestState.FINAL and it.execution is not None
        assert (it.priority or 0) <= 0 or it.state is not RequestState.CANCELLED
        assert open_intervals[it.id] == (1 if is_interested else 0)


def counted(request: Request, made: dict[str, Execution], clock: Clock) -> float:
    """Return the number that a request contributes, as the guide defines it."""
    is_over = request.expires_at is not None and request.expires_at <= clock.time
    if request.state is not RequestState.COMMITTED or not request.priority or request.priority < 0 or is_over:
        return 0
    return request.priority if request.parent is None else made[request.parent].priority

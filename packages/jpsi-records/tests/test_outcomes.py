"""The ends of requests: success, failures that jobs report, and cancellation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fake_dispatcher import Client, Clock, finish, prepare_round, spec, start
from jpsi import JobState, JobStatus, Reason
from jpsi_records import formatting
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.errors import InvalidRequestError, StateError
from jpsi_records.inbox.inbox import Report
from jpsi_records.jobs.job_outcome import end_of
from jpsi_records.model import filters
from jpsi_records.model.entities import About, Execution, ExecutionState, Request, RequestState
from jpsi_records.records.records import Records
from jpsi_records.store import executions
from jpsi_records.store.ledger import give_up, move


def ended(records: Records, exit_code: int, **more: Any) -> Request:
    """Return a request whose job has ended."""
    request = records.submit(spec("a", **more))
    start(records, request.execution or "")
    finish(records, request.execution or "", exit_code)
    return records.request(request.id)


@pytest.mark.clause("records-failed")
@pytest.mark.parametrize(
    ("exit_code", "more", "outcome"),
    [
        (0, {}, "complete"),
        (1, {}, "failed"),
        (1, {"success_exit_codes": [0, 1]}, "complete"),
        (0, {"success_exit_codes": [3]}, "failed"),
        (1, {"accepts_failed": True}, "failed"),
    ],
)
def test_success_exit_codes_are_distinguished_from_failure(
    records: Records, exit_code: int, more: dict[str, Any], outcome: str
) -> None:
    assert ended(records, exit_code, **more).outcome == outcome


def test_results_that_count_as_success_are_reused(records: Records) -> None:
    done = ended(records, 1)

    assert records.find(spec("a")) is None
    assert records.find(spec("a", success_exit_codes=[1])) is not None
    joined = records.submit(spec("a", success_exit_codes=[0, 1]))
    assert (joined.execution, joined.outcome) == (done.execution, "complete")
    after = records.submit(spec("b", after=[joined.id]))
    assert after.execution is not None
    assert records.submit(spec("b", after=[done.id])).outcome == "dependency_failed"


@pytest.mark.parametrize("codes", [[], "0", [True], [-1], 0, ["0"]], ids=repr)
def test_invalid_exit_codes_are_refused(codes: object) -> None:
    with pytest.raises(InvalidRequestError, match="success_exit_codes"):
        spec("a", success_exit_codes=codes)


@pytest.mark.clause("records-progress")
def test_success_and_failure_are_recorded_while_a_job_runs(records: Records) -> None:
    request = records.submit(spec("a"))
    execution = request.execution or ""
    with pytest.raises(StateError, match="only a running one"):
        records.set_progress(execution, report=Report(is_success=True))
    start(records, execution)

    updated = records.set_progress(execution, 0.5, Report(is_success=False, message="no input"))
    assert (updated.progress, updated.status) == (0.5, {"reported": "failure", "error": "no input"})
    assert records.find(spec("a")) is None
    again = records.set_progress(execution, report=Report(is_success=True))
    assert (again.progress, again.status) == (0.5, {"reported": "success"})
    assert records.find(spec("a")) == again
    assert [it.data["reported"] for it in records.events() if it.kind == "reported"] == ["failure", "success"]


def test_a_reported_failure_counts_despite_the_exit_code(records: Records) -> None:
    request = records.submit(spec("a"))
    start(records, request.execution or "")
    records.set_progress(request.execution or "", report=Report(is_success=False))
    finish(records, request.execution or "", 0)

    assert records.request(request.id).outcome == "failed"
    assert records.execution(request.execution or "").has_failed
    assert records.find(spec("a")) is None
    assert records.find(spec("a", accepts_failed=True)) is not None


@pytest.mark.clause("records-cancel")
@pytest.mark.parametrize("has_roles", [False, True], ids=["one-user", "roles"])
def test_cancelling_is_priority_zero_and_can_be_undone(
    has_roles: bool, url: str, client: Client, role: Client
) -> None:
    if has_roles and url.startswith("sqlite"):
        pytest.skip("an SQLite database has no users")
    server = client("server")
    user = role("ca") if has_roles else client("ca")
    request = user.submit(spec("a"), priority=3)
    prepare_round(server)
    execution = user.request(request.id).execution or ""
    start(server, execution)

    cancelled = user.cancel(request.id)
    prepare_round(server)
    assert (cancelled.state, cancelled.priority) == (RequestState.CANCELLED, 0)
    assert (server.execution(execution).state, server.execution(execution).priority) == (
        ExecutionState.RUNNING,
        0,
    )
    wanted_again = user.set_priority(request.id, 2)
    prepare_round(server)

    assert wanted_again.state is RequestState.COMMITTED
    assert server.execution(execution).priority == 2
    finish(server, execution)
    assert user.request(request.id).outcome == "complete"


def test_a_new_request_during_a_cancellation_gets_another_execution(records: Records, clock: Clock) -> None:
    request, other = records.submit(spec("a")), records.submit(spec("a"))
    first = request.execution or ""
    start(records, first)
    for it in (request, other):
        records.cancel(it.id)
    with records.database.writing() as tx:
        assert give_up(tx, records.execution(first))

    clock.advance(1)
    records.set_priority(request.id, 1)
    clock.advance(1)
    with records.database.writing() as tx:
        move(tx, first, ExecutionState.CANCELLED, reason="cancelled")
    prepare_round(records)

    now = records.request(request.id)
    assert (now.state, now.outcome) == (RequestState.COMMITTED, None)
    assert now.execution not in {None, first}
    assert records.execution(now.execution or "").priority == 1
    assert records.request(other.id).outcome == "cancelled"
    assert all(it.end is not None for it in records.usage(execution=first))


def end_without_result(records: Records, execution: str | None, reason: str) -> None:
    with records.database.writing() as tx:
        assert move(tx, execution or "", ExecutionState.CANCELLED, reason=reason)


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("invalid", "failed"),
        ("submit", "failed"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
        ("canceled", "cancelled"),
        ("unwanted", "cancelled"),
        ("tmp_capacity", "failed"),
        *[(it.value, "failed") for it in Reason if it is not Reason.CANCELLED],
    ],
)
def test_an_end_without_a_result_is_a_failure_unless_the_job_was_cancelled(
    records: Records, reason: str, outcome: str
) -> None:
    request = records.submit(spec())

    end_without_result(records, request.execution, reason)

    assert records.request(request.id).shown_state == outcome
    execution = records.execution(request.execution or "")
    assert formatting.state(execution) == f"{outcome} ({reason})"
    event = records.events(execution=execution.id)[-2]
    assert (event.kind, formatting.event_data(event)["state"]) == ("state", outcome)
    (refused,) = records.preview(spec()).near_misses
    verb = "failed" if outcome == "failed" else "was cancelled"
    assert f"it {verb} ({reason})" in refused.objections


@pytest.mark.parametrize("reason", [None, *Reason], ids=str)
@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELED])
def test_a_job_that_was_not_cancelled_has_failed(
    clock: Clock, state: JobState, reason: Reason | None
) -> None:
    end = end_of(JobStatus(state, reason=reason), attempts_left=0)
    execution = Execution(
        id="e", fingerprint="", preimage="", state=end.state, reason=end.reason, created_at=clock()
    )

    was_cancelled = reason is Reason.CANCELLED or (reason is None and state is JobState.CANCELED)
    assert execution.failed_without_result is not was_cancelled


def test_the_history_calls_only_an_end_without_a_result_a_failure(records: Records) -> None:
    request = records.submit(spec())
    start(records, request.execution or "")
    with records.database.writing() as tx:
        move(tx, request.execution or "", ExecutionState.COMPLETE, exit_code=1, reason="exit_code")

    found = [it for it in records.events(execution=request.execution) if it.kind == "state"]

    assert [formatting.event_data(it)["state"] for it in found][-2:] == ["running", "complete"]


def test_a_request_that_its_user_has_cancelled_stays_so_if_its_job_fails(records: Records) -> None:
    mine, other = records.submit(spec()), records.submit(spec())
    records.cancel(mine.id)

    end_without_result(records, mine.execution, "node_fail")

    assert records.request(mine.id).outcome == "cancelled"
    assert records.request(other.id).outcome == "failed"


def test_a_request_behind_one_without_a_result_reads_why(records: Records) -> None:
    first = records.submit(spec())
    end_without_result(records, first.execution, "timeout")

    later = records.submit(spec("later", after=[first.id]))

    (refused,) = [it for it in records.events(request=later.id) if it.kind == "refused"]
    assert refused.data["why"].endswith("but it is failed (timeout)")


def test_a_cancelled_pending_execution_is_held_and_can_be_resumed(records: Records) -> None:
    request = records.submit(spec("a"))

    records.cancel(request.id)
    assert records.execution(request.execution or "").state is ExecutionState.QUEUED
    records.set_priority(request.id, 1)

    assert records.execution(request.execution or "").priority == 1


def test_a_request_with_priority_zero_is_cancelled_only_if_its_user_has_set_that(records: Records) -> None:
    held, cancelled = records.submit(spec("a"), priority=0), records.submit(spec("b"), priority=-1)

    records.cancel(cancelled.id)

    assert records.request(held.id).state is RequestState.COMMITTED
    assert records.request(cancelled.id).state is RequestState.CANCELLED


def test_a_cancelled_request_that_expires_stays_cancelled(records: Records, clock: Clock) -> None:
    request = records.submit(spec("a"), About(expires_at=clock() + timedelta(seconds=10)))
    records.cancel(request.id)

    clock.advance(10)
    prepare_round(records)

    assert records.request(request.id).outcome == "cancelled"
    assert records.execution(request.execution or "").state is ExecutionState.CANCELLED


@pytest.mark.clause("records-modified")
def test_each_change_records_its_user_and_time(client: Client, clock: Clock) -> None:
    server, user = client("server"), client("ca")
    found = []

    def note(request: Request) -> None:
        found.append((request.modified_by, (request.modified_at - begun).seconds))

    begun = clock()
    request = user.draft(spec("a"))
    note(request)
    for change in (user.satisfy, user.reset, user.commit):
        clock.advance(1)
        note(change(request.id))
    clock.advance(1)
    start(server, user.request(request.id).execution or "")
    finish(server, user.request(request.id).execution or "")
    note(user.request(request.id))

    assert found == [("ca", 0), ("ca", 1), ("ca", 2), ("ca", 3), ("server", 4)]


def lease(records: Records, execution: str) -> None:
    """Renew the lease of an execution, as its dispatcher does."""
    with records.database.writing() as tx:
        now = records.now()
        assert executions.change(tx, execution, holder="it", lease_until=now)


@pytest.mark.clause("records-modified")
def test_each_change_of_an_execution_records_its_user_and_time(client: Client, clock: Clock) -> None:
    server, user, begun = client("server"), client("ca"), clock()
    request = user.submit(spec("a"))
    execution = request.execution or ""
    clock.advance(1)
    changes: dict[str, Callable[[], object]] = {
        "made": lambda: None,
        "started": lambda: start(server, execution),
        "leased": lambda: lease(server, execution),
        "progress": lambda: server.set_progress(execution, 0.5),
        "wanted more": lambda: user.set_priority(request.id, 2),
        "wanted as much": lambda: user.submit(spec("a")),
        "ended": lambda: finish(server, execution),
        "wrong": lambda: user.invalidate(execution),
    }

    found = {}
    for name, change in changes.items():
        change()
        it = user.execution(execution)
        found[name] = (it.modified_by, (it.modified_at - begun).seconds)
        clock.advance(1)

    assert found == {
        "made": ("ca", 0),
        "started": ("server", 2),
        "leased": ("server", 2),
        "progress": ("server", 4),
        "wanted more": ("ca", 5),
        "wanted as much": ("ca", 5),
        "ended": ("server", 7),
        "wrong": ("ca", 8),
    }
    conditions = [["modified_by", "=", "ca"], ["modified_at", "<", "2026-01-01T00:00:08"]]
    (wrong,) = filters.unmet_filters(conditions, user.execution(execution))
    assert wrong.startswith("its modified_at is 2026-01-01 00:00:08")


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Records]:
    with Records(tmp_path / "real", user="ca") as records:
        yield records


def executed(records: Records, script: str, **more: Any) -> Execution:
    request = records.submit(spec("sh", "-c", script, **more))
    dispatcher = Dispatcher(records)
    dispatcher.run(until_idle=True)
    dispatcher.close()
    return records.execution(request.execution or "")


def test_a_job_that_ended_before_the_first_poll_has_run(
    real: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dispatcher, "_has_started", lambda *_: pytest.fail("it was seen"))
    follow = Dispatcher._follow
    monkeypatch.setattr(Dispatcher, "_follow", lambda it, held: (held.job.wait(), follow(it, held)))

    execution = executed(real, "sleep 0.3")

    assert execution.started_at is not None
    assert execution.finished_at is not None
    assert (execution.finished_at - execution.started_at).total_seconds() >= 0.25
    states = [it.state.value for it in real.usage(execution=execution.id)]
    assert states[-1] == "running"
    assert all(it.end is not None and it.end >= it.start for it in real.usage(execution=execution.id))
    history = [it.data["state"] for it in real.events(execution=execution.id) if it.kind == "state"]
    assert history == ["claimed", "running", "complete"]


def test_a_job_that_could_not_start_has_not_run(real: Records) -> None:
    execution = executed(real, "true", placement={"executor": "no-such"})

    assert execution.started_at is None


def test_a_job_reports_its_failure_in_its_file(real: Records) -> None:
    execution = executed(real, 'echo 0.5 >"$JPSI_PROGRESS"; echo failure no input >>"$JPSI_PROGRESS"')

    assert (execution.exit_code, execution.has_failed) == (0, True)
    assert execution.status == {"reported": "failure", "error": "no input"}
    assert [it.outcome for it in real.requests()] == ["failed"]


def test_a_failure_that_another_process_reports_outlasts_progress(
    real: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, go = Dispatcher._note_progress, tmp_path / "go"

    def noted(it: Dispatcher, held: Any) -> None:
        note(it, held)
        if held.execution.progress == 0.5 and not go.exists():
            real.set_progress(held.execution.id, report=Report(is_success=False, message="wrong input"))
            go.touch()

    monkeypatch.setattr(Dispatcher, "_note_progress", noted)
    wait = f"until [ -e {go} ]; do sleep 0.1; done"

    execution = executed(real, f'echo 0.5 >"$JPSI_PROGRESS"; {wait}; echo 0.7 >"$JPSI_PROGRESS"')

    assert execution.status == {"reported": "failure", "error": "wrong input"}
    assert [it.outcome for it in real.requests()] == ["failed"]


def test_priorities_settle_in_any_order(records: Records) -> None:
    """The walk may reach a child through one parent before another parent has its new priority."""
    top = records.submit(spec("top"), priority=5)
    child = records.submit(spec("child"), About(parent=top.execution), priority=1)
    parent = records.submit(spec("parent"), About(parent=top.execution), priority=1)
    again = records.submit(spec("child"), About(parent=parent.execution), priority=1)
    assert again.execution == child.execution

    settled = []
    for priority in (5, 2, 7):
        records.set_priority(top.id, priority)
        settled.append({records.execution(it.execution or "").priority for it in (top, parent, child)})

    assert settled == [{5}, {2}, {7}]

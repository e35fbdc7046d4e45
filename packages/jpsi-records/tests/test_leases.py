"""The leases of dispatchers on executions, and their successors."""

from __future__ import annotations

import itertools
import logging
from datetime import timedelta
from typing import Any

import pytest

from fake_dispatcher import Clock, spec
from forked_jpsi import run_program
from jpsi_records.dispatch import dispatcher as dispatcher_module
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.dispatch.leases import Leases
from jpsi_records.model.entities import Attempt, Execution, ExecutionState
from jpsi_records.records.records import Records
from jpsi_records.store import executions
from jpsi_records.store.file_lock import name_of_this_process, process_has_ended
from jpsi_records.store.ledger import give_up, move

LEASE = timedelta(seconds=60)
NAMING = "from jpsi_records.store.file_lock import name_of_this_process; print(name_of_this_process())"


def name_of_ended_process() -> str:
    done = run_program(NAMING)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def leased(records: Records, holder: str, native_id: str | None = "1") -> Execution:
    """Return an execution that a dispatcher has leased, and that has a job if given a native id."""
    leases = Leases(records, LEASE)
    leases.holder = holder
    execution_id = records.submit(spec("true")).execution or ""
    assert leases.take(records.execution(execution_id))
    with records.database.writing() as tx:
        executions.add_attempt(
            tx,
            Attempt(
                id="1",
                execution=execution_id,
                number=1,
                executor="local",
                job="1",
                state="NEW",
                native_id=native_id,
                created_at=records.now(),
            ),
        )
    return records.execution(execution_id)


def test_the_lease_of_an_ended_process_is_taken_immediately(records: Records) -> None:
    held = leased(records, name_of_ended_process())
    one, other = Leases(records, LEASE), Leases(records, LEASE)
    assert [it.id for it in one.due()] == [it.id for it in other.due()] == [held.id]

    assert [one.take(held), other.take(held)] == [True, False]

    assert records.execution(held.id).holder == one.holder
    assert other.due() == []


@pytest.mark.parametrize("changed", [0, 1, 2], ids=["host", "boot", "who counts pids"])
def test_the_lease_of_a_process_on_another_machine_is_respected_until_it_expires(
    records: Records, clock: Clock, changed: int
) -> None:
    words = name_of_ended_process().split()
    words[changed] = "host2"
    held = leased(records, " ".join(words))
    leases = Leases(records, LEASE)

    assert (leases.due(), leases.take(held)) == ([], False)
    assert leases.other(held) == f"process {words[3]} on {words[0]}"

    clock.advance(60)
    assert [it.id for it in leases.due()] == [held.id]
    assert leases.take(held)


def test_the_lease_of_a_running_process_is_respected(records: Records) -> None:
    held = leased(records, name_of_this_process())
    leases = Leases(records, LEASE)

    assert (leases.due(), leases.take(held)) == ([], False)


def test_a_job_that_may_still_be_submitted_is_waited_for(records: Records, clock: Clock) -> None:
    """The submit command may outlive its dispatcher, and must not be overtaken."""
    held = leased(records, name_of_ended_process(), native_id=None)
    leases = Leases(records, LEASE)

    assert (leases.due(), leases.take(held), leases.awaited()) == ([], False, [held])

    clock.advance(60)
    assert (leases.due(), leases.awaited()) == ([held], [])


def test_a_lease_of_another_machine_is_not_waited_for(records: Records) -> None:
    """Its dispatcher may run, and then it runs the execution itself."""
    host, *words = name_of_ended_process().split()
    leased(records, " ".join([f"not-{host}", *words]), native_id=None)

    assert Leases(records, LEASE).awaited() == []


def run_until_idle(records: Records) -> None:
    dispatcher = Dispatcher(records)
    dispatcher.run(until_idle=True)
    dispatcher.close()


def test_a_dispatcher_that_ends_when_idle_waits_for_a_job_that_may_still_be_submitted(
    records: Records, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    held = leased(records, name_of_ended_process(), native_id=None)
    step, rounds = Dispatcher.step, itertools.count()

    def step_in_time(dispatcher: Dispatcher) -> bool:
        clock.advance(60 if next(rounds) == 2 else 0)
        return step(dispatcher)

    monkeypatch.setattr(Dispatcher, "step", step_in_time)
    monkeypatch.setattr(dispatcher_module, "_ROUND_SECONDS", 0.01)
    caplog.set_level(logging.INFO, "jpsi_records")
    run_until_idle(records)

    found = records.execution(held.id)
    assert (found.state, found.exit_code) == (ExecutionState.COMPLETE, 0)
    assert [it.state for it in records.attempts(held.id)] == ["NEVER", "COMPLETED"]
    waits = [it.getMessage() for it in caplog.records if "killed" in it.getMessage()]
    assert len(waits) == 1
    assert waits[0].startswith(f"execution {held.id}: its dispatcher was killed while it submitted the job; ")


def test_a_lease_that_expires_in_a_round_is_seen_in_that_round(
    records: Records, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = leased(records, name_of_ended_process(), native_id=None)
    read, readings = Leases._abandoned, itertools.count()

    def read_in_time(leases: Leases, *args: Any) -> list[Execution]:
        found = read(leases, *args)
        clock.advance(60 if next(readings) == 0 else 0)
        return found

    monkeypatch.setattr(Leases, "_abandoned", read_in_time)
    monkeypatch.setattr(dispatcher_module, "_ROUND_SECONDS", 0.01)
    run_until_idle(records)

    assert records.execution(held.id).state is ExecutionState.COMPLETE


def test_a_released_lease_is_due_immediately(records: Records) -> None:
    mine, next_ = Leases(records, LEASE), Leases(records, LEASE)
    held = leased(records, mine.holder)
    assert next_.due() == []

    mine.release_all()

    assert [it.id for it in next_.due()] == [held.id]
    assert next_.take(next_.due()[0])
    assert records.execution(held.id).state is ExecutionState.CLAIMED
    mine.release_all()
    assert records.execution(held.id).holder == next_.holder


def test_an_execution_that_was_given_up_and_waits_again_runs_once(records: Records) -> None:
    """It has no job that is being cancelled: it is held until its request is wanted again."""
    leases = Leases(records, LEASE)
    request = records.submit(spec("true"))
    execution = records.execution(request.execution or "")
    assert leases.take(execution)
    records.cancel(request.id)
    with records.database.writing() as tx:
        assert give_up(tx, execution)

    leases.release_all()

    found = records.execution(execution.id)
    assert (found.state, found.holder, found.reason) == (ExecutionState.QUEUED, None, None)
    assert leases.due() == []
    records.set_priority(request.id, 1)
    with records.database.writing() as tx:
        move(tx, execution.id, ExecutionState.CANCELLED, reason="timeout")
    assert records.request(request.id).outcome == "failed"


def test_a_hidden_process_is_not_known_to_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    name = name_of_this_process()
    assert not process_has_ended(name)

    monkeypatch.setattr("jpsi_records.store.file_lock._started", lambda _pid: None)
    assert not process_has_ended(name)


def test_an_execution_without_a_job_waits_again_after_its_dispatcher_was_interrupted(
    records: Records,
) -> None:
    leases = Leases(records, LEASE)
    execution_id = records.submit(spec("true")).execution or ""
    assert leases.take(records.execution(execution_id))

    leases.release_all()

    found = records.execution(execution_id)
    assert (found.state, found.holder, found.lease_until) == (ExecutionState.QUEUED, None, None)
    assert [it.id for it in leases.due()] == [execution_id]

"""Jobs of cancelled requests that end though no dispatcher runs."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import jpsi
from fake_dispatcher import spec
from forked_jpsi import run_program
from jpsi_records.commands import cancellation
from jpsi_records.commands.command import COMMANDS
from jpsi_records.dispatch import dispatcher as dispatcher_module
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.dispatch.leases import Leases
from jpsi_records.jobs.attempt_job import AttemptFiles
from jpsi_records.model.entities import About, Execution, ExecutionState, Request
from jpsi_records.records.records import Records
from jpsi_records.store.database import Database
from kill_instants import TICKING

LEASE = timedelta(seconds=60)
# The instants at which the script ENDING can be killed; a test counts them.
INSTANTS = 14


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    """Return records with real time, as jobs run in it."""
    with Records(tmp_path / "records") as records:
        yield records


@pytest.fixture
def left(records: Records, tmp_path: Path) -> Iterator[Request]:
    """Yield a request whose job runs, and whose dispatcher was interrupted; the job ends with the test."""
    script = f"echo ran >>{tmp_path}/runs; until [ -e {tmp_path}/go ]; do sleep 0.05; done"
    request = records.submit(spec("sh", "-c", script))
    dispatcher = Dispatcher(records)
    while execution_of(records, request).state is not ExecutionState.RUNNING:
        dispatcher.step()
    dispatcher.close()
    yield request
    (tmp_path / "go").touch()


def execution_of(records: Records, request: Request) -> Execution:
    return records.execution(request.execution or "")


def end_job(records: Records, request: Request, is_over: Callable[[], bool] = lambda: False) -> Execution:
    dispatcher = Dispatcher(records)
    try:
        dispatcher.end_unwanted(request.execution or "", is_over=is_over)
    finally:
        dispatcher.close()
    return execution_of(records, request)


def runs_on(records: Records, request: Request) -> bool:
    """Return True if the job of a request runs, and the next dispatcher can take it over at once."""
    found = execution_of(records, request)
    return found.state is ExecutionState.RUNNING and found.holder is None


def was_given_up(records: Records, request: Request) -> bool:
    return "given up" in [it.kind for it in records.events(execution=request.execution)]


def test_the_job_ends_and_nothing_else_begins(records: Records, left: Request) -> None:
    waits = records.submit(spec("true"))
    records.cancel(left.id)

    found = end_job(records, left)

    assert (found.state, found.reason, found.holder) == (ExecutionState.CANCELLED, "cancelled", None)
    assert records.request(left.id).outcome == "cancelled"
    assert [it.state for it in records.attempts(found.id)] == ["CANCELED"]
    assert execution_of(records, waits).state is ExecutionState.QUEUED
    assert records.attempts(waits.execution or "") == []
    assert records.dispatchers() == []


def test_a_job_that_waits_in_the_queue_ends(records: Records) -> None:
    request = records.submit(spec("sleep", "60"))
    dispatcher = Dispatcher(records)
    assert dispatcher._leases.take(execution_of(records, request))
    dispatcher._reconcile(request.execution or "")
    dispatcher.close()
    assert execution_of(records, request).state is ExecutionState.CLAIMED
    records.cancel(request.id)

    assert end_job(records, request).state is ExecutionState.CANCELLED

    assert records.request(request.id).outcome == "cancelled"


def test_a_job_that_another_request_needs_runs_on(records: Records, left: Request) -> None:
    records.submit(left.spec)
    records.cancel(left.id)

    end_job(records, left)

    assert runs_on(records, left)
    assert not was_given_up(records, left)


@pytest.mark.parametrize("may_dispatch", [True, False], ids=["by a dispatcher's user", "by another role"])
def test_a_job_that_is_needed_again_at_the_last_moment_runs_on(
    records: Records, left: Request, monkeypatch: pytest.MonkeyPatch, *, may_dispatch: bool
) -> None:
    take = Leases.take

    def wanted(leases: Leases, execution: Execution) -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(Records, "may_dispatch", may_dispatch)
            records.set_priority(left.id, 1)
        return take(leases, execution)

    monkeypatch.setattr(Leases, "take", wanted)
    records.cancel(left.id)

    end_job(records, left)

    assert runs_on(records, left)
    assert not was_given_up(records, left)


def test_a_dispatcher_that_runs_ends_the_job(records: Records, left: Request) -> None:
    records.cancel(left.id)
    Leases(records, LEASE).renew([])

    end_job(records, left)

    assert runs_on(records, left)


def test_two_that_end_one_job_do_so_once(
    records: Records, left: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second waits for the first, and goes on if that is interrupted."""
    monkeypatch.setattr(dispatcher_module, "_ROUND_SECONDS", 0)
    records.cancel(left.id)
    first = Leases(records, LEASE)
    assert first.take(execution_of(records, left))
    holders = []

    def is_over() -> bool:
        holders.append(execution_of(records, left).holder)
        if len(holders) == 3:
            first.release_all()
        return False

    found = end_job(records, left, is_over)

    assert holders[:3] == [first.holder] * 3
    assert (found.state, found.reason) == (ExecutionState.CANCELLED, "cancelled")


def test_a_result_that_was_there_before_is_recorded(records: Records, left: Request, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    (attempt,) = records.attempts(left.execution or "")
    with jpsi.JobExecutor(attempt.executor) as executor:
        (job,) = executor.recall([attempt.job])
        job.wait(60)
    records.cancel(left.id)

    found = end_job(records, left)

    assert (found.state, found.exit_code) == (ExecutionState.COMPLETE, 0)
    assert records.request(left.id).outcome == "complete"


def test_the_wait_for_the_end_is_bounded(records: Records, left: Request) -> None:
    records.cancel(left.id)

    end_job(records, left, lambda: True)

    assert runs_on(records, left)


class Killed(BaseException):
    """The end of a process."""


class Never(jpsi.JobExecutor):
    """An executor in whose submissions a dispatcher is killed."""

    def submit(self, _: jpsi.Job) -> None:
        raise Killed


def submitting(records: Records) -> Request:
    """Return a cancelled request whose dispatcher was killed before it submitted the job."""
    request = records.submit(spec("true"))
    with pytest.raises(Killed):
        Dispatcher(records, executors=Never, lease=timedelta(0)).step()
    records.cancel(request.id)
    return request


@pytest.mark.parametrize("known", [[], [jpsi.Job()]], ids=["no record", "a record"])
def test_a_job_that_was_never_submitted_is_not_submitted(
    records: Records, monkeypatch: pytest.MonkeyPatch, known: list[jpsi.Job]
) -> None:
    request = submitting(records)

    with monkeypatch.context() as patch:
        patch.setattr(jpsi.JobExecutor, "recall", lambda *_: known)
        patch.setattr(jpsi.JobExecutor, "submit", lambda *_: pytest.fail("it was submitted"))
        found = end_job(records, request)

    assert (found.state, found.holder, found.priority) == (ExecutionState.QUEUED, None, 0)
    (attempt,) = records.attempts(found.id)
    assert attempt.state == "NEVER"
    assert AttemptFiles(records.attempt_directory(attempt)).claim.exists()

    records.set_priority(request.id, 1)
    Dispatcher(records).run(until_idle=True)
    assert records.request(request.id).outcome == "complete"
    assert len(records.attempts(found.id)) == 2


def test_a_job_that_its_executor_does_not_know_and_that_runs_is_left_to_the_next_dispatcher(
    records: Records, left: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    records.cancel(left.id)
    monkeypatch.setattr(jpsi.JobExecutor, "recall", lambda *_: [])

    with pytest.raises(jpsi.SubmitException, match="knows no job"):
        end_job(records, left)

    assert runs_on(records, left)
    assert [it.ended_at for it in records.attempts(left.execution or "")] == [None]


@pytest.mark.parametrize("method", ["recall", "cancel"])
def test_a_job_that_cannot_be_reached_runs_on_and_can_be_ended_later(
    records: Records, left: Request, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def fail(*_: object) -> None:
        raise jpsi.SubmitException("the host does not answer")

    records.cancel(left.id)

    with monkeypatch.context() as patch:
        patch.setattr(jpsi.JobExecutor, method, fail)
        with pytest.raises(jpsi.SubmitException, match="does not answer"):
            end_job(records, left)

    assert runs_on(records, left)
    assert end_job(records, left).state is ExecutionState.CANCELLED
    assert len(records.attempts(left.execution or "")) == 1


ENDING = f"""\
{TICKING}
directory, request, instant = sys.argv[1], sys.argv[2], int(sys.argv[3])
jpsi.JobExecutor.cancel = ticking(jpsi.JobExecutor.cancel)
Materializer.capture = ticking(Materializer.capture)
records = Records(directory)
Dispatcher(records).end_unwanted(records.cancel(request).execution)
print(count)
"""


def ending(records: Records, request: Request, instant: int) -> subprocess.CompletedProcess[str]:
    """Run the script that cancels a request, which is killed at an instant; 0 is never."""
    return run_program(ENDING, records.directory, request.id, str(instant))


def test_the_kills_are_tried_at_each_instant(records: Records, left: Request) -> None:
    assert int(ending(records, left, 0).stdout) == INSTANTS

    assert execution_of(records, left).state is ExecutionState.CANCELLED


@pytest.mark.parametrize("instant", range(1, INSTANTS + 1))
def test_whenever_the_command_is_killed_another_ends_the_job(
    records: Records, left: Request, tmp_path: Path, instant: int
) -> None:
    assert ending(records, left, instant).returncode == -signal.SIGKILL

    records.cancel(left.id)
    end_job(records, left)

    assert records.request(left.id).outcome == "cancelled"
    assert execution_of(records, left).state is ExecutionState.CANCELLED
    assert [it.state for it in records.attempts(left.execution or "")] == ["CANCELED"]
    assert (tmp_path / "runs").read_text() == "ran\n"


Cancel = Callable[[Request], tuple[str, str]]
SetPriority = Callable[[Request, int], tuple[str, str]]
RUNS_ON = "no dispatcher runs, without which no request ends; start one by `jpsi request dispatch"


@pytest.fixture
def cancel(records: Records, capsys: pytest.CaptureFixture[str]) -> Cancel:
    """Return a function that runs `jpsi request cancel` and returns what it prints."""

    def cancel_(request: Request) -> tuple[str, str]:
        words = ["--records", str(records.directory), request.id]
        assert not COMMANDS["cancel"].main(words, standalone_mode=False)
        return capsys.readouterr()

    return cancel_


@pytest.fixture
def set_priority(records: Records, capsys: pytest.CaptureFixture[str]) -> SetPriority:
    """Return a function that runs `jpsi request priority` and returns what it prints."""

    def set_priority_(request: Request, priority: int) -> tuple[str, str]:
        words = ["--records", str(records.directory), "--", request.id, str(priority)]
        assert not COMMANDS["priority"].main(words, standalone_mode=False)
        return capsys.readouterr()

    return set_priority_


@pytest.mark.parametrize("priority", [0, -1])
def test_a_priority_of_zero_or_less_ends_the_job_as_well(
    records: Records, left: Request, set_priority: SetPriority, priority: int
) -> None:
    ended = f"jpsi: execution {left.execution}, cancelled (cancelled)\n"

    assert set_priority(left, priority) == (f"{left.id}\n", ended)

    assert records.request(left.id).outcome == "cancelled"
    assert records.request(left.id).priority == priority


def test_a_priority_of_zero_says_that_a_job_that_cannot_be_reached_runs_on(
    records: Records, left: Request, set_priority: SetPriority, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise jpsi.SubmitException("the host does not answer")

    monkeypatch.setattr(jpsi.JobExecutor, "cancel", fail)

    _, stderr = set_priority(left, 0)

    assert f"jpsi: its job runs on: {RUNS_ON}" in stderr
    assert runs_on(records, left)


def test_a_job_whose_priority_stays_above_zero_runs_on(
    records: Records, left: Request, set_priority: SetPriority
) -> None:
    set_priority(left, 2)

    assert runs_on(records, left)


def test_the_command_says_that_the_priority_was_raised_meanwhile(
    records: Records, left: Request, cancel: Cancel, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = Leases.take

    def wanted(leases: Leases, execution: Execution) -> bool:
        records.set_priority(left.id, 1)
        return take(leases, execution)

    monkeypatch.setattr(Leases, "take", wanted)

    why = "its priority was raised meanwhile"
    assert cancel(left) == (f"request {left.id} was not cancelled: {why}\n", "")

    assert runs_on(records, left)


def test_the_command_says_that_the_job_has_ended(records: Records, left: Request, cancel: Cancel) -> None:
    text = f"request {left.id}: execution {left.execution}, cancelled\n"

    assert cancel(left) == (text, "")

    assert records.request(left.id).outcome == "cancelled"
    assert cancel(left) == (f"request {left.id} is over already: cancelled\n", "")


def test_the_command_says_that_there_was_a_result_before(
    left: Request, tmp_path: Path, cancel: Cancel, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow = Dispatcher._follow

    def ended(dispatcher: Dispatcher, held: Any) -> None:
        (tmp_path / "go").touch()
        held.job.wait()
        follow(dispatcher, held)

    monkeypatch.setattr(Dispatcher, "_follow", ended)

    why = "its job had ended before, complete with exit code 0"
    assert cancel(left) == (f"request {left.id} was not cancelled: {why}\n", "")


def test_the_command_waits_no_longer_than_some_seconds(
    records: Records, left: Request, cancel: Cancel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancellation, "_END_SECONDS", -1)

    _, stderr = cancel(left)

    follow = f"`jpsi request dispatch --records {records.directory} --until-idle` waits for it and records it"
    unknown = "the request is cancelled, and the end of its job is not known yet"
    assert stderr == f"jpsi: {unknown}; {follow}\n"


def test_the_command_says_that_a_job_that_cannot_be_reached_runs_on(
    records: Records, left: Request, cancel: Cancel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise jpsi.SubmitException("the host does not answer")

    monkeypatch.setattr(jpsi.JobExecutor, "cancel", fail)

    _, stderr = cancel(left)

    first, second = stderr.splitlines()
    assert first == "jpsi: the host does not answer"
    assert second.startswith(f"jpsi: its job runs on: {RUNS_ON}")
    assert runs_on(records, left)


def test_a_user_who_may_not_dispatch_reads_that_the_job_runs_on(
    records: Records, left: Request, cancel: Cancel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dispatcher, "end_unwanted", lambda *_, **__: pytest.fail("it dispatches"))
    # the transaction of such a user does not change the execution, a dispatcher does
    records.cancel(left.id)
    monkeypatch.setattr(Records, "may_dispatch", False)
    monkeypatch.setattr(Database, "owner", "server", raising=False)

    _, stderr = cancel(left)

    assert stderr.startswith(
        "jpsi: its job runs on: no dispatcher runs, without which no request ends; server"
    )


def test_the_command_says_that_the_jobs_that_its_job_has_requested_run_on(
    records: Records, left: Request, cancel: Cancel
) -> None:
    child = records.submit(spec("sleep", "60"), About(parent=left.execution))
    dispatcher = Dispatcher(records)
    while execution_of(records, child).state is not ExecutionState.RUNNING:
        dispatcher.step()
    dispatcher.close()

    _, stderr = cancel(left)

    assert stderr.startswith(f"jpsi: jobs that it has requested run on: {RUNS_ON}")
    Dispatcher(records).run(until_idle=True)
    assert execution_of(records, child).state is ExecutionState.CANCELLED


def test_an_interrupted_command_says_how_to_follow_the_job(
    records: Records, left: Request, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dispatcher, "_follow", lambda *_: signal.raise_signal(signal.SIGINT))

    with pytest.raises(KeyboardInterrupt):
        cancellation.cancel(records, left.id)

    assert capsys.readouterr().err.startswith("jpsi: interrupted: the request is cancelled, and the end of")
    assert runs_on(records, left)

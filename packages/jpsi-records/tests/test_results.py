"""Jobs that wait for their own requests."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_dispatcher import finish, prepare_round, spec, start
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.dispatch.intake import process_inbox, write_results
from jpsi_records.errors import InvalidRequestError, StateError, StoreError
from jpsi_records.inbox.inbox import Inbox
from jpsi_records.inbox.results import RequestResult, read_result, result_path
from jpsi_records.model.entities import Execution, ExecutionState
from jpsi_records.records.records import Records
from jpsi_records.store.ledger import move


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


def running(records: Records) -> str:
    execution = records.submit(spec("parent")).execution or ""
    start(records, execution)
    return execution


def of_job(execution: str, inbox: Path) -> Inbox:
    return Inbox({"JPSI_EXECUTION": execution, "JPSI_INBOX": str(inbox)})


@pytest.mark.parametrize(("exit_code", "outcome"), [(0, "complete"), (3, "failed")])
def test_a_job_reads_the_outcome_of_its_request(
    records: Records, inbox: Path, exit_code: int, outcome: str
) -> None:
    parent = running(records)
    job = of_job(parent, inbox)
    child = job.submit(spec("child"))

    def view(_: float) -> None:
        process_inbox(records, parent, inbox)
        prepare_round(records)
        assert not result_path(inbox, child).exists()
        finish(records, records.request(child).execution or "", exit_code, output="sha256:" + "0" * 64)
        for _ in range(2):
            write_results(records, parent, inbox)

    (result,) = job.wait(child, sleep=view) or [None]

    assert result == RequestResult(
        request=child, outcome=outcome, exit_code=exit_code, output="sha256:" + "0" * 64
    )
    process_inbox(records, parent, inbox)
    assert [it.kind for it in records.events(execution=parent) if it.kind == "refused"] == []


def test_a_job_reads_why_its_request_has_no_result(records: Records, inbox: Path) -> None:
    parent = running(records)
    child = of_job(parent, inbox).submit(spec("child"))
    process_inbox(records, parent, inbox)
    prepare_round(records)
    with records.database.writing() as tx:
        values = {"reason": "executable", "status": {"error": "child was not found"}}
        move(tx, records.request(child).execution or "", ExecutionState.CANCELLED, **values)

    write_results(records, parent, inbox)

    (found,) = of_job(parent, inbox).wait(child) or [None]
    why = "executable: child was not found"
    assert found == RequestResult(request=child, outcome="failed", why=why)


def cancelled_child(records: Records, parent: str, inbox: Path) -> str:
    """Return a request of a job that its user has cancelled, with its result in the inbox."""
    child = of_job(parent, inbox).submit(spec("child"))
    process_inbox(records, parent, inbox)
    prepare_round(records)
    records.cancel(child)
    write_results(records, parent, inbox)
    return child


def test_a_cancelled_request_does_not_block_its_job(records: Records, inbox: Path) -> None:
    parent = running(records)

    child = cancelled_child(records, parent, inbox)

    found = of_job(parent, inbox).wait(child, sleep=lambda _: pytest.fail("it waits"))
    assert found == [RequestResult(request=child, outcome="cancelled")]


def test_a_job_waits_for_a_request_whose_cancellation_is_taken_back(records: Records, inbox: Path) -> None:
    parent = running(records)
    child = cancelled_child(records, parent, inbox)

    records.set_priority(child, 1)
    write_results(records, parent, inbox)

    assert not result_path(inbox, child).exists()


def test_the_end_of_a_request_that_was_cancelled_replaces_its_result(records: Records, inbox: Path) -> None:
    """Both may happen between two rounds of the dispatcher."""
    parent = running(records)
    child = cancelled_child(records, parent, inbox)

    records.set_priority(child, 1)
    finish(records, records.request(child).execution or "")
    write_results(records, parent, inbox)

    assert of_job(parent, inbox).wait(child) == [
        RequestResult(request=child, outcome="complete", exit_code=0)
    ]


def test_a_refused_request_does_not_block_its_job(records: Records, inbox: Path) -> None:
    parent = running(records)
    job = of_job(parent, inbox)
    child = job.submit(spec("child", after=["nothing"]))
    process_inbox(records, parent, inbox)

    (result,) = job.wait(child) or [None]

    assert result is not None
    assert (result.outcome, "there is no request nothing" in result.why) == ("refused", True)


@pytest.mark.parametrize("wrong", ["", "nonsense", "01a20793", "../x"])
def test_waiting_for_an_incomplete_id_is_refused(records: Records, inbox: Path, wrong: str) -> None:
    job = of_job(running(records), inbox)

    with pytest.raises(InvalidRequestError, match="whole id"):
        job.wait(wrong, sleep=lambda _: pytest.fail("it waits"))


def test_waiting_ends_at_the_timeout(records: Records, inbox: Path) -> None:
    times = iter([0.0, 1.0, 2.0, 3.0])

    job = of_job("x", inbox)

    child = job.submit(spec("child"))

    assert job.wait(child, timeout=2, sleep=lambda _: None, clock=lambda: next(times)) is None
    assert next(times) == 3
    with pytest.raises(StateError, match="JPSI_INBOX is not set"):
        Inbox({"JPSI_EXECUTION": "x"}).wait("a")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"v": 2}', '{"v": 1, "x": 1}'], ids=repr)
def test_an_invalid_result_is_reported(inbox: Path, text: str) -> None:
    path = result_path(inbox, "a")
    path.parent.mkdir()
    path.write_text(text)

    with pytest.raises(StoreError):
        read_result(path)


def test_a_link_in_place_of_results_is_not_followed(records: Records, inbox: Path, tmp_path: Path) -> None:
    parent = running(records)
    child = of_job(parent, inbox).submit(spec("child"))
    process_inbox(records, parent, inbox)
    prepare_round(records)
    finish(records, records.request(child).execution or "")
    (tmp_path / "outside").mkdir()
    (inbox / "ended").symlink_to(tmp_path / "outside")

    write_results(records, parent, inbox)

    assert list((tmp_path / "outside").iterdir()) == []


def test_a_link_in_place_of_results_does_not_remove_a_file(
    records: Records, inbox: Path, tmp_path: Path
) -> None:
    parent = running(records)
    child = of_job(parent, inbox).submit(spec("child"))
    process_inbox(records, parent, inbox)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / f"{child}.json").touch()
    (inbox / "ended").symlink_to(tmp_path / "outside")

    write_results(records, parent, inbox)

    assert (tmp_path / "outside" / f"{child}.json").exists()


SCRIPT = """\
from jpsi_records import Inbox, read_request_spec
inbox = Inbox()
ids = [inbox.submit(read_request_spec({"command": ["sh", "-c", f"exit {code}"]})) for code in (0, 3)]
print([it.exit_code for it in inbox.wait(*ids, timeout=120)])
"""


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Records]:
    with Records(tmp_path / "real", user="ca") as records:
        yield records


def executed(records: Records, *command: str) -> Execution:
    request = records.submit(spec(*command))
    dispatcher = Dispatcher(records)
    dispatcher.run(until_idle=True)
    dispatcher.close()
    return records.execution(request.execution or "")


@pytest.mark.clause("records-children")
def test_a_job_waits_for_its_children(real: Records) -> None:
    execution = executed(real, sys.executable, "-c", SCRIPT)

    log = real.blobs.manifest(execution.log or "")
    assert real.blobs.path(log["stdout"].digest).read_text() == "[0, 3]\n"


def test_a_job_waits_for_its_children_by_a_command(real: Records) -> None:
    jpsi = f"{shlex.quote(sys.executable)} -m jpsi_cli request"
    script = f"""
    printf 'command: ["true"]' >a.yaml; printf 'command: ["false"]' >b.yaml
    a=$({jpsi} submit a.yaml) b=$({jpsi} submit b.yaml)
    {jpsi} wait ${{a#request }} --timeout 120; echo $?
    {jpsi} wait ${{a#request }} ${{b#request }} --timeout 120; echo $?
    """
    execution = executed(real, "sh", "-c", script)

    log = real.blobs.manifest(execution.log or "")
    lines = real.blobs.path(log["stdout"].digest).read_text().split("\n")
    assert [it.partition(": ")[2] or it for it in lines] == ["complete", "0", "complete", "failed", "1", ""]

"""The placement of an execution that several requests ask for, one after the other."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import jpsi
from fake_dispatcher import Client, finish, prepare_round, spec, start
from forked_jpsi import run_as_text
from jpsi_records import formatting
from jpsi_records.commands import cancellation
from jpsi_records.commands.messages import PlacementMessage
from jpsi_records.dispatch.leases import Leases
from jpsi_records.model.entities import Attempt, Execution, ExecutionState, Request, RequestState
from jpsi_records.records.records import Records
from jpsi_testing.fake import FakeScheduler

LOCAL, SLURM = {"executor": "local"}, {"executor": "slurm", "duration": 3600}
LEASE = timedelta(seconds=60)


def submit(records: Records, placement: dict[str, object], **more: object) -> tuple[Request, Execution]:
    request = records.submit(spec("a", placement=placement, **more))
    return request, records.execution(request.execution or "")


@pytest.mark.parametrize("has_roles", [False, True], ids=["one-user", "roles"])
def test_an_execution_of_cancelled_requests_gets_the_placement_of_the_next(
    has_roles: bool, url: str, client: Client, role: Client
) -> None:
    if has_roles and url.startswith("sqlite"):
        pytest.skip("an SQLite database has no users")
    server = client("server")
    user = role("ca") if has_roles else client("ca")
    first = user.submit(spec("a", placement=LOCAL))
    prepare_round(server)
    execution = user.request(first.id).execution or ""
    user.cancel(first.id)

    second = user.submit(spec("a", placement=SLURM, attempts=1))
    prepare_round(server)

    found = server.execution(execution)
    assert user.request(second.id).execution == execution
    assert (found.placement, found.attempts, found.priority) == (SLURM, 1, 1)
    assert [it.data["placement"] for it in server.events(execution=execution) if it.kind == "placed"] == [
        SLURM
    ]
    copy = json.loads((server.execution_directory(execution) / "record.json").read_text())
    assert copy["execution"]["placement"] == SLURM


def test_a_cancelled_request_that_is_wanted_again_runs_where_it_says(records: Records) -> None:
    first, execution = submit(records, LOCAL)
    records.cancel(first.id)
    second, _ = submit(records, SLURM)
    assert records.request(first.id).execution is None

    records.cancel(second.id)
    prepare_round(records)
    assert records.request(first.id).state is RequestState.CANCELLED
    assert records.request(first.id).execution is None
    records.set_priority(first.id, 2)
    prepare_round(records)

    assert records.request(first.id).execution == execution.id
    assert (records.execution(execution.id).placement, records.execution(execution.id).priority) == (LOCAL, 2)
    start(records, execution.id)
    finish(records, execution.id)
    assert records.request(first.id).outcome == "complete"
    assert records.request(second.id).state is RequestState.CANCELLED


def test_a_cancelled_request_that_is_wanted_again_has_an_execution_at_once(records: Records) -> None:
    first, execution = submit(records, LOCAL)
    records.cancel(first.id)
    second, _ = submit(records, SLURM)
    assert records.request(first.id).execution is None

    wanted = records.set_priority(first.id, 2)

    assert (wanted.state, wanted.execution) == (RequestState.COMMITTED, execution.id)
    assert records.execution(execution.id).priority == 2
    assert records.request(second.id).execution == execution.id


def test_a_cancelled_request_that_is_wanted_again_still_waits_for_others(records: Records) -> None:
    first = records.submit(spec("a"))
    second = records.submit(spec("b", after=[first.id]))
    records.cancel(second.id)

    wanted = records.set_priority(second.id, 1)

    assert (wanted.state, wanted.execution) == (RequestState.COMMITTED, None)


def test_a_priority_above_zero_tells_of_a_placement_without_effect_if_it_takes_a_cancellation_back(
    records: Records, capsys: pytest.CaptureFixture[str]
) -> None:
    first, _ = submit(records, LOCAL)
    records.cancel(first.id)
    second, _ = submit(records, SLURM)
    printed = []
    for priority in (2, 3, 0):
        cancellation.set_priority(records, first.id, priority)
        printed.append(capsys.readouterr().err)

    warning = (
        "jpsi: warning: the executor (-x) has no effect, because the computation already waits on slurm for "
        f"request {second.id}\n"
    )
    assert printed == [warning, "", ""]


@pytest.mark.parametrize("other", ["wanted", "held", "a draft"])
def test_an_execution_that_others_ask_for_keeps_its_placement(records: Records, other: str) -> None:
    first, execution = submit(records, LOCAL)
    if other == "wanted":
        submit(records, LOCAL)
    elif other == "held":
        records.submit(spec("a"), priority=0)
    else:
        records.satisfy(records.draft(spec("a")).id)
    records.cancel(first.id)

    _, found = submit(records, SLURM)

    assert (found.id, found.placement) == (execution.id, LOCAL)
    assert records.request(first.id).execution == execution.id


@pytest.mark.parametrize("state", [ExecutionState.CLAIMED, ExecutionState.RUNNING])
def test_an_execution_that_a_dispatcher_has_taken_keeps_its_placement(
    records: Records, state: ExecutionState
) -> None:
    first, execution = submit(records, LOCAL)
    assert Leases(records, LEASE).take(execution)
    if state is ExecutionState.RUNNING:
        start(records, execution.id)
    records.cancel(first.id)

    _, found = submit(records, SLURM)

    assert (found.id, found.state, found.placement) == (execution.id, state, LOCAL)
    assert records.request(first.id).execution == execution.id


def test_the_same_placement_leaves_a_cancelled_request_its_execution(records: Records) -> None:
    first, execution = submit(records, LOCAL)
    records.cancel(first.id)

    assert submit(records, LOCAL)[1].id == execution.id

    assert records.request(first.id).execution == execution.id


def test_a_draft_of_the_only_request_that_is_left_places_its_execution(records: Records) -> None:
    first, execution = submit(records, LOCAL)
    draft = records.satisfy(records.draft(spec("a", placement=SLURM)).id)
    records.cancel(first.id)

    assert records.commit(draft.id).execution == execution.id

    assert records.execution(execution.id).placement == SLURM


def test_resources_that_would_not_satisfy_the_request_are_not_taken(records: Records) -> None:
    """A request that only reuses has no execution of its own, which would meet its constraints."""
    wants = {"runtime_constraints": {"ram": [1000, None]}}
    first, execution = submit(records, LOCAL, **wants)
    records.cancel(first.id)

    _, found = submit(records, {**SLURM, "memory": 2**20}, reuse="only", runtime_constraints={"ram": 1000})

    assert (found.id, found.placement) == (execution.id, execution.placement)


@pytest.mark.parametrize(
    ("wanted", "warning"),
    [
        ({}, None),
        (LOCAL, None),
        (
            {"queue_name": "long"},
            "queue_name has no effect, because the computation already waits on local for",
        ),
        (
            {**SLURM, "queue_name": "long"},
            (
                "the executor (-x), queue_name and the time limit (--time) have no effect, because the "
                "computation already waits on local for"
            ),
        ),
    ],
    ids=["none", "the same", "one part", "several"],
)
def test_a_placement_without_effect_is_explained(
    records: Records, wanted: dict[str, object], warning: str | None
) -> None:
    first, execution = submit(records, LOCAL)
    second, _ = submit(records, wanted)

    found = formatting.placement_warning(second, execution, [], [first, second], None)

    assert found == (None if warning is None else f"{warning} request {first.id}")


def test_the_explanation_names_the_executor_of_the_job_and_whether_it_runs(records: Records) -> None:
    first, execution = submit(records, {})
    request, _ = submit(records, SLURM)
    records.cancel(first.id)
    ended, open_ = attempt(execution, 1, "lsf", records.now()), attempt(execution, 2, "slurm")
    running = start(records, execution.id)
    interested = records.requests(execution=execution.id)

    waits, runs = (
        formatting.placement_warning(request, *it, interested, None)
        for it in ((execution, [ended]), (running, [ended, open_]))
    )

    assert waits == (
        "the executor (-x) and the time limit (--time) have no effect, because the computation already waits "
        "on the default executor"
    )
    assert runs == ("the time limit (--time) has no effect, because the computation already runs on slurm")
    over = finish(records, execution.id)
    assert formatting.placement_warning(request, over, [], interested, None) is None


def attempt(execution: Execution, number: int, executor: str, ended_at: datetime | None = None) -> Attempt:
    return Attempt(
        id=str(number),
        execution=execution.id,
        number=number,
        executor=executor,
        job="1",
        state="ACTIVE",
        created_at=execution.created_at,
        ended_at=ended_at,
    )


CONFIGURATION = """\
default_executor: long
targets:
  long: {executor: slurm}
  short: {executor: Slurm}
"""


@pytest.mark.parametrize(
    ("first", "job_executor", "wanted", "where"),
    [
        (None, None, "long", None),
        (None, None, "LONG", None),
        (None, None, "slurm", None),
        (None, "slurm", "long", None),
        ("long", None, "slurm", None),
        ("slurm", None, "long", None),
        (None, None, "short", "long"),
        (None, None, "local", "long"),
        ("short", None, "long", "short"),
    ],
)
def test_the_same_executor_by_another_name_is_no_other_placement(
    records: Records,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    first: str | None,
    job_executor: str | None,
    wanted: str,
    where: str | None,
) -> None:
    (tmp_path / "jpsi.yaml").write_text(CONFIGURATION)
    monkeypatch.setenv("JPSI_CONFIG", str(tmp_path / "jpsi.yaml"))
    _, execution = submit(records, {} if first is None else {"executor": first})
    request, _ = submit(records, {"executor": wanted})
    attempts = [] if job_executor is None else [attempt(execution, 1, job_executor)]

    found = formatting.placement_warning(request, execution, attempts, [request], jpsi.configuration())

    sentence = "the executor (-x) has no effect, because the computation already waits on"
    assert found == (None if where is None else f"{sentence} {where}")


def test_the_default_executor_is_not_warned_of_when_it_is_named(records: Records) -> None:
    submit(records, {})
    request, _ = submit(records, {"executor": "local"})
    other, _ = submit(records, {"executor": "slurm"})

    assert list(PlacementMessage(records, request.id).update()) == []
    assert next(PlacementMessage(records, other.id).update()).startswith(
        "warning: the executor (-x) has no effect, because the computation already waits on local for request"
    )


def test_the_records_are_not_read_again_once_the_placement_is_known(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, _ = submit(records, LOCAL)
    message = PlacementMessage(records, request.id)
    list(message.update())

    monkeypatch.setattr(records, "request", lambda _: pytest.fail("it is read again"))

    assert list(message.update()) == []


def test_a_wrong_configuration_does_not_hide_that_the_request_was_made(
    records: Records, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    submit(records, {})
    request, _ = submit(records, {"executor": "slurm"})
    (tmp_path / "jpsi.yaml").write_text("no_such_key: 1")
    monkeypatch.setenv("JPSI_CONFIG", str(tmp_path / "jpsi.yaml"))

    (warning,) = PlacementMessage(records, request.id).update()

    assert "on the default executor" in warning


def test_submitters_and_a_dispatcher_agree_on_one_placement(client: Client) -> None:
    """Whoever comes first decides: the placement never changes once a dispatcher has taken the execution."""
    records = client("ca")
    first, execution = submit(records, LOCAL)
    records.cancel(first.id)
    taken: list[Execution] = []
    barrier = threading.Barrier(3, timeout=60)

    def submit_as(user: Records, queue: str) -> None:
        barrier.wait()
        submit(user, {"executor": "slurm", "queue_name": queue})

    def dispatch(server: Records) -> None:
        leases = Leases(server, LEASE)
        barrier.wait()
        is_last = False
        while not taken and not is_last:
            is_last = all(it.done() for it in submissions)
            taken.extend(server.execution(it.id) for it in leases.due() if leases.take(it))

    one, two, server = (client(it) for it in ("cb", "cc", "server"))
    with ThreadPoolExecutor(3) as threads:
        submissions = [threads.submit(submit_as, one, "one"), threads.submit(submit_as, two, "two")]
        dispatched = threads.submit(dispatch, server)
    for it in (*submissions, dispatched):
        it.result()

    assert [it.id for it in taken] == [execution.id]
    assert taken[0].placement == records.execution(execution.id).placement
    assert taken[0].placement["queue_name"] in {"one", "two"}


def _request(directory: Path, *words: str) -> tuple[int, str]:
    done = run_as_text("request", *words, "placed.yaml", cwd=directory)
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_time_limit_that_the_batch_system_rounds_up_is_reported(
    command: str, tmp_path: Path, fake_commands: Callable[..., FakeScheduler]
) -> None:
    fake_commands("slurm")
    (tmp_path / "placed.yaml").write_text("{command: ['true'], placement: {qos: high}}")

    code, printed = _request(tmp_path, command, "-x", "slurm", "--time", "65")

    assert code == 0
    assert printed.startswith("jpsi: slurm rounds the time limit 0:01:05 up to 0:02:00\n")
    assert "no effect" not in printed


def test_a_queue_that_the_batch_system_does_not_list_is_reported(
    tmp_path: Path, fake_commands: Callable[..., FakeScheduler]
) -> None:
    fake_commands("slurm")
    (tmp_path / "placed.yaml").write_text("{command: ['true'], placement: {queue_name: debgu}}")

    _, printed = _request(tmp_path, "submit", "-x", "slurm")

    assert printed.startswith("jpsi: warning: the queue debgu is none of those that slurm lists: ")
    assert "did you mean debug?\n" in printed


@pytest.mark.parametrize("options", [(), ("-x", "local")], ids=["default", "named"])
def test_a_placement_without_effect_on_this_machine_is_reported_if_a_job_runs(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    placement = "{queue_name: debug, memory: 4194304, custom_attributes: {slurm.nice: 5}}"
    (tmp_path / "placed.yaml").write_text(f"{{command: ['true'], placement: {placement}}}")
    ignored = "memory, queue_name and slurm.nice have no effect"
    sentence = f"jpsi: warning: local is no batch system: {ignored}\n"

    (new, first), (again, second) = (_request(tmp_path, "run", *options) for _ in range(2))

    assert (new, again) == (0, 0)
    assert first.startswith(f"{sentence}jpsi: computed by")
    assert second.startswith("jpsi: reused")

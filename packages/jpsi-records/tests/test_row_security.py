"""Row security in PostgreSQL: only the dispatcher writes executions, owners of their requests read them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from fake_dispatcher import Client, finish, prepare_round, spec, start
from jpsi_records.commands import submission
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.errors import ChangedError, NotFoundError, NothingToReuseError, StateError, StoreError
from jpsi_records.model.entities import About, Execution, Request, RequestState
from jpsi_records.records import queries
from jpsi_records.records.records import Records

pytestmark = pytest.mark.parametrize("url", ["postgresql"], indirect=True)


class AllReadable:
    """Permissions by which every user may read everything."""

    @classmethod
    def of_user_name(cls, name: str) -> AllReadable:
        return cls()

    def may_read(self, path: Path) -> bool:
        return True


def submitted(dispatcher: Records, user: Records, *command: str, priority: float = 1) -> Request:
    """Return a request of a user after the dispatcher has updated the records."""
    request = user.submit(spec(*command), priority=priority)
    prepare_round(dispatcher)
    return user.request(request.id)


def test_a_user_without_ownership_is_the_postgresql_role(records: Records, role: Client) -> None:
    assert records.may_dispatch
    assert not role("ca").may_dispatch
    assert role("ca").user.startswith("ca_")


def test_a_request_gets_its_execution_from_the_dispatcher(records: Records, role: Client) -> None:
    ca, cb = role("ca"), role("cb")

    request = ca.submit(spec("compute"))
    assert (request.state, request.execution) == (RequestState.COMMITTED, None)
    prepare_round(records)

    execution = ca.request(request.id).execution or ""
    assert ca.execution(execution).priority == 1
    assert submitted(records, cb, "compute", priority=3).execution == execution
    assert ca.execution(execution).priority == 3


@pytest.mark.clause("records-permission")
def test_an_execution_is_readable_only_to_readers_of_its_requests(records: Records, role: Client) -> None:
    ca, cb, cc = role("ca"), role("cb"), role("cc")
    one = submitted(records, ca, "compute")
    two = submitted(records, cb, "compute")
    execution = one.execution or ""
    start(records, execution)
    finish(records, execution, output=None)

    for user, request in ((ca, one), (cb, two)):
        assert user.execution(execution).exit_code == 0
        assert [it.id for it in user.requests()] == [request.id]
        assert {it.request for it in user.usage()} == {request.id}
        assert {it.request for it in user.events()} == {request.id, None}
        assert user.attempts(execution) == records.attempts(execution)
    assert (cc.requests(), cc.usage(), cc.events()) == ([], [], [])
    with pytest.raises(NotFoundError):
        cc.execution(execution)
    with pytest.raises(NotFoundError):
        cb.set_priority(one.id, 0)


#: Calls that could reveal or change another user's request and its execution.
CALLS: dict[str, Callable[[Records, Request], object]] = {
    "request": lambda user, it: user.request(it.id),
    "requests": lambda user, it: [*user.requests(), *user.requests(execution=it.execution, owner=it.owner)],
    "newest_requests": lambda user, it: user.newest_requests(9, owner=it.owner),
    "newest_executions": lambda user, it: user.newest_executions(9),
    "executions": lambda user, it: user.executions([it.execution or ""]),
    "execution": lambda user, it: user.execution(it.execution or ""),
    "attempts": lambda user, it: user.attempts(it.execution or ""),
    "events": lambda user, it: [*user.events(request=it.id), *user.events(execution=it.execution)],
    "assignments": lambda user, it: user.assignments(),
    "usage": lambda user, it: [*user.usage(execution=it.execution), *user.usage(user=it.owner)],
    "passed_over": lambda user, it: user.passed_over(it.id),
    "preview": lambda user, it: user.preview(spec("compute", "something else")).near_misses,
    "find": lambda user, it: user.find(spec(mounts={"/in": {"kind": "output", "request": it.id}})),
    "draft": lambda user, it: user.draft(spec("child"), About(parent=it.execution)),
    "submit": lambda user, it: user.submit(spec("next", after=[it.id])),
    "update": lambda user, it: user.update(it.id, spec("compute")),
    "satisfy": lambda user, it: user.satisfy(it.id),
    "reset": lambda user, it: user.reset(it.id),
    "attach": lambda user, it: user.attach(user.draft(spec("compute")).id, it.execution or ""),
    "commit": lambda user, it: user.commit(it.id),
    "set_priority": lambda user, it: user.set_priority(it.id, 9),
    "cancel": lambda user, it: user.cancel(it.id),
    "rerun": lambda user, it: user.rerun(it.execution or ""),
    "invalidate": lambda user, it: user.invalidate(it.execution or ""),
    "set_progress": lambda user, it: user.set_progress(it.execution or "", 0.5),
}
#: Calls that do not concern other users' records.
NEUTRAL = {
    *("advance", "attempt_directory", "close", "collection", "dispatchers", "execution_directory"),
    *("make_directory", "put", "warnings"),
}


def test_no_method_reads_or_changes_records_of_other_users(
    records: Records, role: Client, tmp_path: Path
) -> None:
    request = submitted(records, role("ca"), "compute")
    start(records, request.execution or "")
    before = [records.requests(), records.execution(request.execution or "")]
    methods = {name for name, it in inspect.getmembers(Records, inspect.isfunction) if name[0] != "_"}
    assert methods == {*CALLS, *NEUTRAL}

    for name, call in CALLS.items():
        try:
            result = call(role("cb"), request)
        except NotFoundError:
            continue
        assert not result, name

    assert [records.requests(owner=request.owner), records.execution(request.execution or "")] == before


def test_the_dispatcher_acts_on_changes_by_users(records: Records, role: Client) -> None:
    ca = role("ca")
    request = submitted(records, ca, "compute")
    child = ca.submit(spec("child"), About(parent=request.execution))
    prepare_round(records)

    ca.set_priority(request.id, 5)
    prepare_round(records)

    assert records.execution(request.execution or "").priority == 5
    assert records.execution(ca.request(child.id).execution or "").priority == 5
    assert [it.priority for it in ca.usage(execution=request.execution) if it.end is None] == [5]


WRITES = {
    "an execution": "UPDATE execution SET exit_code = 0",
    "a new execution": "INSERT INTO execution SELECT * FROM execution",
    "its end": "DELETE FROM execution",
    "an attempt": "UPDATE attempt SET exit_code = 0",
    "whose it is": "UPDATE request SET owner = 'cb'",
    "what satisfies it": "UPDATE request SET execution = id",
    "its end by hand": "UPDATE request SET state = 'final'",
    "what was committed": "UPDATE request SET request_spec = '{}'",
    "back to a draft": "UPDATE request SET state = 'draft'",
    "a cancelled request that is wanted": "UPDATE request SET state = 'cancelled', priority = 1",
    "a request for ever": "DELETE FROM request",
    "what happened": "UPDATE event SET kind = 'x'",
    "accounting": "INSERT INTO event (time, kind, request, owner, priority, state, data) "
    "SELECT '', 'accounting', id, owner, 0, 'queued', '{}' FROM request",
    "a state that never was": "INSERT INTO event (time, kind, request, data) "
    "SELECT '', 'final', id, '{}' FROM request",
    "the number of the next event": "INSERT INTO event (seq, time, kind, request, data) "
    "SELECT 999, '', 'created', id, '{}' FROM request",
    "the version": "UPDATE alembic_version SET version_num = '1'",
    "in the name of another": "UPDATE request SET modified_by = 'cb'",
}


@pytest.mark.clause("records-system")
def test_only_the_dispatcher_writes_executions(records: Records, role: Client) -> None:
    ca = role("ca")
    request = submitted(records, ca, "compute")

    for change in (ca.request, ca.cancel):
        before = change(request.id)
        for kind, statement in WRITES.items():
            with pytest.raises(StoreError, match=r"denied|row-level security|only the priority"):
                pytest.fail(f"{kind} was written: {_written(ca, statement)}")

        assert ca.request(request.id) == before


def _written(records: Records, statement: str) -> int:
    with records.database.writing() as tx:
        return tx.execute(text(statement)).rowcount


def test_requests_of_others_are_inaccessible(records: Records, role: Client) -> None:
    request = submitted(records, role("ca"), "compute")

    assert _written(role("cb"), "UPDATE request SET priority = 0") == 0
    with pytest.raises(NotFoundError):
        role("cb").submit(spec("child"), About(parent=request.execution))


def finished(records: Records, request: Request, tmp_path: Path) -> Execution:
    """Return an execution that has an output."""
    (tmp_path / "made").write_text("made")
    output = records.blobs.add_tree(tmp_path / "made").digest
    start(records, request.execution or "")
    return finish(records, request.execution or "", output=output)


@pytest.mark.parametrize("can_read", [True, False])
def test_across_users_a_result_is_used_where_its_output_can_be_read(
    can_read: bool, records: Records, role: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = finished(records, submitted(records, role("ca"), "compute"), tmp_path)
    if can_read:
        monkeypatch.setattr(queries, "Reader", AllReadable)

    request = submitted(records, role("cb"), "compute")

    assert (request.execution == done.id) is can_read
    assert (request.outcome == "complete") is can_read


def test_a_preview_shows_results_of_other_users(
    records: Records, role: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who knows the whole computation may learn that it was run."""
    monkeypatch.setattr(queries, "Reader", AllReadable)
    cb = role("cb")
    done = finished(records, submitted(records, role("ca"), "compute"), tmp_path)

    plan = cb.preview(spec("compute"))
    assert plan.hit == done
    assert cb.preview(spec("compute", "more")).near_misses == []

    request = cb.submit(spec("compute"), plan=plan.id)
    prepare_round(records)
    assert cb.request(request.id).execution == done.id


def test_a_previewed_plan_is_followed_or_refused(records: Records, role: Client) -> None:
    ca = role("ca")
    plan = ca.preview(spec("compute"))
    submitted(records, role("cb"), "compute")
    with pytest.raises(ChangedError):
        ca.submit(spec("compute"), plan=plan.id)

    plan = ca.preview(spec("compute"))
    request = ca.submit(spec("compute"), plan=plan.id)
    records.invalidate(plan.hit.id if plan.hit else "")
    prepare_round(records)

    assert ca.request(request.id).outcome == "refused"
    with pytest.raises(NothingToReuseError):
        ca.submit(spec("other", reuse="only"))


def test_a_chosen_execution_is_attached_by_the_dispatcher(records: Records, role: Client) -> None:
    ca = role("ca")
    first = submitted(records, ca, "compute")
    second = ca.submit(spec("compute", reuse="never"))
    prepare_round(records)
    chosen = ca.request(second.id).execution or ""
    assert chosen != first.execution

    draft = ca.draft(spec("compute"))
    ca.attach(draft.id, chosen)
    ca.commit(draft.id)
    prepare_round(records)

    assert ca.request(draft.id).execution == chosen


def test_a_user_can_move_the_name_of_a_collection(records: Records, role: Client, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").write_text("2")
    role("ca").put(tmp_path / "one", "data")
    role("ca").put(tmp_path / "two", "data")

    with pytest.raises(StateError, match="another user"):
        role("cb").put(tmp_path / "one", "data")


def test_a_user_without_permission_to_dispatch_waits_for_the_dispatcher(
    records: Records, role: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dispatcher = Dispatcher(records)
    monkeypatch.setattr(submission, "sleep", lambda _: dispatcher.run(until_idle=True))
    request_spec = spec("sh", "-c", "echo said; exit 3", mounts={"stdin": {"kind": "text", "content": "new"}})

    code = submission.run(role("ca"), request_spec, About(), priority=1, is_strict=False, is_json=False)

    assert code == 3
    assert capsys.readouterr().out == "said\n"
    with pytest.raises(StateError, match="may not run executions"):
        Dispatcher(role("ca"))
    dispatcher.close()

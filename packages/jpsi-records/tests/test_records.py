from __future__ import annotations

import errno
import os
from datetime import timedelta
from pathlib import Path

import attrs
import pytest

from fake_dispatcher import Client, Clock, finish, spec, start
from jpsi_records.errors import (
    ChangedError,
    InvalidRequestError,
    NotFoundError,
    NothingToReuseError,
    SourceError,
    StateError,
)
from jpsi_records.files import Blobs
from jpsi_records.model.entities import About, ExecutionState, RequestState
from jpsi_records.model.request_spec import Reuse
from jpsi_records.records.records import Records
from jpsi_records.store.ledger import expire


def ended_execution(records: Records, *command: str, exit_code: int = 0, **more: object) -> str:
    """Return an execution that has ended."""
    execution = records.submit(spec(*command, **more)).execution
    assert execution is not None
    start(records, execution)
    return finish(records, execution, exit_code).id


def test_a_preview_writes_nothing(records: Records) -> None:
    plan = records.preview(spec("a"))

    assert plan.runs
    assert (records.requests(), records.events()) == ([], [])


def test_an_existing_result_satisfies_a_request_immediately(client: Client) -> None:
    done = ended_execution(client("ca"), "a")

    request = client("cb").submit(spec("a", placement={"queue_name": "debug"}))

    assert (request.execution, request.state, request.outcome) == (done, RequestState.FINAL, "complete")


def test_of_several_results_the_oldest_is_used(records: Records, clock: Clock) -> None:
    first = ended_execution(records, "a")
    clock.advance(1)
    second = records.rerun(first).execution
    assert second not in {None, first}
    finish(records, second or "")

    assert records.submit(spec("a")).execution == first


@pytest.mark.clause("records-reuse-never")
def test_a_request_without_reuse_has_an_execution_of_its_own(records: Records) -> None:
    one, other = (records.submit(spec("a", reuse="never")).execution for _ in range(2))

    assert one != other


@pytest.mark.clause("records-reuse-only")
def test_a_request_that_must_reuse_causes_no_run(records: Records) -> None:
    only = spec("a", reuse="only")

    with pytest.raises(NothingToReuseError):
        records.submit(only)
    done = ended_execution(records, "a")

    assert records.submit(only).execution == done
    assert records.find(spec("a")) == records.execution(done)
    assert records.find(spec("b")) is None


def test_a_previewed_plan_is_followed_or_refused(records: Records) -> None:
    plan = records.preview(spec("a"))
    done = ended_execution(records, "a")

    with pytest.raises(ChangedError, match=f"execution {done} satisfies it"):
        records.submit(spec("a"), plan=plan.id)

    assert records.submit(spec("a"), plan=records.preview(spec("a")).id).execution == done


def test_an_execution_that_ends_between_preview_and_submission_is_the_same(records: Records) -> None:
    execution = records.submit(spec("a")).execution or ""
    plan = records.preview(spec("a"))
    start(records, execution)
    finish(records, execution)

    assert records.submit(spec("a"), plan=plan.id).execution == execution


@pytest.mark.clause("records-record")
def test_a_rerun_computes_exactly_the_same(records: Records) -> None:
    document = {
        "environment": {"A": "b"},
        "mounts": {"/in": {"kind": "text", "content": "x"}, "/out": {"kind": "collection"}},
        "output_path": "/out",
        "processes": 2,
        "topology": "any",
        "placement": {"queue_name": "debug"},
    }
    first = ended_execution(records, "a", **document)

    second = records.execution(records.rerun(first).execution or "")

    assert second.id != first
    assert second.preimage == records.execution(first).preimage
    assert second.placement == {"queue_name": "debug"}


@pytest.mark.parametrize(
    ("options", "is_hit"),
    [({}, False), ({"accepts_failed": True}, True)],
    ids=["as usual", "on demand"],
)
def test_a_failed_result_is_used_only_on_request(
    records: Records, options: dict[str, bool], is_hit: bool
) -> None:
    ended_execution(records, "a", exit_code=3)

    assert (records.find(spec("a", **options)) is not None) is is_hit


def test_an_invalidated_execution_satisfies_no_request(records: Records) -> None:
    done = ended_execution(records, "a")

    records.invalidate(done, "the input was wrong")

    plan = records.preview(spec("a"))
    assert plan.hit is None
    assert plan.near_misses[0].objections == ("ca has invalidated it",)


def test_an_execution_that_is_too_old_satisfies_no_request(records: Records, clock: Clock) -> None:
    ended_execution(records, "a")
    clock.advance(100)

    assert records.find(spec("a", max_age=101)) is not None
    assert records.find(spec("a", max_age=99)) is None
    assert records.find(spec("a", max_age=1e300)) is not None
    assert records.find(spec("a", max_age=-1e300)) is None


def test_a_result_without_its_output_satisfies_no_request(records: Records) -> None:
    execution = records.submit(spec("a")).execution or ""
    digest = records.blobs.add_bytes(b"result")
    path = records.directory / "result"
    path.write_bytes(b"result")
    finish(records, execution, output=records.blobs.add_tree(path).digest)
    assert records.find(spec("a")) is not None

    records.blobs.path(digest).unlink()

    (near,) = records.preview(spec("a")).near_misses
    assert near.objections == ("of its output, result is not there any more",)


@pytest.mark.clause("records-given")
def test_constraints_are_checked_against_the_record_of_an_execution(records: Records) -> None:
    ended_execution(records, "a", processes=2, topology="any", runtime_constraints={"ram": [1000, None]})

    for constraints, is_hit in (
        ({"ram": 1000}, True),
        ({"ram": [None, 999]}, False),
        ({"vcpus": [2, None]}, True),
        ({"gpus": False}, True),
        ({"gpus": True}, False),
    ):
        request_spec = spec("a", topology="any", runtime_constraints=constraints, reuse="only")
        assert (records.find(request_spec) is not None) is is_hit


@pytest.mark.clause("records-filters")
def test_filters_choose_among_existing_executions(records: Records, clock: Clock) -> None:
    first = ended_execution(records, "a")
    clock.advance(3600)
    second = records.rerun(first).execution or ""
    finish(records, second)
    noon = "2026-01-01T00:30:00Z"

    assert records.submit(spec("a", filters=[["created_at", ">", noon]])).execution == second
    assert records.submit(spec("a", filters=[["id", "in", [second]]])).execution == second
    with pytest.raises(NothingToReuseError, match="created_at"):
        records.submit(spec("a", filters=[["created_at", "<", "2015-07-01T00:00:01Z"]]))
    (near, _) = records.preview(spec("a", filters=[["exit_code", "!=", 0]])).near_misses
    assert near.objections == ("its exit_code is 0, not != 0",)


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ("created_at", "must be a list"),
        ([["created_at", "<"]], "is \\[attribute, operator, value\\]"),
        ([["color", "=", "red"]], "'color'"),
        ([["exit_code", "~", 1]], "'~'"),
        ([["created_at", "<", "yesterday"]], "yesterday"),
        ([["exit_code", "in", 1]], "cannot be 1"),
    ],
    ids=str,
)
def test_a_malformed_filter_is_refused(filters: object, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        spec("a", filters=filters)


@pytest.mark.clause("records-equal")
def test_near_misses_list_their_differences_closest_first(records: Records) -> None:
    farther = ended_execution(records, "a", "1", environment={"X": "1", "Y": "1"})
    closer = ended_execution(records, "a", "2", environment={"X": "1"})
    ended_execution(records, "b")

    found = records.preview(spec("a", "2", environment={"X": "2"})).near_misses

    assert [it.execution.id for it in found] == [closer, farther]
    assert [str(it) for it in found[0].differences] == ['environment.X: "2", there "1"']


def test_a_preview_reads_each_manifest_once_to_explain_near_misses(
    records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "in" / "a"
    file.parent.mkdir()
    mounts = {"/in": {"kind": "collection", "name": "words", "writable": False}}
    for text in "123456":
        file.write_text(text)
        newest = records.put(file.parent, "words").digest
        if text != "6":
            records.submit(spec("a", mounts=mounts))
    read, digests = Blobs.manifest, []
    monkeypatch.setattr(
        Blobs, "manifest", lambda blobs, digest: digests.append(digest) or read(blobs, digest)
    )

    assert len(records.preview(spec("a", mounts=mounts)).near_misses) == 5

    # that of the request is also read to resolve it
    assert (len(set(digests)), len(digests), digests.count(newest)) == (6, 7, 2)


@pytest.mark.clause("records-equal")
def test_a_chosen_execution_is_attached_if_it_satisfies_the_request(records: Records) -> None:
    first = ended_execution(records, "a")
    second = records.rerun(first).execution or ""
    draft = records.draft(spec("a"))

    with pytest.raises(StateError, match="computes something else"):
        records.attach(draft.id, ended_execution(records, "b"))
    records.attach(draft.id, second)
    request = records.commit(draft.id)

    assert request.execution == second


def test_a_failed_attach_creates_no_request(records: Records) -> None:
    done = records.submit(spec("other"))

    with pytest.raises(StateError, match="computes something else"):
        records.submit(spec("compute"), execution=done.execution)
    with pytest.raises(StateError, match="waits for others"):
        records.submit(spec("compute", after=[done.id]), execution=done.execution)
    with pytest.raises(NotFoundError):
        records.submit(spec("compute"), execution="no-such")

    assert records.requests() == [done]
    assert records.submit(spec("other"), execution=done.execution).execution == done.execution


@pytest.mark.clause("records-draft", "records-reset")
def test_a_draft_has_no_priority_and_its_execution_can_be_reset(records: Records) -> None:
    done = ended_execution(records, "a")
    draft = records.draft(spec("a"))

    satisfied = records.satisfy(draft.id)
    assert (satisfied.execution, satisfied.priority, satisfied.state) == (done, None, RequestState.DRAFT)
    with pytest.raises(StateError, match="already"):
        records.satisfy(draft.id)
    assert records.reset(draft.id).execution is None


@pytest.mark.clause("records-draft", "records-priority")
def test_only_the_priority_of_a_committed_request_changes(records: Records) -> None:
    request = records.submit(spec("a"))

    for change in (
        lambda: records.commit(request.id),
        lambda: records.reset(request.id),
        lambda: records.attach(request.id, request.execution or ""),
    ):
        with pytest.raises(StateError, match="not a draft any more"):
            change()
    assert records.set_priority(request.id, 1000.5).priority == 1000.5
    assert records.set_priority(request.id, -1).priority == -1
    assert records.execution(request.execution or "").priority == 0


@pytest.mark.clause("records-priority")
@pytest.mark.parametrize(
    "priority", [float("nan"), float("inf"), 10**400, True, "1"], ids=lambda it: repr(it)[:9]
)
def test_a_priority_is_a_finite_number(records: Records, priority: float) -> None:
    with pytest.raises(InvalidRequestError, match="finite number"):
        records.submit(spec("a"), priority=priority)


@pytest.mark.clause("records-attributes")
def test_a_request_has_its_owner_and_times(client: Client, clock: Clock) -> None:
    records, begin = client("ca"), clock()
    request = records.submit(spec("a"), About(name="n", description="d"))
    clock.advance(5)

    changed = records.set_priority(request.id, 2)

    assert (changed.name, changed.description) == ("n", "d")
    assert (changed.owner, changed.modified_by) == ("ca", "ca")
    assert (changed.created_at, changed.modified_at) == (begin, begin + timedelta(seconds=5))


def test_requests_of_others_are_read_and_not_changed(client: Client) -> None:
    request = client("ca").submit(spec("a"))
    other = client("cb")

    assert other.request(request.id) == request
    with pytest.raises(StateError, match="is ca's"):
        other.cancel(request.id)


@pytest.mark.clause("records-requesting")
def test_children_are_as_urgent_as_their_parent_and_end_with_it(records: Records) -> None:
    parent = records.submit(spec("parent"), priority=5)
    assert parent.execution is not None
    start(records, parent.execution)
    child = records.submit(spec("child"), About(parent=parent.execution), priority=1)
    shared = records.submit(spec("shared"), About(parent=parent.execution), priority=1)
    other = records.submit(spec("shared"), priority=2)
    assert child.execution is not None
    assert shared.execution == other.execution is not None

    assert records.execution(child.execution).priority == 5
    records.set_priority(parent.id, 7)
    assert records.execution(child.execution).priority == 7
    assert records.execution(shared.execution).priority == 7

    finish(records, parent.execution)
    assert (records.request(child.id).outcome, records.request(shared.id).outcome) == (
        "cancelled",
        "cancelled",
    )
    assert records.execution(child.execution).state is ExecutionState.CANCELLED
    assert records.execution(shared.execution).priority == 2


@pytest.mark.clause("records-missing")
def test_a_missing_input_is_named_and_nothing_is_committed(records: Records) -> None:
    nowhere = spec(
        "a",
        mounts={
            "/a": {"kind": "collection", "name": "unknown"},
            "/b": {"kind": "collection_file", "digest": f"sha256:{'0' * 64}", "path": "/x"},
        },
    )

    with pytest.raises(InvalidRequestError) as raised:
        records.submit(nowhere)

    assert [it.split(":")[1].strip() for it in raised.value.problems] == ["/a", "/b"]
    assert records.requests() == []


def test_a_name_is_resolved_when_the_request_is_committed(records: Records, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "a").write_text("1")
    records.put(source, "words")
    request_spec = spec("a", mounts={"/in": {"kind": "collection", "name": "words"}})
    first = records.submit(request_spec)

    (source / "a").write_text("2")
    records.put(source, "words")

    assert records.submit(request_spec).execution != first.execution
    (source / "a").write_text("1")
    records.put(source, "words")
    assert records.submit(request_spec).execution == first.execution


def test_a_missing_id_is_not_found(records: Records) -> None:
    with pytest.raises(NotFoundError):
        records.request("x")
    with pytest.raises(NotFoundError):
        records.execution("x")


def test_reuse_is_no_part_of_the_computation(records: Records) -> None:
    request_spec = spec("a")

    one = records.preview(request_spec)
    other = records.preview(attrs.evolve(request_spec, reuse=Reuse.NEVER))

    assert one.resolution == other.resolution


@pytest.mark.clause("records-expires")
def test_an_expired_request_counts_no_more_and_its_execution_is_cancelled_unless_shared(
    records: Records, clock: Clock
) -> None:
    soon = About(expires_at=clock() + timedelta(seconds=10))
    alone = records.submit(spec("alone"), soon)
    shared = records.submit(spec("shared"), soon, priority=9)
    other = records.submit(spec("shared"), priority=2)
    assert records.execution(shared.execution or "").priority == 9

    clock.advance(10)
    with records.database.writing() as tx:
        assert {it.id for it in expire(tx)} == {alone.id, shared.id}

    assert {records.request(it.id).outcome for it in (alone, shared)} == {"expired"}
    assert records.execution(alone.execution or "").state is ExecutionState.CANCELLED
    assert records.execution(other.execution or "").priority == 2
    assert {it.end for it in records.usage(execution=alone.execution)} == {clock()}


@pytest.mark.clause("records-after")
def test_a_request_that_is_after_another_gets_an_execution_once_that_has_ended(records: Records) -> None:
    first = records.submit(spec("first"))
    second = records.submit(spec("second", after=[first.id]))
    third = records.submit(spec("third", after=[second.id]), priority=0)
    assert (second.state, second.execution) == (RequestState.COMMITTED, None)

    records.advance()
    assert records.request(second.id).execution is None
    finish(records, first.execution or "")
    records.advance()

    assert records.request(second.id).execution is not None
    assert records.request(third.id).execution is None


@pytest.mark.parametrize("early", [True, False], ids=["committed before", "committed afterwards"])
def test_a_request_after_one_that_failed_never_runs(records: Records, early: bool) -> None:
    first = records.submit(spec("first"))
    after = spec("second", after=[first.id])
    second = records.submit(after) if early else None

    finish(records, first.execution or "", 1)
    records.advance()

    second = records.request(second.id) if second else records.submit(after)
    assert (second.state, second.outcome) == (RequestState.FINAL, "dependency_failed")
    assert records.request(first.id).outcome == "failed"


def test_a_request_after_nothing_is_refused(records: Records) -> None:
    with pytest.raises(NotFoundError):
        records.submit(spec("a", after=["nothing"]))


def test_cancelling_an_ended_request_does_nothing(records: Records) -> None:
    request = records.submit(spec("a"))
    finish(records, request.execution or "")
    over = records.request(request.id)

    assert records.cancel(request.id) == over
    assert over.outcome == "complete"
    with pytest.raises(StateError, match="is over, complete, and has no priority any more"):
        records.set_priority(request.id, 1)
    with pytest.raises(StateError, match="is draft"):
        records.cancel(records.draft(spec("a")).id)


def test_a_directory_with_one_that_cannot_be_read_is_refused_as_a_whole(
    records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root reads every directory, so the refusal is one of the test."""
    closed = tmp_path / "in" / "closed"
    closed.mkdir(parents=True)
    (closed.parent / "a").touch()
    list_directory = os.scandir

    def list_if_permitted(path: str) -> object:
        if str(path) == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return list_directory(path)

    monkeypatch.setattr(os, "scandir", list_if_permitted)

    with pytest.raises(SourceError, match="/in/closed cannot be read: Permission denied"):
        records.put(closed.parent, "words")

"""Drafts: created, changed, listed, satisfied, reset, committed; and abbreviated names."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fake_dispatcher import Client, Clock, finish, prepare_round, spec, start
from forked_jpsi import run_as_text
from jpsi_records.errors import InvalidRequestError, NotFoundError, NothingToReuseError, StateError
from jpsi_records.model.entities import About, ExecutionState, RequestState
from jpsi_records.model.mounts import KINDS, read_mount
from jpsi_records.records.records import Records
from jpsi_records.store import requests

Run = Callable[..., Any]


@pytest.mark.clause("records-satisfy")
def test_satisfy_finds_or_creates(records: Records) -> None:
    draft, other = records.draft(spec("a")), records.draft(spec("a"))

    made = records.satisfy(draft.id)

    assert (made.state, made.priority) == (RequestState.DRAFT, None)
    execution = records.execution(made.execution or "")
    assert (execution.state, execution.priority) == (ExecutionState.QUEUED, 0)
    assert records.satisfy(other.id).execution == execution.id
    with pytest.raises(StateError, match="has an execution already"):
        records.satisfy(draft.id)
    assert records.commit(draft.id, priority=2).execution == execution.id
    assert records.execution(execution.id).priority == 2


def test_satisfy_creates_nothing_if_not_permitted(records: Records) -> None:
    draft = records.draft(spec("a", reuse="only"))
    first = records.submit(spec("b"))
    waits = records.draft(spec("c", after=[first.id]))

    with pytest.raises(NothingToReuseError):
        records.satisfy(draft.id)
    with pytest.raises(StateError, match="waits for others"):
        records.satisfy(waits.id)


@pytest.mark.parametrize("others", ["none", "a draft", "a request"])
def test_the_execution_of_a_draft_is_removed_with_it_unless_another_request_has_it(
    records: Records, others: str
) -> None:
    draft = records.draft(spec("a"))
    execution = records.satisfy(draft.id).execution or ""
    if others == "a draft":
        records.satisfy(records.draft(spec("a")).id)
    if others == "a request":
        records.submit(spec("a"))

    assert records.reset(draft.id).execution is None

    expected = ExecutionState.CANCELLED if others == "none" else ExecutionState.QUEUED
    assert records.execution(execution).state is expected


def test_the_execution_of_a_draft_is_not_cancelled_by_others(records: Records, clock: Clock) -> None:
    draft = records.draft(spec("a"))
    execution = records.satisfy(draft.id).execution
    records.submit(spec("a"), About(expires_at=clock()))
    prepare_round(records)

    assert records.commit(draft.id).execution == execution
    assert records.execution(execution or "").state is ExecutionState.QUEUED


def test_a_draft_whose_execution_no_longer_satisfies_it_is_not_committed(records: Records) -> None:
    draft = records.draft(spec("a"))
    execution = records.satisfy(draft.id).execution or ""
    records.invalidate(execution)

    with pytest.raises(StateError, match="does not satisfy it any more: ca has invalidated it; reset"):
        records.commit(draft.id)
    records.reset(draft.id)
    assert records.commit(draft.id).execution not in {None, execution}


@pytest.mark.clause("records-draft")
@pytest.mark.parametrize("has_roles", [False, True], ids=["one-user", "roles"])
def test_a_draft_can_be_changed_until_it_is_committed(
    has_roles: bool, url: str, client: Client, role: Client
) -> None:
    if has_roles and url.startswith("sqlite"):
        pytest.skip("an SQLite database has no users")
    server = client("server")
    user = role("ca") if has_roles else client("ca")
    draft = user.draft(spec("a"), About(name="x"))

    user.update(draft.id, spec("b"))
    changed = user.update(draft.id, more=About(name="y", labels={"a": "b"}))

    assert (changed.spec, changed.name, changed.labels) == (spec("b"), "y", {"a": "b"})
    assert changed.priority is None
    assert user.requests(state=RequestState.DRAFT) == [changed]
    user.commit(draft.id)
    prepare_round(server)
    assert "b" in server.execution(user.request(draft.id).execution or "").preimage
    with pytest.raises(StateError, match="not a draft any more"):
        user.update(draft.id, spec("c"))


def test_a_changed_draft_has_no_execution(records: Records) -> None:
    draft = records.draft(spec("a"))
    execution = records.satisfy(draft.id).execution or ""

    assert records.update(draft.id, spec("a"), About(name="x")).execution == execution
    assert records.update(draft.id, spec("b")).execution is None
    assert records.execution(execution).state is ExecutionState.CANCELLED
    with pytest.raises(InvalidRequestError):
        spec("a", after=[1])


def test_a_request_that_is_recorded_and_no_longer_valid_is_shown_and_refused(records: Records) -> None:
    draft = records.draft(spec("a"))
    waiting = records.submit(spec("b", after=[records.submit(spec("c")).id]))
    document = {"command": ["a"], "mounts": {"/a": {"kind": "blob", "digest": None}}}
    with records.database.writing() as tx:
        for it in (draft, waiting):
            requests.change(tx, it.id, request_spec=document)

    assert sorted(it.spec.computation.command for it in records.requests()) == [("a",), ("a",), ("c",)]
    with pytest.raises(InvalidRequestError, match="digest must be"):
        records.commit(draft.id)
    prepare_round(records)
    assert records.request(waiting.id).outcome == "refused"


def test_a_draft_of_a_job_that_has_ended_is_not_committed(records: Records) -> None:
    parent = records.submit(spec("a")).execution or ""
    start(records, parent)
    draft = records.draft(spec("b"), About(parent=parent[:20]))
    changed = records.update(draft.id, more=About(parent=parent[:20], name="x"))
    assert (changed.parent, changed.name) == (parent, "x")
    finish(records, parent)

    with pytest.raises(StateError, match="which is to be the parent, has ended"):
        records.commit(draft.id)
    assert records.request(draft.id).state is RequestState.DRAFT


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_user_without_permission_to_dispatch_gets_a_hint(records: Records, role: Client) -> None:
    ca = role("ca")
    draft = ca.draft(spec("a"))
    request = ca.submit(spec("b"))
    prepare_round(records)
    execution = ca.request(request.id).execution or ""
    before = [ca.request(draft.id), ca.execution(execution)]

    calls = {
        "satisfy a draft": lambda: ca.satisfy(draft.id),
        "reset a draft": lambda: ca.reset(draft.id),
        "invalidate an execution": lambda: ca.invalidate(execution),
        "report the progress of an execution": lambda: ca.set_progress(execution, 0.5),
    }
    for what, call in calls.items():
        with pytest.raises(StateError, match=f"the role {ca.user} may not {what}: only jpsi may"):
            call()
    assert [ca.request(draft.id), ca.execution(execution)] == before


@pytest.fixture
def run(tmp_path: Path) -> Run:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(f"command: [echo, {name}]")

    def run_(*arguments: str, code: int = 0) -> Any:
        done = run_as_text("request", *arguments, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout) if "--json" in arguments else done.stdout + done.stderr

    return run_


def test_every_call_for_drafts_is_a_command(run: Run) -> None:
    draft = run("draft", "a.yaml", "--name", "x", "--json")["id"]
    assert [it["state"] for it in run("ls", "--state", "draft", "--json")] == ["draft"]
    assert run("ls", "--state", "committed", "--json") == []

    made = run("satisfy", draft, "--json")["execution"]
    assert made is not None
    assert run("reset", draft, "--json")["execution"] is None
    assert "cancelled (unwanted)" in run("show", made)
    changed = run("update", draft, "b.yaml", "--label", "a=b", "--json")
    assert (changed["name"], changed["labels"]) == ("x", {"a": "b"})
    assert changed["request_spec"]["command"] == ["echo", "b"]
    assert "already" in run("satisfy", run("satisfy", draft, "--json")["id"], code=125)
    assert run("commit", draft, "--priority", "3", "--json")["priority"] == 3
    assert "was made for it" in run("explain", draft)
    run("dispatch", "--until-idle")
    assert run("ls", "--json")[0]["outcome"] == "complete"
    assert "not a draft any more" in run("update", draft, "--name", "z", code=125)


def test_a_unique_prefix_of_an_id_is_accepted(run: Run) -> None:
    request = run("submit", "a.yaml", "--json")
    mine, execution = request["id"][:18], request["execution"][:18]

    assert run("show", mine, "--json")["request"]["id"] == request["id"]
    assert run("show", execution, "--json")["execution"]["id"] == request["execution"]
    assert run("priority", mine, "2", "--json")["priority"] == 2
    assert "queued" in run("usage", "--execution", execution)
    assert run("explain", mine).startswith(f"execution {request['execution']} was made for it")
    assert request["execution"] in run("invalidate", execution)


def test_an_ambiguous_prefix_of_ids_is_refused(client: Client) -> None:
    records = client("ca")
    one = records.submit(spec("a"))
    two = records.submit(spec("b"))

    both = ", ".join(sorted([one.id, two.id]))
    with pytest.raises(NotFoundError, match=f"several requests begin with 0: {both}; write"):
        records.cancel("0")
    for name in "cd":
        records.submit(spec(name))
    with pytest.raises(NotFoundError, match=r"several requests begin with 0: .* and others; write more"):
        records.cancel("0")
    for nothing in ("", "%", "x", one.id + "0"):
        with pytest.raises(NotFoundError, match="there is no request"):
            records.request(nothing)
    assert records.request(one.id).priority == 1


def test_other_requests_are_named_by_prefixes_of_their_ids(records: Records) -> None:
    first = records.submit(spec("a", mounts={"/out": {"kind": "collection"}}, output_path="/out"))
    short = first.id[:20]
    mounts = {"/in": {"kind": "output", "request": short}}

    second = records.submit(spec("b", after=[short], mounts=mounts))

    assert second.spec.predecessors == (first.id,)
    start(records, first.execution or "")
    assert records.set_progress((first.execution or "")[:20], 0.5).progress == 0.5
    finish(records, first.execution or "")
    assert records.rerun((first.execution or "")[:20]).execution is not None


@pytest.mark.clause("records-filters")
@pytest.mark.parametrize(
    "filters",
    [
        ["created_at", "<", "2015-07-01T00:00:01Z"],
        [["created_at", "<", "2015-07-01T00:00:01Z"]],
        ["created_at", "<", dt.date(2015, 7, 1)],
        yaml.safe_load("[created_at, '<', 2015-07-01T00:00:01Z]"),
        [["created_at", "in", [dt.datetime(2015, 7, 1, tzinfo=dt.UTC)]]],
    ],
    ids=str,
)
def test_a_filter_is_written_as_in_the_draft(records: Records, filters: object) -> None:
    request = records.submit(spec("a"))
    start(records, request.execution or "")
    finish(records, request.execution or "")

    with pytest.raises(NothingToReuseError, match="created_at"):
        records.submit(spec("a", filters=filters))
    assert len(spec("a", filters=filters).filters) == 1


@pytest.mark.clause("records-arvados")
@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"kind": "collection", "portable_data_hash": "d41d8cd98f00b204e9800998ecf8427e+0"}, "its `digest`"),
        ({"kind": "collection", "uuid": "zzzzz-4zz18-yyyyyyyyyyyyyyy"}, "has a `name`"),
        ({"kind": "collection_file", "uuid": "zzzzz-4zz18-yyyyyyyyyyyyyyy", "path": "/foo.txt"}, "`name`"),
        ({"kind": "git_tree", "uuid": "zzzzz-s0uqq-xxxxxxxxxxxxxxx", "commit": "master"}, "by its `url`"),
        ({"kind": "git_tree", "repository_name": "r", "commit": "master"}, "by its `url`"),
        ({"kind": "tmp", "size": 1}, "'size', which mounts of kind tmp do not have; they have capacity"),
        ({"kind": "text"}, "does not say content"),
    ],
    ids=str,
)
def test_members_that_only_arvados_has_are_explained_in_a_sentence(
    document: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        spec("a", mounts={"/in": document})


@pytest.mark.parametrize("kind", KINDS)
def test_problems_of_mounts_are_not_python_errors(kind: str) -> None:
    with pytest.raises(ValueError, match="do not have") as raised:
        read_mount({"kind": kind, "no such": 1})
    assert "argument" not in str(raised.value)


def test_a_filter_by_an_unknown_state_is_refused() -> None:
    for wrong in ("Complete", "failed"):
        with pytest.raises(InvalidRequestError, match="one of queued, claimed, running, "):
            spec("a", filters=["state", "!=", wrong])
    for it in ExecutionState:
        assert spec("a", filters=[["state", "in", [it.value]]]).filters

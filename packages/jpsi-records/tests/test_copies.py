"""The records that can be rebuilt after the database is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_dispatcher import Client, finish, prepare_round, spec, start
from jpsi_records.model.entities import RequestState
from jpsi_records.records.copies import reindex, write_copy
from jpsi_records.records.records import Records

# Each time in a process of its own, which kills itself before or after its nth write.
SUBMITTING = """\
import contextlib, os, signal, sys

from jpsi_records.records import copies
from jpsi_records.records.records import Records
from jpsi_records.store.database import Database
from jpsi_records.model.request_spec import read_request_spec

directory, url, instants = sys.argv[1:]
write_whole, writing = copies.write_whole, Database.writing


def killed(instant):
    count = 0

    def tick():
        nonlocal count
        count += 1
        if count == instant:
            os.kill(os.getpid(), signal.SIGKILL)

    def written_whole(*arguments):
        tick()
        write_whole(*arguments)
        tick()

    @contextlib.contextmanager
    def written(self):
        with writing(self) as tx:
            yield tx
            tick()
        tick()

    copies.write_whole, Database.writing = written_whole, written
    Records(directory, url=url, user="ca").submit(read_request_spec({"command": ["true"]}))


for instant in range(1, int(instants) + 2):
    if (pid := os.fork()) == 0:
        killed(instant)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
INSTANTS = 4


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_no_request_is_in_the_records_without_its_copy(records: Records, url: str, tmp_path: Path) -> None:
    """At whatever instant the client is killed; a copy without its request has no effect."""
    execution = records.submit(spec("true")).execution or ""
    start(records, execution)
    finish(records, execution)
    write_copy(records, execution)
    command = [sys.executable, "-c", SUBMITTING, str(records.directory), url, str(INSTANTS)]

    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)

    assert done.stdout.split() == [*(["-9"] * INSTANTS), "0"]
    with Records(records.directory, url=f"sqlite:///{tmp_path}/new.sqlite", user="ca") as new:
        reindex(new)
        there, again = ({it.id: it for it in one.requests()} for one in (records, new))
    # the first, the one that was killed after its last write, and the last
    assert len(there) == 3
    assert {name: again[name] for name in there} == there
    assert {it.state for it in again.values()} == {RequestState.FINAL}
    # and the one whose copy was written just before its commit
    assert len(again) == 4


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_other_users_cannot_read_or_list_copies(records: Records) -> None:
    """Other users may find outputs by their digests, and logs by the ids of executions."""
    mounts = {"stdin": {"kind": "text", "content": "a"}}
    execution = records.submit(spec("true", mounts=mounts)).execution or ""
    start(records, execution)
    finish(records, execution)
    write_copy(records, execution)
    records.submit(spec("true", mounts=mounts))

    copies = list(records.directory.glob("executions/*/**/*.json"))

    copies += list(records.directory.glob("requests/*.json"))

    assert len(copies) == 3
    assert {it.stat().st_mode & 0o777 for it in copies} == {0o600}

    below = [it for it in records.directory.iterdir() if it.is_dir() and it.name != "requests"]
    assert (records.directory / "requests").stat().st_mode & 0o777 == 0o700
    below += [it for it in (records.directory / "blobs").iterdir() if it.is_dir()]
    assert {it.stat().st_mode & 0o777 for it in below} == {0o711}


def rebuilt(records: Records, tmp_path: Path) -> Records:
    """Return the records with another database, rebuilt from the copies."""
    url = f"sqlite:///{tmp_path}/new.sqlite"
    new = Records(records.directory, url=url, user=records.user, now=records.now)
    reindex(new)
    return new


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_no_waiting_request_is_lost_with_the_database(records: Records, tmp_path: Path) -> None:
    queued = records.submit(spec("a"), priority=3)
    held = records.submit(spec("b"), priority=2)
    records.cancel(held.id)
    waits = records.submit(spec("c", after=[queued.id]))
    draft = records.draft(spec("d"))
    running = records.submit(spec("e"))
    start(records, running.execution or "")
    write_copy(records, running.execution or "")
    joined = records.submit(spec("e"), priority=7)
    before = records.requests()
    assert {it.id for it in before} >= {queued.id, held.id, waits.id, draft.id, joined.id}

    with rebuilt(records, tmp_path) as new:
        assert new.requests() == before
        priorities = [new.execution(it.execution or "").priority for it in (queued, held, joined)]
        assert priorities == [3, 0, 7]
        finish(new, queued.execution or "")
        new.advance()
        assert new.request(waits.id).execution is not None


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_request_whose_waiting_execution_is_lost_gets_another(records: Records, tmp_path: Path) -> None:
    request = records.submit(spec("a"))
    (records.execution_directory(request.execution or "") / "record.json").unlink()

    with rebuilt(records, tmp_path) as new:
        assert new.request(request.id).execution is None
        new.advance()
        assert new.request(request.id).execution is not None


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_an_uncommitted_change_has_no_newer_copy(records: Records, tmp_path: Path) -> None:
    request = records.submit(spec("a"))
    start(records, request.execution or "")
    write_copy(records, request.execution or "")
    finish(records, request.execution or "")

    with rebuilt(records, tmp_path) as new:
        assert new.request(request.id).outcome == "complete"


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_copy_of_a_version_without_the_user_of_a_change_is_read(records: Records, tmp_path: Path) -> None:
    execution = records.submit(spec("a")).execution or ""
    copy = records.execution_directory(execution) / "record.json"
    document = json.loads(copy.read_text())
    del document["execution"]["modified_at"], document["execution"]["modified_by"]
    copy.write_text(json.dumps(document))

    with rebuilt(records, tmp_path) as new:
        found = new.execution(execution)
        assert (found.modified_at, found.modified_by) == (found.created_at, "")


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_request_that_was_cancelled_before_it_had_that_state_is_cancelled(
    records: Records, tmp_path: Path
) -> None:
    """Copies are not migrated; one that had priority zero from the start was not cancelled."""
    cancelled, held = records.submit(spec("a")), records.submit(spec("b"), priority=0)
    wanted = records.submit(spec("c"))
    records.cancel(cancelled.id)
    records.cancel(wanted.id)
    records.set_priority(wanted.id, 1)
    for copy in records.directory.glob("requests/*.json"):
        document = json.loads(copy.read_text())
        for row in document["requests"]:
            row["state"] = "committed"
        copy.write_text(json.dumps(document))

    with rebuilt(records, tmp_path) as new:
        states = {it.id: it.state for it in new.requests()}
        assert states == {
            cancelled.id: RequestState.CANCELLED,
            held.id: RequestState.COMMITTED,
            wanted.id: RequestState.COMMITTED,
        }


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_the_names_of_collections_are_not_lost_with_the_database(records: Records, tmp_path: Path) -> None:
    first = records.submit(spec("a"))
    for text in ("1", "2"):
        (tmp_path / "in").write_text(text)
        digest = records.put(tmp_path / "in", "my words/\u2028").digest
    mounts = {"/in": {"kind": "collection", "name": "my words/\u2028"}}
    waits = records.submit(spec("b", mounts=mounts, after=[first.id]))

    with rebuilt(records, tmp_path) as new:
        start(new, first.execution or "")
        finish(new, first.execution or "")
        new.advance()
        assert digest in new.execution(new.request(waits.id).execution or "").preimage


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_the_names_that_users_of_a_server_give_are_not_lost(
    records: Records, role: Client, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("1")
    digest = role("ca").put(tmp_path / "in", "words").digest
    prepare_round(records)

    with rebuilt(records, tmp_path) as new:
        mounts = {"/in": {"kind": "collection", "name": "words"}}
        assert digest in new.preview(spec("b", mounts=mounts)).resolution.wanted

"""The requests of a job, which are files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from fake_dispatcher import spec
from jpsi_records.errors import InvalidRequestError, StateError, StoreError
from jpsi_records.inbox import inbox as inboxes
from jpsi_records.inbox.inbox import NO_REPORT, Inbox, InboxRequest, Report, read_progress
from jpsi_records.model.entities import About
from jpsi_records.records.records import Records

ID = "019a0000-0000-7000-8000-000000000000"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a job."""
    (tmp_path / "inbox").mkdir()
    return {
        "JPSI_EXECUTION": "parent",
        "JPSI_INBOX": str(tmp_path / "inbox"),
        "JPSI_PROGRESS": str(tmp_path / "progress"),
    }


def test_a_request_is_read_as_it_was_written(environment: dict[str, str], tmp_path: Path) -> None:
    more = About(name="a", description="b", labels={"c": "d"}, expires_at=datetime(2030, 1, 1, tzinfo=UTC))
    requested = spec("compute", mounts={"/in": {"kind": "text", "content": "é\n"}}, reuse="never")

    request = Inbox(environment).submit(requested, more, priority=2.5)

    (path,) = (tmp_path / "inbox").iterdir()
    assert (path.name, path.stat().st_mode & 0o777) == (f"{request}.json", 0o600)
    read = inboxes.read_request(path.name, path.read_bytes())
    assert (read.id, read.spec, read.priority) == (request, requested, 2.5)
    assert read.more == attrs.evolve(more, parent="parent")


def test_progress_is_read_from_the_written_file(environment: dict[str, str], tmp_path: Path) -> None:
    Inbox(environment).set_progress(0.5)

    assert (tmp_path / "progress").read_text() == "0.5\n"
    with pytest.raises(ValueError, match="from 0 to 1"):
        Inbox(environment).set_progress(2)


def test_a_job_that_is_killed_while_it_reports_progress_has_reported_its_failure(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At no instant does the file hold less than was reported before."""
    inbox, progress = Inbox(environment), tmp_path / "progress"
    failed = Report(is_success=False, message="no input")
    inbox.set_progress(0.125, failed)
    held = []

    def noted(file: int, size: int) -> None:
        held.append(read_progress(progress.read_text()))
        os.truncate(progress, size)

    monkeypatch.setattr(os, "ftruncate", noted)
    inbox.set_progress(0.5)

    assert held == [(0.5, failed)]
    assert read_progress(progress.read_text()) == (0.5, failed)


@pytest.mark.parametrize("old", ["0.125\n0.25\n0.375\n", "0.125\n\n\n\n0.375", "x" * 99])
def test_a_job_that_is_killed_while_it_shortens_its_progress_file_leaves_no_old_lines(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str
) -> None:
    progress = tmp_path / "progress"
    progress.write_text(old)
    monkeypatch.setattr(os, "ftruncate", lambda file, size: None)

    Inbox(environment).set_progress(0.5)

    assert read_progress(progress.read_text()) == (0.5, NO_REPORT)


def test_a_write_of_progress_that_was_cut_short_is_continued(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress, pwrite = tmp_path / "progress", os.pwrite
    progress.write_text("0.25\n0.375\nfailure none\n")
    monkeypatch.setattr(os, "pwrite", lambda file, data, offset: pwrite(file, data[:2], offset))

    Inbox(environment).set_progress(0.5, Report(is_success=False, message="no input"))

    assert read_progress(progress.read_text()) == (0.5, Report(is_success=False, message="no input"))


def test_a_process_outside_of_jobs_has_no_inbox() -> None:
    with pytest.raises(StateError, match="this is no job of an execution"):
        Inbox({})


def test_a_job_opens_no_records(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JPSI_EXECUTION", "parent")

    with pytest.raises(StateError, match="opens no records; make requests with `jpsi request submit`"):
        Records(tmp_path / "records")

    assert not (tmp_path / "records").exists()


def test_an_invalid_request_is_reported_in_the_job(environment: dict[str, str], tmp_path: Path) -> None:
    inbox = Inbox(environment)

    with pytest.raises(StateError, match="a child of its own execution, parent"):
        inbox.submit(spec(), About(parent="another"))
    with pytest.raises(InvalidRequestError, match="finite number"):
        inbox.submit(spec(), priority=float("nan"))
    (tmp_path / "inbox").rmdir()
    with pytest.raises(StoreError, match="cannot be written"):
        inbox.submit(spec())


def test_a_missing_inbox_variable_is_named(environment: dict[str, str]) -> None:
    del environment["JPSI_INBOX"], environment["JPSI_PROGRESS"]

    with pytest.raises(StateError, match="JPSI_INBOX is not set"):
        Inbox(environment).submit(spec())
    with pytest.raises(StateError, match="JPSI_PROGRESS is not set"):
        Inbox(environment).set_progress(1)


WHOLE = json.loads(
    inboxes.write_request(
        InboxRequest(id=ID, spec=spec("compute"), more=About(name="a", parent="parent"), priority=1)
    )
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"v": 2}, "that this version knows"),
        ({"request_spec": {"command": []}}, "command must be a list of texts"),
        ({"request_spec": None}, "a request is a mapping"),
        ({"priority": None}, "finite number"),
        ({"priority": True}, "finite number"),
        ({"name": 1}, "must be text"),
        ({"name": "a\0"}, "must be text"),
        ({"name": "\ud800"}, "no JSON"),
        ({"parent": None}, "must be text"),
        ({"labels": []}, "no mapping"),
        ({"labels": {"a": 1}}, "must be text"),
        ({"expires_at": "soon"}, "no time"),
        ({"expires_at": 1}, "no time"),
    ],
    ids=str,
)
def test_an_invalid_request_file_reports_the_reason(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        inboxes.read_request(f"{ID}.json", json.dumps(WHOLE | change).encode())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (f"{ID}.json", json.dumps(WHOLE).encode()[:-1], "not whole"),
        (f"{ID}.json", b"", "not whole"),
        (f"{ID}.json", b"\xff", "no JSON"),
        (f"{ID}.json", b"[" * 100_000, "not whole"),
        (f"{ID}.json", b"[]", "that this version knows"),
        ("a; rm -rf.json", json.dumps(WHOLE).encode(), "its name"),
        (f"{ID}.yaml", json.dumps(WHOLE).encode(), "its name"),
    ],
    ids=["cut short", "empty", "binary", "deep", "a list", "a name", "a suffix"],
)
def test_an_invalid_request_document_reports_the_reason(name: str, content: bytes, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        inboxes.read_request(name, content)


# Each time in a process of its own, which kills itself before or after its nth change to a file.
WRITING = """\
import os, signal, sys
from pathlib import Path

from jpsi_records.inbox.inbox import Inbox
from jpsi_records.model.request_spec import read_request_spec

count = 0


def ticking(function, instant):
    def call(*arguments, **named):
        tick(instant)
        result = function(*arguments, **named)
        tick(instant)
        return result
    return call


def tick(instant):
    global count
    count += 1
    if count == instant:
        os.kill(os.getpid(), signal.SIGKILL)


instant = 0
while True:
    instant += 1
    place = Path(sys.argv[1], f"{instant:02}")
    place.mkdir()
    if (pid := os.fork()) == 0:
        for owner, name in ((os, "open"), (os, "fsync"), (os, "close"), (Path, "replace")):
            setattr(owner, name, ticking(getattr(owner, name), instant))
        inbox = Inbox({"JPSI_EXECUTION": "parent", "JPSI_INBOX": str(place)})
        inbox.submit(read_request_spec({"command": ["a"]}))
        os._exit(0)
    if os.waitpid(pid, 0)[1] == 0:
        print(instant - 1)
        break
"""


def test_a_request_file_is_complete_or_missing_after_a_kill(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRITING, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    )

    found = []
    for place in sorted(tmp_path.iterdir()):
        whole = [it for it in place.iterdir() if not it.name.startswith(".")]
        assert len(whole) <= 1
        assert all(inboxes.read_request(it.name, it.read_bytes()).spec == spec("a") for it in whole)
        found.append(len(whole))
    # before the renaming there is no file, afterwards one
    assert found == sorted(found)
    assert (found[0], found[-1], len(found)) == (0, 1, int(done.stdout) + 1)
    assert sum(found) > 1

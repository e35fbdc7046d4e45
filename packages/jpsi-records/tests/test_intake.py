"""The intake of jobs' requests, which are recorded once."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_dispatcher import Client, Clock, finish, prepare_round, spec, start
from jpsi_records.dispatch import intake
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.dispatch.intake import REFUSED, process_inbox
from jpsi_records.inbox.inbox import Inbox
from jpsi_records.model.entities import About, ExecutionState, RequestState
from jpsi_records.records.records import Records


@pytest.fixture
def parent(records: Records) -> str:
    """Return a running execution."""
    execution = records.submit(spec("parent"), priority=3).execution or ""
    start(records, execution)
    return execution


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    place = tmp_path / "inbox"
    place.mkdir()
    return place


def job_inbox(execution: str, inbox: Path) -> Inbox:
    """Return the inbox of an execution's job."""
    return Inbox({"JPSI_EXECUTION": execution, "JPSI_INBOX": str(inbox)})


def refused(records: Records, execution: str) -> list[str]:
    return [it.data["why"] for it in records.events(execution=execution) if it.kind == "refused"]


def test_a_request_of_a_job_belongs_to_the_owner_of_its_execution(
    records: Records, client: Client, clock: Clock, parent: str, inbox: Path
) -> None:
    clock.advance(1)
    client("cb").submit(spec("parent"))
    request = job_inbox(parent, inbox).submit(spec("child"), About(labels={"a": "b"}), priority=1)

    process_inbox(records, parent, inbox)
    prepare_round(records)

    child = records.request(request)
    assert (child.owner, child.parent, child.state) == ("ca", parent, RequestState.COMMITTED)
    assert (child.priority, child.labels) == (1, {"a": "b"})
    assert records.execution(child.execution or "").priority == 3
    assert [it.kind for it in records.events(request=request)] == ["created", "committed", "assigned"]
    assert list(inbox.iterdir()) == []

    finish(records, parent)
    assert records.request(request).outcome == "cancelled"


def test_a_request_of_a_job_belongs_to_a_user_who_has_cancelled_rather_than_to_one_with_a_draft(
    records: Records, client: Client, clock: Clock, inbox: Path
) -> None:
    others = client("cb")
    execution = others.satisfy(others.draft(spec("parent")).id).execution or ""
    clock.advance(1)
    first = records.submit(spec("parent"))
    start(records, execution)
    records.cancel(first.id)
    request = job_inbox(execution, inbox).submit(spec("child"))

    process_inbox(records, execution, inbox)

    assert records.request(request).owner == "ca"


def test_a_request_that_was_already_read_is_not_repeated(records: Records, parent: str, inbox: Path) -> None:
    request = job_inbox(parent, inbox).submit(spec("child"))
    (path,) = inbox.iterdir()
    content = path.read_bytes()
    process_inbox(records, parent, inbox)
    path.write_bytes(content)

    process_inbox(records, parent, inbox)

    assert [it.id for it in records.requests() if it.parent == parent] == [request]
    assert list(inbox.iterdir()) == []
    assert refused(records, parent) == []


def test_requests_left_by_an_ended_job_are_reported(records: Records, parent: str, inbox: Path) -> None:
    job_inbox(parent, inbox).submit(spec("child"))
    finish(records, parent)

    process_inbox(records, parent, inbox)

    assert refused(records, parent) == ["the execution whose job has made it has ended"]


def _of_another_parent(inbox: Path, parent: str, records: Records) -> None:
    job_inbox("another", inbox).submit(spec("child"))


def _of_another_users_output(inbox: Path, parent: str, records: Records) -> None:
    with Records(records.directory, url=records.database.engine.url, user="cb") as others:  # type: ignore[arg-type]
        theirs = others.submit(spec("theirs")).id
    job_inbox(parent, inbox).submit(spec("child", after=[theirs]))


def _after_nothing(inbox: Path, parent: str, records: Records) -> None:
    job_inbox(parent, inbox).submit(spec("child", after=["none"]))


def _truncated(inbox: Path, parent: str, records: Records) -> None:
    job_inbox(parent, inbox).submit(spec("child"))
    (path,) = inbox.iterdir()
    path.write_bytes(path.read_bytes()[:-1])


def _with_the_id_of_another(inbox: Path, parent: str, records: Records) -> None:
    job_inbox(parent, inbox).submit(spec("child"))
    (path,) = inbox.iterdir()
    path.rename(inbox / f"{records.requests()[0].id}.json")


def _a_pipe(inbox: Path, parent: str, records: Records) -> None:
    os.mkfifo(inbox / "pipe")


def _a_link(inbox: Path, parent: str, records: Records) -> None:
    (inbox / "link").symlink_to("/etc/passwd")


def _a_directory(inbox: Path, parent: str, records: Records) -> None:
    (inbox / "directory").mkdir()


@pytest.mark.parametrize(
    ("leave", "why"),
    [
        (_of_another_parent, "another execution as its parent, another"),
        (_of_another_users_output, "there is no request"),
        (_after_nothing, "there is no request none"),
        (_truncated, "it is not whole"),
        (_with_the_id_of_another, "the id of another request"),
        (_a_pipe, "is no file"),
        (_a_link, "symbolic links"),
        (_a_directory, "is no file"),
    ],
)
def test_an_invalid_request_is_reported_once_and_moved_aside(
    leave: Callable[[Path, str, Records], None], why: str, records: Records, parent: str, inbox: Path
) -> None:
    leave(inbox, parent, records)
    (left,) = (it.name for it in inbox.iterdir())

    process_inbox(records, parent, inbox)
    process_inbox(records, parent, inbox)

    (reason,) = refused(records, parent)
    assert why in reason
    assert [it.name for it in (inbox / REFUSED).iterdir()] == [left]
    assert [it for it in records.requests() if it.parent == parent] == []


def test_a_file_of_another_user_is_refused(
    records: Records, parent: str, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_inbox(parent, inbox).submit(spec("child"))
    monkeypatch.setattr(intake, "_owner_of", lambda file: os.getuid() + 1)

    process_inbox(records, parent, inbox)

    assert refused(records, parent) == ["the file belongs to another user"]


def test_an_unreadable_file_is_retried(
    records: Records, parent: str, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = job_inbox(parent, inbox).submit(spec("child"))

    def stale(path: Path) -> bytes:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    with monkeypatch.context() as patch:
        patch.setattr(intake, "_content", stale)
        process_inbox(records, parent, inbox)
    process_inbox(records, parent, inbox)

    assert records.request(request).parent == parent
    assert refused(records, parent) == []


def test_a_file_that_is_too_large_is_not_read(
    records: Records, parent: str, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "_MAX_BYTES", 10)
    job_inbox(parent, inbox).submit(spec("child"))

    process_inbox(records, parent, inbox)

    assert refused(records, parent) == ["it has more than 10 bytes"]


def test_a_file_that_is_being_written_is_ignored(records: Records, parent: str, inbox: Path) -> None:
    (inbox / ".being-written").touch()

    process_inbox(records, parent, inbox)
    process_inbox(records, parent, inbox / "missing")

    assert [it.name for it in inbox.iterdir()] == [".being-written"]
    assert refused(records, parent) == []


# Each time in a process of its own, which kills itself before or after its nth action.
TAKING = """\
import contextlib, os, signal, sys
from pathlib import Path

from jpsi_records.dispatch.intake import process_inbox
from jpsi_records.records.records import Records
from jpsi_records.store.database import Database

directory, url, parent, inboxes = sys.argv[1:]
count = 0


def tick(instant):
    global count
    count += 1
    if count == instant:
        os.kill(os.getpid(), signal.SIGKILL)


def ticking(function, instant):
    def call(*arguments, **named):
        tick(instant)
        result = function(*arguments, **named)
        tick(instant)
        return result
    return call


def killed(instant, inbox):
    records = Records(directory, url=url)
    writing = Database.writing

    @contextlib.contextmanager
    def written(self):
        tick(instant)
        with writing(self) as tx:
            yield tx
            tick(instant)
        tick(instant)

    Database.writing = written
    for name in ("unlink", "mkdir", "replace"):
        setattr(Path, name, ticking(getattr(Path, name), instant))
    process_inbox(records, parent, inbox)


for instant, inbox in enumerate(sorted(Path(inboxes).iterdir()), 1):
    if (pid := os.fork()) == 0:
        killed(instant, inbox)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
# Three actions are in each transaction, and two in each change to a file.
INSTANTS = 16


def test_a_killed_dispatcher_does_not_repeat_a_request(
    records: Records, url: str, parent: str, tmp_path: Path
) -> None:
    places = [tmp_path / "inboxes" / f"{instant:02}" for instant in range(1, INSTANTS + 2)]
    ids = []
    for place in places:
        place.mkdir(parents=True)
        ids.append(job_inbox(parent, place).submit(spec("child", place.name)))
        (place / f"x{place.name}").write_text("no request")

    command = [sys.executable, "-c", TAKING, str(records.directory), url, parent, str(tmp_path / "inboxes")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == [*(["-9"] * INSTANTS), "0"]
    for place in places:
        process_inbox(records, parent, place)

    assert sorted(it.id for it in records.requests() if it.parent == parent) == sorted(ids)
    refused = [it.data["file"] for it in records.events(execution=parent) if it.kind == "refused"]
    assert sorted(refused) == [f"x{place.name}" for place in places]
    for place in places:
        assert [it.name for it in place.iterdir()] == [REFUSED]
        assert [it.name for it in (place / REFUSED).iterdir()] == [f"x{place.name}"]


# A Python program that fails if it opens a database, or imports the modules that do.
WATCHED = """\
import os, runpy, sys


def watch(event, arguments):
    is_database = event == "open" and "records.sqlite" in str(arguments[0])
    if is_database or event.startswith(("sqlite3.", "socket.connect")):
        os.write(2, f"{event} {arguments}".encode())
        os._exit(99)


sys.addaudithook(watch)
sys.modules["sqlalchemy"] = None
del sys.argv[0]
if sys.argv[0] == "-c":
    exec(sys.argv[1])
else:
    runpy.run_module("jpsi_cli", run_name="__main__", alter_sys=True)
"""
SUBMITTING = """\
from jpsi_records import About, Inbox, read_request_spec
inbox = Inbox()
inbox.set_progress(0.75)
print(inbox.submit(read_request_spec({"command": ["touch", "%s"]}), About(name="python")))
"""
OPENING = """\
import sys
del sys.modules["sqlalchemy"]
from jpsi_records import Records, StateError
try:
    Records("%s")
except StateError as e:
    print(e)
"""
SCRIPT = """\
jpsi() { "$PYTHON" "$HERE/watched.py" jpsi "$@"; }
set -e
jpsi request submit "$HERE/child.yaml" --priority 1 --name shell
jpsi request progress "$JPSI_EXECUTION" 0.5
"$PYTHON" "$HERE/watched.py" -c "$(cat "$HERE/submitting.py")"
"$PYTHON" "$HERE/watched.py" -c "$(cat "$HERE/opening.py")"
set +e
jpsi request ls
echo "ls $?"
jpsi request submit "$HERE/child.yaml" --records "$HERE/records"
echo "records $?"
jpsi request submit "$HERE/child.yaml" --plan x
echo "plan $?"
jpsi request progress other 0.5
echo "progress $?"
until [ -e "$HERE/one" ] && [ -e "$HERE/two" ]; do sleep 0.05; done
"""


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_job_submits_requests_without_opening_the_database(url: str, tmp_path: Path) -> None:
    """As a job of this machine, with the command line as typed."""
    (tmp_path / "watched.py").write_text(WATCHED)
    (tmp_path / "submitting.py").write_text(SUBMITTING % (tmp_path / "two"))
    (tmp_path / "opening.py").write_text(OPENING % (tmp_path / "records"))
    (tmp_path / "child.yaml").write_text(f"command: [touch, {tmp_path}/one]")
    variables = {"PYTHON": sys.executable, "HERE": str(tmp_path)}
    with Records(tmp_path / "records", url=url, user="ca") as records:
        request = records.submit(spec("sh", "-c", SCRIPT, environment=variables), priority=3)
        execution = request.execution or ""
        dispatcher = Dispatcher(records)
        seen = set()
        while records.request(request.id).state is not RequestState.FINAL:
            dispatcher.step()
            seen.add(records.execution(execution).progress)
        dispatcher.close()

        done = records.execution(execution)
        kept = records.blobs.manifest(done.log or "")
        stdout, wrong = (records.blobs.path(kept[it].digest).read_text() for it in ("stdout", "stderr"))
        assert (done.state, done.exit_code) == (ExecutionState.COMPLETE, 0), wrong
        assert 0.75 in seen
        children = [it for it in records.requests() if it.parent == execution]
        assert [(it.owner, it.name) for it in children] == [("ca", "shell"), ("ca", "python")]
        assert {records.execution(it.execution or "").priority for it in children} == {3}
        words = [line.split() for line in stdout.splitlines()]
        assert words[:2] == [[children[0].id], [children[1].id]]
        assert "opens no records; make requests" in stdout.splitlines()[2]
        assert words[3:] == [["ls", "125"], ["records", "125"], ["plan", "125"], ["progress", "125"]]
        assert [line.split(":")[1].split()[0] for line in wrong.splitlines()] == ["the", "a", "a", "a"]

"""Executions as real jobs of this machine."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi
from fake_dispatcher import Client, spec
from jpsi_engine import Excess
from jpsi_records import formatting
from jpsi_records.dispatch import dispatcher as dispatcher_module
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.jobs.attempt_job import AttemptFiles
from jpsi_records.jobs.materialize import revoke
from jpsi_records.model.entities import About, Execution, ExecutionState
from jpsi_records.records.copies import reindex
from jpsi_records.records.records import Records


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return one database's URL, as the dispatcher treats all databases alike."""
    return f"sqlite:///{tmp_path / 'records.sqlite'}"


@pytest.fixture
def records(tmp_path: Path, url: str) -> Iterator[Records]:
    """Return records with real time, as jobs run in it."""
    with Records(tmp_path / "records", url=url, user="ca") as records:
        yield records


LEASE = timedelta(seconds=60)


def dispatched(records: Records, *requests: str, lease: float = 60) -> None:
    """Run a dispatcher until no execution can run."""
    dispatcher = Dispatcher(records, lease=timedelta(seconds=lease))
    dispatcher.run(until_idle=True)
    dispatcher.close()


def executed(records: Records, *command: str, **more: object) -> Execution:
    request = records.submit(spec(*command, **more))
    dispatched(records)
    return records.execution(request.execution or "")


def content(records: Records, digest: str | None) -> dict[str, str]:
    """Return the files of a collection."""
    assert digest is not None
    manifest = records.blobs.manifest(digest)
    return {at: records.blobs.path(it.digest).read_text() for at, it in manifest.items()}


def test_a_job_that_can_never_start_is_not_submitted(
    records: Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = Excess("nodes", "it asks for 9 nodes and can never start; the queue main has 2")
    time = Excess("time", "it asks for 5:00:00 and can never start; the queue main has 1:00:00")
    monkeypatch.setattr(
        dispatcher_module, "find_excess", lambda _executor, specs: {nodes: [*specs], time: [*specs]}
    )
    request = records.submit(spec("touch", str(tmp_path / "ran")))

    dispatched(records)

    found = records.execution(request.execution or "")
    assert (found.state, found.reason) == (ExecutionState.CANCELLED, "invalid")
    listed = "".join(f"\n{' ' * 11}  - {it.sentence}" for it in (nodes, time))
    shown = formatting.details(records.request(request.id), found, [], [])
    assert f"error      the job is not valid:{listed}\n" in shown
    assert formatting.result(records.request(request.id), found, is_new=True) == (
        f"execution {found.id} never ran: failed (invalid)"
    )
    assert not (tmp_path / "ran").exists()


@pytest.mark.clause("records-streams", "records-output", "records-collection", "records-places")
def test_a_result_is_computed_once_and_stored(records: Records, tmp_path: Path) -> None:
    request_spec = spec(
        "sh",
        "-c",
        f"echo ran >>{tmp_path}/runs; cat; cat ${{JPSI_ROOT}}/in/a; pwd; echo $V; echo late >&2",
        cwd="/out",
        environment={"V": "${JPSI_ROOT}/x"},
        mounts={
            "stdin": {"kind": "json", "content": {"b": 1.0, "a": 2}},
            "/in/a": {"kind": "text", "content": "input\n"},
            "/out": {"kind": "collection"},
            "stdout": {"kind": "file", "path": "/out/sub/output"},
        },
        output_path="/out",
    )
    first = records.submit(request_spec)

    dispatched(records)

    execution = records.execution(first.execution or "")
    assert (execution.state, execution.exit_code, execution.progress) == (ExecutionState.COMPLETE, 0, 1.0)
    root = str(records.directory / "executions" / execution.id / "1" / "root")
    text = f'{{"a":2,"b":1}}input\n{root}/out\n{root}/x\n'
    assert content(records, execution.output) == {"sub/output": text}
    assert content(records, execution.log)["stderr"] == "late\n"
    assert records.request(first.id).outcome == "complete"

    again = records.submit(request_spec)
    dispatched(records)

    assert again.execution == execution.id
    assert (tmp_path / "runs").read_text() == "ran\n"


def test_an_end_begins_the_next_round(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user waits for it, and so may other requests."""
    monkeypatch.setattr(dispatcher_module, "_ROUND_SECONDS", 3600)
    first = records.submit(spec("true"))
    records.submit(spec("echo", after=[first.id]))

    run = threading.Thread(target=dispatched, args=[records], daemon=True)
    run.start()
    run.join(60)

    assert not run.is_alive()
    assert [it.outcome for it in records.requests()] == ["complete", "complete"]


def test_patterns_select_the_stored_files(records: Records) -> None:
    execution = executed(
        records,
        *(
            "sh",
            "-c",
            "mkdir d; echo 1 >a.txt; echo 2 >d/b.txt; echo 3 >c.log; ln -s a.txt link; ln -s /etc out",
        ),
        cwd="/out",
        mounts={"/out": {"kind": "tmp"}},
        output_path="/out",
        output_globs=["**/*.txt", "link", "out"],
    )

    manifest = records.blobs.manifest(execution.output or "")
    assert sorted(manifest) == ["a.txt", "d/b.txt", "link"]
    assert manifest["link"].link == "a.txt"
    assert "out is a link that leads out" in execution.status["warning"]


def captured_once(records: Records, caplog: pytest.LogCaptureFixture, *globs: str) -> Execution:
    """Run a job until it ends or the dispatcher wants to store its output again."""
    tmp = {"/out": {"kind": "tmp"}}
    script = "mkdir -p closed; echo 1 >a; echo 2 >closed/b; echo 3 >secret"
    command = ("sh", "-c", script)
    request = records.submit(
        spec(*command, cwd="/out", mounts=tmp, output_path="/out", output_globs=list(globs))
    )
    dispatcher = Dispatcher(records)
    dispatcher.run(until_idle=True, is_over=lambda: "it is tried again" in caplog.text)
    dispatcher.close()
    return records.execution(request.execution or "")


def refuse_to_read(monkeypatch: pytest.MonkeyPatch, name: str, code: int) -> None:
    """Let each read of a file or directory with a name fail; root may read them all."""

    def guarded(read: Callable[..., object]) -> Callable[..., object]:
        def read_if_permitted(path: object, *args: object, **options: object) -> object:
            if isinstance(path, str | Path) and Path(path).name == name:
                raise OSError(code, os.strerror(code), str(path))
            return read(path, *args, **options)

        return read_if_permitted

    monkeypatch.setattr(os, "scandir", guarded(os.scandir))
    monkeypatch.setattr(Path, "open", guarded(Path.open))


def kept_root(records: Records, execution: Execution) -> Path:
    return AttemptFiles(records.directory / "executions" / execution.id / "1").root


@pytest.mark.parametrize(
    ("name", "left"),
    [("closed", ["a", "secret"]), ("secret", ["a", "closed/b"]), ("out", [])],
)
def test_what_may_not_be_read_is_left_out_of_the_output_and_the_result_says_so(
    records: Records,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    left: list[str],
) -> None:
    with monkeypatch.context() as patch:
        refuse_to_read(patch, name, errno.EACCES)
        execution = captured_once(records, caplog)

    assert (execution.state, execution.exit_code) == (ExecutionState.COMPLETE, 0)
    assert sorted(content(records, execution.output)) == left
    what = "the directory itself" if name == "out" else name
    root = kept_root(records, execution)
    kept = f"what cannot be read is kept in {root}"
    assert execution.status == {"warning": f"{what} cannot be read: Permission denied; {kept}"}
    assert sorted(it.name for it in root.rglob("*") if it.is_file()) == ["a", "b", "secret"]
    assert f"{what} cannot be read" in formatting.details(None, execution, [], [])


def test_an_output_that_may_not_be_reached_is_empty_and_the_result_says_so(
    records: Records, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    exists = Path.exists

    def exists_if_permitted(path: Path) -> bool:
        if path.name == "out":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", exists_if_permitted)

    execution = captured_once(records, caplog)

    assert content(records, execution.output) == {}
    warning = "/out, which is the output, cannot be read: Permission denied"
    kept = f"what cannot be read is kept in {kept_root(records, execution)}"
    assert execution.status == {"warning": f"{warning}; {kept}"}


def test_a_log_that_may_not_be_read_is_left_out_and_the_result_says_so(
    records: Records, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_read(monkeypatch, "stdout", errno.EACCES)

    execution = captured_once(records, caplog)

    assert sorted(content(records, execution.log)) == ["stderr"]
    assert execution.status == {"warning": "of the log, stdout cannot be read: Permission denied"}


def test_a_log_that_may_not_be_read_is_named_also_if_there_is_no_result(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_read(monkeypatch, "stdout", errno.EACCES)

    execution = executed(records, "/no/such/program", output_path="/out", mounts={"/out": {"kind": "tmp"}})

    assert execution.state is ExecutionState.CANCELLED
    assert "/no/such/program" in execution.status["error"]
    assert execution.status["warning"] == "of the log, stdout cannot be read: Permission denied"


@pytest.mark.parametrize(
    ("glob", "selects"),
    [
        *((it, False) for it in ("a", "*", "closed", "*.d/**")),
        *((it, True) for it in ("closed/b", "**/x", "closed/**", "*/b")),
    ],
)
def test_a_directory_must_be_readable_if_the_patterns_may_select_from_it(
    records: Records,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    glob: str,
    *,
    selects: bool,
) -> None:
    refuse_to_read(monkeypatch, "closed", errno.EACCES)

    execution = captured_once(records, caplog, glob)

    kept = f"what cannot be read is kept in {kept_root(records, execution)}"
    warning = {"warning": f"closed cannot be read: Permission denied; {kept}"}
    assert execution.state is ExecutionState.COMPLETE
    assert execution.status == (warning if selects else {})


@pytest.mark.parametrize("name", ["closed", "secret"])
def test_an_output_that_cannot_be_read_for_now_is_stored_later(
    records: Records, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A stale file handle may be gone in the next round."""
    with monkeypatch.context() as patch:
        refuse_to_read(patch, name, errno.ESTALE)
        execution = captured_once(records, caplog)
    assert not execution.state.ended
    assert f"{name} cannot be read: {os.strerror(errno.ESTALE)}; it is tried again" in caplog.text

    dispatched(records)

    assert sorted(content(records, records.execution(execution.id).output)) == ["a", "closed/b", "secret"]


@pytest.mark.clause("records-collection")
def test_the_output_of_one_is_the_input_of_another(records: Records) -> None:
    script = "echo one >a; mkdir b; echo two >b/c; chmod +x a"
    first = executed(
        records,
        *("sh", "-c", script),
        cwd="/out",
        mounts={"/out": {"kind": "collection"}},
        output_path="/out",
    )

    second = executed(
        records,
        *(
            "sh",
            "-c",
            "cat ${JPSI_ROOT}/in/c; touch ${JPSI_ROOT}/in/d || test $(id -u) = 0; test -x ../all/a",
        ),
        cwd="/in",
        mounts={
            "/in": {"kind": "collection", "digest": first.output, "path": "/b"},
            "/all": {"kind": "collection", "digest": first.output, "writable": True},
        },
    )

    assert content(records, second.log)["stdout"] == "two\n"
    assert second.exit_code == 0


@pytest.mark.clause("records-collection")
def test_changes_of_a_job_to_its_input_are_not_stored(records: Records) -> None:
    digest = executed(
        records,
        *("sh", "-c", "echo one >a"),
        cwd="/out",
        mounts={"/out": {"kind": "collection"}},
        output_path="/out",
    ).output

    second = executed(
        records,
        *("sh", "-c", "echo two >a; echo three >b; cat a b"),
        cwd="/in",
        mounts={"/in": {"kind": "collection", "digest": digest, "writable": True}},
    )

    assert content(records, second.log)["stdout"] == "two\nthree\n"
    assert content(records, digest) == {"a": "one\n"}


@pytest.mark.clause("records-tmp")
def test_a_temporary_directory_is_empty_and_not_stored(records: Records) -> None:
    command = ("sh", "-c", "ls -A; echo x >left")
    executions = [
        executed(records, *command, cwd="/scratch", mounts={"/scratch": {"kind": "tmp"}}, reuse="never")
        for _ in range(2)
    ]

    assert [content(records, it.log)["stdout"] for it in executions] == ["", ""]
    assert list((records.directory / "executions").rglob("left")) == []


def test_a_failed_computation_is_complete_and_has_its_exit_code(records: Records) -> None:
    execution = executed(records, "sh", "-c", "exit 3")

    assert execution.has_failed
    assert (execution.exit_code, execution.reason) == (3, "exit_code")


def test_an_invalid_job_reports_the_reason(records: Records) -> None:
    execution = executed(records, "/nowhere/program")
    nowhere = executed(records, "true", placement={"executor": "no-such"})

    assert (execution.state, execution.reason) == (ExecutionState.CANCELLED, "executable")
    assert "/nowhere/program" in execution.status["error"]
    assert (nowhere.state, nowhere.reason) == (ExecutionState.CANCELLED, "invalid")
    assert "no-such" in nowhere.status["error"]


@pytest.mark.clause("records-priority")
def test_an_execution_without_requests_is_not_run(records: Records, tmp_path: Path) -> None:
    request = records.submit(spec("touch", str(tmp_path / "ran")), priority=0)

    dispatched(records)
    assert not (tmp_path / "ran").exists()
    assert records.execution(request.execution or "").state is ExecutionState.QUEUED

    records.set_priority(request.id, 1)
    dispatched(records)
    assert (tmp_path / "ran").exists()


def test_a_job_is_cancelled_with_its_last_interested_request(client: Client, records: Records) -> None:
    other = client("cb")
    one, two = records.submit(spec("sleep", "60")), other.submit(spec("sleep", "60"))
    execution = one.execution or ""
    dispatcher = Dispatcher(records)
    while records.execution(execution).state is not ExecutionState.RUNNING:
        dispatcher.step()

    records.cancel(one.id)
    dispatcher.step()
    assert records.execution(execution).reason is None

    other.cancel(two.id)
    dispatcher.run(until_idle=True)
    assert records.execution(execution).state is ExecutionState.CANCELLED
    assert {it.outcome for it in records.requests(execution=execution)} == {"cancelled"}


@pytest.mark.clause("records-progress")
def test_progress_is_that_reported_by_the_job(records: Records, tmp_path: Path) -> None:
    script = f'echo 0.25 >"$JPSI_PROGRESS"; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done'
    request = records.submit(spec("sh", "-c", script))
    dispatcher = Dispatcher(records)
    while records.execution(request.execution or "").progress != 0.25:
        dispatcher.step()

    (tmp_path / "go").touch()
    dispatcher.run(until_idle=True)
    assert records.execution(request.execution or "").progress == 1


def test_a_pipe_as_progress_file_does_not_block(records: Records, tmp_path: Path) -> None:
    until = f"until [ -e {tmp_path}/go ]; do sleep 0.05; done"
    script = f'mkfifo "$JPSI_PROGRESS"; touch {tmp_path}/made; {until}'
    request = records.submit(spec("sh", "-c", script))
    dispatcher = Dispatcher(records)
    while not (tmp_path / "made").exists():
        dispatcher.step()

    dispatcher.step()
    (tmp_path / "go").touch()
    dispatcher.run(until_idle=True)
    assert records.execution(request.execution or "").exit_code == 0


def test_a_dispatcher_adopts_the_job_of_an_ended_one(records: Records, tmp_path: Path) -> None:
    script = f"echo ran >>{tmp_path}/runs; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    request = records.submit(spec("sh", "-c", script))
    gone = Dispatcher(records, lease=timedelta(0))
    while not (tmp_path / "runs").exists():
        gone.step()

    (tmp_path / "go").touch()
    dispatched(records)

    execution = records.execution(request.execution or "")
    assert (execution.exit_code, (tmp_path / "runs").read_text()) == (0, "ran\n")
    assert [it.number for it in records.attempts(execution.id)] == [1]


def test_a_suspended_dispatcher_leaves_its_executions_to_the_next(records: Records, tmp_path: Path) -> None:
    """The next dispatcher stores the job's files before they are removed."""
    script = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo made >a"
    mounts = {"/out": {"kind": "collection"}}
    request = records.submit(spec("sh", "-c", script, cwd="/out", mounts=mounts, output_path="/out"))
    execution = request.execution or ""
    begun = records.now()
    with Records(records.directory, url=str(records.database.engine.url), now=lambda: begun) as its_time:
        asleep = Dispatcher(its_time)
        asleep.step()
        late = Records(records.directory, url=str(records.database.engine.url), now=lambda: begun + 2 * LEASE)
        awake = Dispatcher(late)
        awake.step()
        (tmp_path / "go").touch()

        asleep.run(until_idle=True)
        awake.run(until_idle=True)
        late.close()

    assert content(records, records.execution(execution).output) == {"a": "made\n"}


def test_a_job_of_a_revoked_attempt_does_not_run(records: Records, tmp_path: Path) -> None:
    """Nor does a job that a dispatcher submits after it was suspended for longer than its lease."""
    request = records.submit(spec("touch", str(tmp_path / "ran")))
    files = AttemptFiles(records.directory / "executions" / (request.execution or "") / "1")
    submit = jpsi.JobExecutor.submit

    class Late(jpsi.JobExecutor):
        def submit(self, job: jpsi.Job) -> None:
            assert revoke(files)
            submit(self, job)

    dispatcher = Dispatcher(records, executors=Late)
    dispatcher.run(until_idle=True)

    assert not (tmp_path / "ran").exists()
    execution = records.execution(request.execution or "")
    assert (execution.state, execution.reason) == (ExecutionState.CANCELLED, "pre_launch")


def test_the_claim_of_a_job_cannot_be_revoked(records: Records) -> None:
    execution = executed(records, "true")
    files = AttemptFiles(records.directory / "executions" / execution.id / "1")

    assert not revoke(files)


def test_lost_records_are_rebuilt(records: Records, tmp_path: Path) -> None:
    done = executed(records, "true", environment={"A": "1"})
    failed = executed(records, "false")
    records.invalidate(failed.id)
    before = [records.requests(), records.execution(done.id), records.attempts(done.id)]
    history = [[(it.time, it.kind, it.data) for it in records.events()], records.usage()]
    (records.directory / "executions" / "odd").mkdir()
    (records.directory / "executions" / "odd" / "record.json").write_text("{")
    records.close()
    for path in tmp_path.glob("records*sqlite*"):
        path.unlink()

    with Records(records.directory, url=f"sqlite:///{tmp_path}/new.sqlite") as again:
        restored = reindex(again)
        assert (restored.executions, restored.requests, len(restored.unreadable)) == (2, 2, 1)
        assert [again.requests(), again.execution(done.id), again.attempts(done.id)] == before
        assert again.execution(failed.id).invalidated_by == records.user
        events = [(it.time, it.kind, it.data) for it in again.events()]
        assert [events[:-1], again.usage()] == history
        assert again.submit(spec("true", environment={"A": "1"})).execution == done.id
        once = again.events()
        assert reindex(again).executions == 0
        assert len(again.events()) == len(once) + 1


def test_immediately_satisfied_requests_are_rebuilt(records: Records, tmp_path: Path) -> None:
    done = executed(records, "true")
    again = [records.submit(spec("true"), About(labels={"a": str(number)})) for number in range(2)]
    # the execution is written again, with both; then a third request follows
    records.invalidate(done.id)
    chosen = records.submit(spec("true", reuse="never"))
    dispatched(records)
    last = records.submit(spec("true"))
    assert [it.outcome for it in (*again, last)] == ["complete"] * 3
    assert last.execution == chosen.execution
    before, events = records.requests(), [(it.time, it.kind, it.request, it.data) for it in records.events()]
    accounted = records.usage()

    with Records(records.directory, url=f"sqlite:///{tmp_path}/new.sqlite") as new:
        restored = reindex(new)

        assert (restored.executions, restored.requests, restored.unreadable) == (2, len(before), ())
        assert new.requests() == before
        assert [(it.time, it.kind, it.request, it.data) for it in new.events()][:-1] == events
        assert new.usage() == accounted
        assert reindex(new).requests == 0


def test_a_request_whose_execution_is_lost_is_reported_and_left_out(records: Records, tmp_path: Path) -> None:
    executed(records, "true")
    lost = records.submit(spec("true"))
    (records.execution_directory(lost.execution or "") / "record.json").unlink()

    with Records(records.directory, url=f"sqlite:///{tmp_path}/new.sqlite") as new:
        restored = reindex(new)

        assert (restored.executions, restored.requests, new.requests()) == (0, 0, [])
        assert any(lost.id in it for it in restored.unreadable)


def test_a_job_whose_records_were_lost_is_adopted(records: Records, tmp_path: Path) -> None:
    script = f"echo ran >>{tmp_path}/runs; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    request = records.submit(spec("sh", "-c", script))
    gone = Dispatcher(records)
    while not (tmp_path / "runs").exists():
        gone.step()

    with Records(records.directory, url=f"sqlite:///{tmp_path}/new.sqlite") as again:
        reindex(again)
        (tmp_path / "go").touch()
        dispatched(again)

        assert again.request(request.id).outcome == "complete"
    assert (tmp_path / "runs").read_text() == "ran\n"


@pytest.mark.clause("records-git-tree", "records-git-commit", "records-git-revisions")
def test_a_git_tree_is_materialized_without_git(records: Records, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    for command in (
        ("init", "--quiet", "--initial-branch=main", "."),
        ("config", "user.email", "a@b"),
        ("config", "user.name", "a"),
    ):
        repository.mkdir(exist_ok=True)
        subprocess.run(["git", "-C", str(repository), *command], check=True)
    for number in (1, 2, 3):
        (repository / "src").mkdir(exist_ok=True)
        (repository / "src" / "a").write_text(f"{min(number, 2)}\n")
        (repository / "other").write_text(f"{number}\n")
        subprocess.run(["git", "-C", str(repository), "add", "."], check=True)
        subprocess.run(["git", "-C", str(repository), "commit", "--quiet", "-m", str(number)], check=True)

    def run(**mount: str) -> Execution:
        tree = {"kind": "git_tree", "url": str(repository), **mount}
        return executed(records, "sh", "-c", "ls -A; cat a", cwd="/src", mounts={"/src": tree})

    newest = run(commit="main", path="/src")
    tree = subprocess.run(
        ["git", "-C", str(repository), "rev-parse", "main:src"], check=True, capture_output=True, text=True
    ).stdout.strip()
    assert json.loads(newest.preimage)["mounts"]["/src"] == {"kind": "git_tree", "tree": tree}
    assert content(records, newest.log)["stdout"] == "a\n2\n"
    # the directory has not changed between these commits
    assert run(commit="main~1", path="/src").id == newest.id
    oldest = run(commit="main~2", path="/src")
    assert oldest.id != newest.id
    # any commit of a range satisfies the request, and a new run has the newest
    assert run(revisions="main", path="/src").id == min(newest, oldest, key=lambda it: it.finished_at or 0).id
    assert run(revisions="main~1..main", path="/src").id == newest.id


def test_the_output_of_a_request_is_waited_for(records: Records) -> None:
    made = records.submit(
        spec(
            *("sh", "-c", "mkdir d; echo made >d/a"),
            cwd="/out",
            mounts={"/out": {"kind": "collection"}},
            output_path="/out",
        )
    )
    mounts = {
        "/in": {"kind": "output", "request": made.id, "path": "/d"},
        "stdin": {"kind": "output", "request": made.id, "path": "/d/a"},
    }
    using = records.submit(spec("sh", "-c", "cat; cat a", cwd="/in", mounts=mounts))
    assert using.execution is None

    dispatched(records)

    execution = records.execution(records.request(using.id).execution or "")
    assert content(records, execution.log)["stdout"] == "made\nmade\n"


def test_a_job_is_submitted_again_within_its_attempt(records: Records, tmp_path: Path) -> None:
    script = 'mkdir "$0" || exit 0; exit 7'
    execution = executed(
        records, "sh", "-c", script, str(tmp_path / "tried"), placement={"retry": {7: 1}, "qos": None}
    )

    assert (execution.state, execution.exit_code) == (ExecutionState.COMPLETE, 0)
    assert [it.number for it in records.attempts(execution.id)] == [1]

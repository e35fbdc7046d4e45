"""Lost and damaged files of jobs: a job that has run never runs again, and no other job is affected."""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import pytest

import jpsi
from jpsi import JobExecutor, JobState
from jpsi.model import serialization
from jpsi.plugin import ExecutorConfig
from jpsi_engine import job_store
from jpsi_engine.host.procfs import boot_id
from jpsi_engine.spool import damage, encode_status
from jpsi_engine.spool.spool import Spool
from jpsi_engine.verdict import CANCEL, Stop
from jpsi_testing import PluginDirectory
from jpsi_testing.fake import FakeScheduler, on_path
from toys import QUICK, install_toy

PATIENCE = 60.0
TIME = datetime(2026, 1, 1, tzinfo=UTC)

#: The progress of a job: its markers, and the record of a cancellation or of its end.
STAGES = {
    "ended": ["active", "exit.run.3"],
    "running": ["active"],
    "stopped": ["active", "stop"],
    "published": ["active", "signalled", "exit.run.143", "final"],
}
FINAL = jpsi.JobStatus(JobState.CANCELED, time=TIME, exit_code=143, message="the job was cancelled")


def removed(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def garbled(path: Path) -> None:
    path.write_bytes(b"\x00\xff\x9d garbage \x1b[31m" * 9)


def zeroed(path: Path) -> None:
    path.write_bytes(b"\0" * path.stat().st_size)


def mistyped(path: Path) -> None:
    path.write_text('{"id": 5, "spec": "text", "time": 7, "state": [], "why": {}}')


def listed(path: Path) -> None:
    path.write_text("[]")


def nested(path: Path) -> None:
    path.write_text("[" * 100_000)


def overlong(path: Path) -> None:
    """No timedelta holds this duration."""
    spec = {"executable": "/bin/sh", "attributes": {"duration": 1e18}}
    path.write_text(json.dumps({"time": TIME.isoformat(), "directory": "/", "spec": spec}))


def undatable(path: Path) -> None:
    """UTC has no such time."""
    content = {"time": "0001-01-01T00:00:00+14:00", "directory": "/", "spec": {"executable": "/bin/sh"}}
    path.write_text(json.dumps(content))


def made_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def closed(path: Path) -> None:
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root reads everything")


DAMAGES = (
    removed,
    emptied,
    cut,
    garbled,
    zeroed,
    mistyped,
    listed,
    nested,
    overlong,
    undatable,
    made_a_directory,
    closed,
)
#: The files of a job that jpsi reads, and the progress of a job that has them.
FILES = {
    "intent.1.json": ("ended", "running", "published"),
    "claim.1": ("ended", "running"),
    "stop.1.json": ("stopped",),
    "final.1.json": ("published",),
}
CELLS = {
    f"{stage}-{name}-{damage.__name__}": (STAGES[stage], name, damage)
    for name, stages in FILES.items()
    for stage in stages
    for damage in DAMAGES
} | {
    f"{stage}-{name}-{damage.__name__}": (STAGES[stage], name, damage)
    for name in ("start.1.0", "run.1", "stdout")
    for stage in ("ended", "running")
    for damage in (removed, made_a_directory)
}


def without_native_id(folder: Path) -> None:
    """Restore the intent from before the batch system answered."""
    path = folder / "intent.1.json"
    path.write_text(path.read_text().partition("\n")[0])


def with_claim_lost(folder: Path) -> None:
    without_native_id(folder)
    (folder / "claim.1").unlink()


def with_claim_empty(folder: Path) -> None:
    without_native_id(folder)
    (folder / "claim.1").write_text("")


def with_all_but_markers_lost(folder: Path) -> None:
    with_claim_lost(folder)
    for path in folder.iterdir():
        if path.name.startswith(("start.", "std", "stop", "final", "run")):
            path.unlink()


OLDER: Mapping[str, Callable[[Path], None]] = {
    "an older intent": without_native_id,
    "an older intent, no claim": with_claim_lost,
    "an older intent, an empty claim": with_claim_empty,
    "the first intent alone": with_all_but_markers_lost,
}


@attrs.frozen
class Work:
    """The jobs of one executor, as a killed client left them."""

    name: str
    root: Path
    config: ExecutorConfig
    fake: FakeScheduler | None

    @property
    def spool(self) -> Spool:
        return Spool(self.root)

    def folder(self, job_id: str) -> Path:
        return Path(self.spool.folder(job_id))

    def add(self, job_id: str, native_id: str, *left: str, is_moved: bool = False, attempt: int = 1) -> None:
        """Make the files of a job that was submitted, began, and left these markers."""
        spool, folder = self.spool, self.folder(job_id)
        spool.open()
        spec = jpsi.JobSpec("/bin/sh", ["-c", "exit 9"], directory=self.root)
        intent = {
            "id": job_id,
            "attempt": attempt,
            "executor": self.name,
            "version": "1",
            "time": TIME.isoformat(),
            "directory": str(self.root),
            "boot": boot_id(),
            "spec": serialization.encode(spec),
        }
        lock = spool.prepare(job_id, attempt, intent, "#!/bin/sh\nexit 9\n")
        spool.started(lock, native_id)
        os.close(lock)
        (folder / f"claim.{attempt}").write_text(f"{native_id.partition('.')[0]}\n")
        if self.fake is not None:
            (folder / f"start.{attempt}.0").touch()
        (folder / "stdout").write_text("its output\n")
        for name in left:
            if name == "stop":
                spool.stop(job_id, attempt, Stop(CANCEL, TIME))
            elif name == "final":
                spool.finish(job_id, attempt, encode_status(FINAL))
            elif self.fake is not None or name != "active":
                path = (folder if is_moved else Path(spool.events)) / f"{job_id}.{attempt}.{name}"
                path.touch()

    def executor(self) -> JobExecutor:
        return JobExecutor(self.name, config=self.config)

    @property
    def submitted(self) -> int:
        """Return the number of jobs that were submitted since."""
        return 0 if self.fake is None else len(self.fake.jobs)

    @property
    def intents(self) -> set[Path]:
        """Return the intents of attempts; whoever submits a job writes one first."""
        return set(self.root.glob("jobs/*/intent.*"))


@pytest.fixture(params=["toy", "local"])
def work(
    request: pytest.FixtureRequest, plugin_directory: PluginDirectory, state_home: Path
) -> Iterator[Work]:
    home = state_home / "jpsi" / "work"
    if request.param == "local":
        yield Work("local", home / "local" / os.uname().nodename, ExecutorConfig(), None)
        return
    install_toy(plugin_directory)
    with FakeScheduler(slots=0) as scheduler, on_path("toy", scheduler):
        yield Work("toy", home / "toy", QUICK, scheduler)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings, and assert that none has a traceback."""
    assert [it.getMessage() for it in caplog.records if it.exc_info] == []
    return [it.getMessage() for it in caplog.records if it.levelno >= logging.WARNING]


def recover_without_rerun(work: Work, caplog: pytest.LogCaptureFixture, job_id: str = "a1") -> list[jpsi.Job]:
    """Recover and submit the jobs as programs do, and assert that no attempt of a damaged job is made."""
    intents = work.intents
    with work.executor() as executor:
        jobs = list(executor.recover())
        for job in jobs:
            if job.status.state is JobState.NEW:
                executor.submit(job)
        assert work.submitted == 0
        assert work.intents <= intents
        for job in jobs:
            assert job.wait(PATIENCE) is not None, job
        # other jobs are not affected
        assert [job.status.exit_code for job in jobs if job.id == "other"] == [5]
    assert len([text for text in warnings(caplog) if job_id in text]) <= 1
    return jobs


NATIVE = {"toy": ("17", "18"), "local": (f"999999.1.{boot_id()}", f"999998.1.{boot_id()}")}


@pytest.mark.parametrize("is_moved", [False, True], ids=["in events", "in the folder"])
@pytest.mark.parametrize(("left", "name", "damage"), CELLS.values(), ids=CELLS)
def test_a_damaged_file_never_repeats_a_run(
    work: Work,
    caplog: pytest.LogCaptureFixture,
    left: list[str],
    name: str,
    damage: Callable[[Path], None],
    is_moved: bool,
) -> None:
    work.add("a1", NATIVE[work.name][0], *left, is_moved=is_moved)
    work.add("other", NATIVE[work.name][1], "active", "exit.run.5")
    path = work.folder("a1") / name
    if not path.exists():
        pytest.skip("this job has no such file")
    damage(path)

    (before,) = [job for job in job_store.jobs() if job.id == "a1"]
    damaged = [it.name for it in job_store.damaged()]
    jobs = recover_without_rerun(work, caplog)

    (after,) = [job for job in job_store.jobs() if job.id == "a1"]
    assert isinstance(after.spec, jpsi.JobSpec)
    assert after.streams.stdout
    assert after.history[-1] == after.status
    assert JobState.NEW not in {before.status.state, after.status.state}
    is_recovered = "a1" in [job.id for job in jobs]
    if name == "intent.1.json" and damage is not removed:
        assert damaged == ["job a1"]
        # a spec is decoded only if a caller reads it
        assert damage is overlong or (before.damage and before.remark is not None)
        assert not is_recovered
    if "exit.run.3" in left:
        assert after.status.exit_code == 3
        assert [job.status.exit_code for job in jobs if job.id == "a1"] == [3] * is_recovered
    if name != "intent.1.json":
        (recalled,) = work.executor().recall(["a1"])
        assert recalled.wait(PATIENCE) is not None
    assert warnings(caplog) is not None


@pytest.mark.parametrize("is_moved", [False, True], ids=["in events", "in the folder"])
@pytest.mark.parametrize("damage", OLDER.values(), ids=OLDER)
@pytest.mark.parametrize("left", STAGES.values(), ids=STAGES)
def test_a_restored_backup_never_repeats_a_run(
    work: Work,
    caplog: pytest.LogCaptureFixture,
    left: list[str],
    damage: Callable[[Path], None],
    is_moved: bool,
) -> None:
    has_exit = any(name.startswith("exit.") for name in left)
    if work.name == "local" and not has_exit and damage is with_all_but_markers_lost:
        pytest.skip("nothing is left of it")
    work.add("a1", NATIVE[work.name][0], *left, is_moved=is_moved)
    work.add("other", NATIVE[work.name][1], "active", "exit.run.5")
    damage(work.folder("a1"))

    jobs = recover_without_rerun(work, caplog)

    (after,) = [job for job in job_store.jobs() if job.id == "a1"]
    assert after.status.state is not JobState.NEW
    if "exit.run.3" in left:
        assert after.status.exit_code == 3
        assert [job.status.exit_code for job in jobs if job.id == "a1"] in ([3], [])
        # an end that was not published is published now
        assert is_moved or [job.id for job in jobs if job.id == "a1"]


@pytest.mark.parametrize("damage", [garbled, zeroed, mistyped, made_a_directory], ids=lambda it: it.__name__)
def test_a_claim_that_cannot_be_read_is_a_claim(
    work: Work, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None]
) -> None:
    """No other file records a run; the client queries the batch system for the job by its tag."""
    work.add("a1", NATIVE[work.name][0])
    work.add("other", NATIVE[work.name][1], "active", "exit.run.5")
    without_native_id(work.folder("a1"))
    for path in work.folder("a1").iterdir():
        if path.name.startswith(("start.", "std")):
            path.unlink()
    damage(work.folder("a1") / "claim.1")

    jobs = {job.id: job for job in recover_without_rerun(work, caplog)}

    assert jobs["a1"].status.reason is jpsi.Reason.LOST
    if work.name == "toy":
        assert jobs["a1"].native_id == "unnamed.a1"


@pytest.mark.parametrize("is_moved", [False, True], ids=["in events", "in the folder"])
@pytest.mark.parametrize("left", [["exit.run.3"], ["active"], ["claim"], ["start"]], ids=str)
def test_an_attempt_without_intent_is_found_by_its_markers(
    work: Work, caplog: pytest.LogCaptureFixture, left: list[str], is_moved: bool
) -> None:
    """Attempt 1 never ran, attempt 2 did, and a backup restores the folder from before attempt 2."""
    if work.name == "local" and left in (["active"], ["start"]):
        pytest.skip("no process leaves that")
    work.add("a1", NATIVE[work.name][0], attempt=1)
    folder = work.folder("a1")
    without_native_id(folder)
    for path in [it for it in folder.iterdir() if it.name.startswith(("start", "std"))]:
        path.unlink()
    (folder / "claim.1").write_text("revoked")
    work.add("other", NATIVE[work.name][1], "active", "exit.run.5")
    if left == ["claim"]:
        (folder / "claim.2").write_text(f"{NATIVE[work.name][0].partition('.')[0]}\n")
    elif left == ["start"]:
        (folder / "start.2.0").touch()
    else:
        (folder if is_moved else Path(work.spool.events)).joinpath(f"a1.2.{left[0]}").touch()

    jobs = {job.id: job for job in recover_without_rerun(work, caplog)}

    (after,) = [job for job in job_store.jobs() if job.id == "a1"]
    assert (after.attempt, after.status.state is JobState.NEW) == (2, False)
    if left == ["exit.run.3"]:
        assert after.status.exit_code == 3
        assert is_moved or jobs["a1"].status.exit_code == 3


def test_such_an_attempt_is_also_found_by_its_id(work: Work) -> None:
    work.add("a1", NATIVE[work.name][0], attempt=1)
    without_native_id(work.folder("a1"))
    for name in ("start.1.0", "stdout"):
        (work.folder("a1") / name).unlink(missing_ok=True)
    (work.folder("a1") / "claim.1").write_text("revoked")
    Path(work.spool.events, "a1.2.exit.run.3").touch()

    with work.executor() as executor:
        (job,) = executor.recall(["a1"])

        assert job.status.state is not JobState.NEW
        status = job.wait(PATIENCE)
        assert status is not None
        assert status.exit_code == 3


@pytest.mark.parametrize("content", ["", "{", '{"id": "a1"'], ids=repr)
def test_a_submission_that_was_cut_short_is_no_job_and_no_damage(
    work: Work, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    work.add("other", NATIVE[work.name][1], "active", "exit.run.5")
    work.folder("a1").mkdir()
    (work.folder("a1") / "intent.1.json").write_text(content)

    recover_without_rerun(work, caplog)

    assert warnings(caplog) == []
    assert [job.id for job in job_store.jobs()] == ["other"]


@pytest.mark.parametrize("work", ["toy"], indirect=True)
def test_an_attempt_whose_claim_was_lost_is_not_repeated_if_it_has_left_a_marker(work: Work) -> None:
    """No process has moved the marker into the job's folder yet."""
    work.add("a1", "17")
    without_native_id(work.folder("a1"))
    (work.folder("a1") / "claim.1").unlink()
    (work.folder("a1") / "start.1.0").unlink()
    (work.folder("a1") / "stdout").unlink()
    with work.executor() as executor:
        (job,) = executor.recover()
        assert job.status.state is JobState.NEW
        (work.folder("a1") / "claim.1").unlink()
        Path(work.spool.events, "a1.1.active").touch()

        with pytest.raises(jpsi.SubmitException, match="runs already"):
            executor.submit(job)


@pytest.mark.parametrize("damage", [it for it in DAMAGES if it is not removed], ids=lambda it: it.__name__)
@pytest.mark.parametrize("name", ["intent.json", "claim", "link"])
@pytest.mark.parametrize("work", ["toy"], indirect=True)
def test_a_damaged_array_never_repeats_a_run_of_an_element(
    work: Work, caplog: pytest.LogCaptureFixture, name: str, damage: Callable[[Path], None]
) -> None:
    array = work.folder("x").parent.parent / "arrays" / "x"
    elements(work, array, native_id="17")
    damage(work.folder("e1") / "array.1" if name == "link" else array / name)

    job_store.jobs()
    recover_without_rerun(work, caplog, "arrays/x")

    found = {job.id: job for job in job_store.jobs()}
    assert found["e1"].status.exit_code == 3
    if name == "intent.json":
        assert found["e1"].damage
        assert len([text for text in warnings(caplog) if "array x" in text]) == 1
        (damaged,) = [it for it in job_store.damaged() if it.job is None]
        assert (damaged.name, damaged.folder) == ("array x", array)


@pytest.mark.parametrize("work", ["toy"], indirect=True)
def test_an_array_is_checked_once_and_again_when_its_file_changes(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check for each element would take hours for an array of 50,000."""
    array = work.folder("x").parent.parent / "arrays" / "x"
    elements(work, array, native_id="17")
    work.folder("e2").mkdir()
    (work.folder("e2") / "array.1").write_text("x 2\n")
    checked, check = list[int](), damage._check_array

    def count(lines: list[str]) -> None:
        checked.append(len(lines))
        check(lines)

    monkeypatch.setattr(damage, "_check_array", count)
    # that of an array may be larger
    monkeypatch.setattr(damage, "_MAX_BYTES", (array / "intent.json").stat().st_size - 1)

    assert job_store.damaged() == []
    assert len(checked) == 1
    # another one that cannot be read
    damage.array_problem(str(work.spool.root), "gone")
    assert job_store.damaged() == []
    assert len(checked) == 1
    replaced(array / "intent.json", b"{}")
    assert {it.name for it in job_store.damaged()} == {"array x", "job e1", "job e2"}
    assert len(checked) == 2
    (array / "intent.json").unlink()
    (array / "intent.json").mkdir()
    assert {it.name for it in job_store.damaged()} == {"array x", "job e1", "job e2"}


def replaced(path: Path, content: bytes) -> None:
    """Write another file in place of one: its time alone may be the same, within one tick of the clock."""
    path.rename(f"{path}.old")
    path.write_bytes(content)


@pytest.mark.parametrize("work", ["toy"], indirect=True)
def test_an_array_that_could_not_be_read_for_a_while_is_not_taken_for_damaged(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = work.folder("x").parent.parent / "arrays" / "x"
    elements(work, array, native_id="17")
    with monkeypatch.context() as patch:
        patch.setattr(damage, "open", refuse, raising=False)
        problem = damage.array_problem(str(work.spool.root), "x")

    assert problem == "cannot be read: Input/output error"
    assert damage.array_problem(str(work.spool.root), "x") is None


def refuse(*_: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


NO_ELEMENT, OTHERS = "does not name an array and an element", "names the element of another job"


@pytest.mark.parametrize(
    ("link", "problem"),
    [("x -1", NO_ELEMENT), ("x 0", NO_ELEMENT), ("x 3", NO_ELEMENT), ("x 2", OTHERS), ("y 1", OTHERS)],
)
@pytest.mark.parametrize("work", ["toy"], indirect=True)
def test_a_link_to_no_element_or_to_that_of_another_job_hides_no_job(
    work: Work, caplog: pytest.LogCaptureFixture, link: str, problem: str
) -> None:
    elements(work, work.folder("x").parent.parent / "arrays" / "x", native_id="17")
    common = {"executor": "toy", "time": TIME.isoformat(), "spec": {"executable": "a"}}
    line = {"id": "a9", "attempt": 1, "directory": "/", "spec": {}}
    os.close(work.spool.arrays.prepare("y", common, [line], "", [""]))
    work.spool.arrays.revoke("y")
    work.spool.arrays.give_up("y", "")
    (work.folder("e1") / "array.1").write_text(f"{link}\n")

    jobs = {job.id: job for job in job_store.jobs()}

    assert jobs.keys() - {"a9"} == {"e1", "e2", "other"}
    assert jobs["e1"].damage == (f"array.1 {problem}",)
    assert "e1" in [job.id for job in recover_without_rerun(work, caplog)]
    (ended,) = [job for job in job_store.jobs() if job.id == "e1"]
    assert ended.status.exit_code == 3
    recalled = {job.id: job.native_id for job in work.executor().recall(["e1", "e2"])}
    assert recalled == {"e1": "17.1", "e2": "17.2"}


@pytest.mark.parametrize(
    "claim", [None, "", "revoked"], ids=["no claim", "an empty claim", "a claim that was revoked"]
)
@pytest.mark.parametrize("work", ["toy"], indirect=True)
def test_an_array_without_native_id_was_submitted_if_one_of_its_elements_has_run(
    work: Work, caplog: pytest.LogCaptureFixture, claim: str | None
) -> None:
    array = work.folder("x").parent.parent / "arrays" / "x"
    elements(work, array, native_id=None)
    (array / "claim").unlink()
    if claim is not None:
        (array / "claim").write_text(claim)

    jobs = {job.id: job for job in recover_without_rerun(work, caplog)}

    assert jobs["e1"].status.exit_code == 3
    assert jobs["e2"].status.reason is jpsi.Reason.LOST


@pytest.mark.parametrize("damage", [emptied, made_a_directory, closed], ids=lambda it: it.__name__)
@pytest.mark.parametrize("work", ["toy"], indirect=True)
def test_a_damaged_array_does_not_prevent_the_recall_of_others(
    work: Work, damage: Callable[[Path], None]
) -> None:
    arrays = work.folder("x").parent.parent / "arrays"
    elements(work, arrays / "x", native_id="17")
    (arrays / "a").mkdir()
    (arrays / "a" / "intent.json").write_text("{}")
    damage(arrays / "a" / "intent.json")

    recalled = work.executor().recall(["e1", "e2"])

    assert sorted(job.id for job in recalled) == ["e1", "e2"]


def elements(work: Work, array: Path, native_id: str | None) -> None:
    """Make an array of two, of which the first has ended without a client that observed it."""
    work.add("other", NATIVE["toy"][1], "active", "exit.run.5")
    spec = serialization.encode(jpsi.JobSpec("/bin/sh", ["-c", "exit 9"], directory=work.root))
    common = {"id": "x", "executor": "toy", "version": "1", "time": TIME.isoformat(), "spec": spec}
    lines = [{"id": it, "attempt": 1, "directory": str(work.root), "spec": {}} for it in ("e1", "e2")]
    lock = work.spool.arrays.prepare("x", common, lines, "#!/bin/sh\n", [""])
    if native_id is not None:
        os.write(lock, f"\n{native_id}".encode())
    os.close(lock)
    (array / "claim").write_text("17\n")
    work.folder("e1").mkdir()
    (work.folder("e1") / "array.1").write_text("x 1\n")
    (work.folder("e1") / "start.1.0").touch()
    for marker in ("active", "exit.run.3"):
        Path(work.spool.events, f"e1.1.{marker}").touch()


def test_a_job_with_only_a_later_attempt_is_listed(work: Work) -> None:
    work.add("a1", NATIVE[work.name][0], "active", "exit.run.0", attempt=3)

    (job,) = job_store.jobs()

    assert (job.attempt, job.status.exit_code) == (3, 0)


def test_damaged_jobs_are_listed_with_the_damage(work: Work) -> None:
    work.add("a1", NATIVE[work.name][0], "active", "exit.run.3")
    work.add("other", NATIVE[work.name][1], "active", "exit.run.5")
    emptied(work.folder("a1") / "intent.1.json")
    path = work.folder("other") / "intent.1.json"
    line, _, native_id = path.read_text().partition("\n")
    strange = {**json.loads(line), "spec": {"executable": 5}}
    path.write_text(f"{json.dumps(strange)}\n{native_id}")

    found = {it.name: it for it in job_store.damaged()}

    assert found["job a1"].problem == "intent.1.json is empty"
    assert found["job a1"].folder == work.folder("a1")
    assert found["job a1"].job is not None
    # jobs() checks less, as there may be thousands
    assert found["job other"].problem == "intent.1.json has content that jpsi does not write"


def test_a_damaged_job_is_not_removed_for_its_missing_files(work: Work) -> None:
    work.add("a1", NATIVE[work.name][0], "active")
    emptied(work.folder("a1") / "intent.1.json")
    old = (TIME - timedelta(days=90)).timestamp()
    os.utime(work.folder("a1"), (old, old))

    with work.executor() as executor:
        executor.recover()

    assert work.folder("a1").exists()

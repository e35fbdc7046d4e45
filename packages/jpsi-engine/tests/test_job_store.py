"""The job store reads every job of the user from disk, and runs no command of a batch system."""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest

import jpsi
from jpsi import (
    Dependency,
    Evidence,
    Job,
    JobExecutor,
    JobSpec,
    JobState,
    JobStatus,
    Reason,
    SubmitException,
)
from jpsi.plugin import ExecutorConfig
from jpsi_engine import job_store
from jpsi_engine.host.procfs import parse_native_id
from jpsi_engine.spool import Spool
from jpsi_engine.spool.requeue_codes import EVERY_FAILURE, read_requeue_codes, store_requeue_codes
from jpsi_testing import PluginDirectory
from jpsi_testing.fake import FakeScheduler, FakeState, on_path
from jpsi_testing.threads import in_this_thread
from toys import QUICK, install_toy

PATIENCE = 60.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def local() -> Iterator[JobExecutor]:
    with JobExecutor("local") as executor:
        yield executor


@pytest.fixture
def work(state_home: Path) -> Path:
    return state_home / "jpsi" / "work"


@pytest.fixture
def fake(plugin_directory: PluginDirectory) -> Iterator[FakeScheduler]:
    install_toy(plugin_directory)
    with FakeScheduler(kill_delay=0.5, slots=8) as scheduler, on_path("toy", scheduler):
        yield scheduler


@pytest.fixture
def toys(fake: FakeScheduler) -> Iterator[JobExecutor]:
    with JobExecutor("toy", config=QUICK) as executor:
        yield executor


def only_job() -> job_store.StoredJob:
    (job,) = job_store.jobs()
    return job


def leave_running(fifo: Path) -> None:
    """Submit a job that waits to read from a fifo, from a process that then ends."""
    os.mkfifo(fifo)
    program = (
        "import jpsi, sys\n"
        "spec = jpsi.JobSpec('/bin/sh', ['-c', 'echo >$1; read x <$1', 'sh', sys.argv[1]])\n"
        "jpsi.JobExecutor('local').submit(jpsi.Job(spec))\n"
    )
    subprocess.run([sys.executable, "-c", program, fifo], check=True)
    fifo.read_text()


def test_without_jobs_there_are_none() -> None:
    assert job_store.jobs() == []


ENDS = {
    "success": ["true"],
    "failure": ["sh", "-c", "exit 7"],
    "signal": ["sh", "-c", "kill -9 $$"],
    "no executable": ["nosuchthing"],
}


def _without_time(status: JobStatus) -> JobStatus:
    metadata = {name: it for name, it in status.metadata.items() if name != "time.source"}
    return attrs.evolve(status, time=NOW, metadata=metadata)


@pytest.mark.parametrize("command", ENDS.values(), ids=ENDS)
def test_the_store_has_the_end_that_the_executor_published(local: JobExecutor, command: list[str]) -> None:
    executable, *arguments = command
    job = Job(JobSpec(executable, arguments, name="mine"))
    local.submit(job)
    status = job.wait(PATIENCE)

    found = only_job()

    assert (found.id, found.native_id, found.name) == (job.id, job.native_id, "mine")
    # each process publishes its own time of observation
    assert status is not None
    assert _without_time(found.status) == _without_time(status)
    assert found.remark is None
    assert [it.state for it in found.history][:3] == [JobState.NEW, JobState.QUEUED, JobState.ACTIVE]
    assert found.streams == job.streams
    assert found.spec == job.spec


def test_a_job_whose_client_is_gone_has_the_status_of_its_markers(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    leave_running(fifo)

    running = only_job()
    fifo.write_text("go on\n")
    (job,) = running.origin.open().recall([running.id])
    job.wait(PATIENCE)

    assert (running.status.state, running.status.evidence) == (JobState.ACTIVE, Evidence.PROCESS)
    assert only_job().status.state is JobState.COMPLETED


def test_a_killed_process_is_final_only_after_a_client_observed_it(
    local: JobExecutor, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    leave_running(fifo)
    process = parse_native_id(only_job().native_id or "")
    assert process is not None
    os.killpg(process.pid, signal.SIGKILL)
    while process.is_alive():
        pass

    found = only_job()
    (job,) = local.recall([found.id])
    job.wait(PATIENCE)

    assert found.status.state is JobState.ACTIVE
    assert found.remark == "its process has ended: jpsi ls --refresh finds out how"
    assert only_job().status.reason is Reason.LOST


@pytest.fixture
def waiting(fake: FakeScheduler, toys: JobExecutor) -> list[Job]:
    """Return three queued jobs of one array, for which there are no slots."""
    fake.slots = 0
    jobs = [Job(JobSpec("/bin/sh", ["-c", f"exit {code}"])) for code in range(3)]
    toys.submit_many(jobs)
    return jobs


def test_queued_elements_are_listed_without_a_query(waiting: list[Job]) -> None:
    program = (
        "from jpsi_engine import job_store\n"
        "for job in job_store.jobs(): print(job.id, job.native_id, job.status.state)"
    )

    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "PATH": ""},
    )

    assert sorted(result.stdout.splitlines()) == sorted(f"{job.id} {job.native_id} QUEUED" for job in waiting)
    assert not any(job.folder.exists() for job in job_store.jobs())


def test_rereading_opens_no_files_of_other_jobs(
    local: JobExecutor, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [Job(JobSpec("/bin/true")) for _ in range(3)]
    for job in jobs:
        local.submit(job)
    before = next(it for it in job_store.jobs() if it.id == jobs[1].id)
    assert [job.wait(PATIENCE) for job in jobs]
    listed: list[str] = []
    list_directory = os.listdir
    noted = in_this_thread(lambda path: listed.append(path) or list_directory(path), os.listdir)
    monkeypatch.setattr(os, "listdir", noted)

    (found,) = job_store.reread([before])

    assert (found.id, found.status.state) == (before.id, JobState.COMPLETED)
    assert listed == [str(before.folder)]


def test_rereading_leaves_out_what_is_gone(local: JobExecutor) -> None:
    job = Job(JobSpec("/bin/true"))
    local.submit(job)
    job.wait(PATIENCE)
    found = job_store.jobs()
    shutil.rmtree(found[0].folder)

    assert job_store.reread(found) == []


def test_elements_are_reread_before_and_after_they_run(waiting: list[Job], fake: FakeScheduler) -> None:
    before = next(it for it in job_store.jobs() if it.id == waiting[1].id)

    (queued,) = job_store.reread([before])
    fake.slots = 8
    assert all(job.wait(PATIENCE) for job in waiting)
    (ended,) = job_store.reread([queued])

    assert (queued.id, queued.native_id, queued.status.state) == (
        before.id,
        waiting[1].native_id,
        JobState.QUEUED,
    )
    assert (ended.array, ended.status.exit_code) == (before.array, 1)


def test_one_job_is_recalled_and_no_other(waiting: list[Job], fake: FakeScheduler) -> None:
    other = JobExecutor("toy")
    (job,) = other.recall([waiting[1].id, "nonsense"])
    job.cancel()

    assert job.spec == waiting[1].spec
    assert job.native_id == waiting[1].native_id
    assert other.list() == [job.native_id]
    status = job.wait(PATIENCE)
    assert status is not None
    assert status.state is JobState.CANCELED
    fake.slots = 8
    assert [it.wait(PATIENCE).exit_code for it in (waiting[0], waiting[2])] == [0, 2]  # type: ignore[union-attr]
    assert [job.status.state.value for job in job_store.jobs()].count("CANCELED") == 1


def test_two_processes_may_follow_one_job(waiting: list[Job], fake: FakeScheduler) -> None:
    (job,) = JobExecutor("toy").recall([waiting[2].id])
    fake.slots = 8

    status = job.wait(PATIENCE)

    assert status is not None
    assert status.exit_code == 2
    again = waiting[2].wait(PATIENCE)
    assert again is not None
    assert again.exit_code == 2


@pytest.mark.parametrize("text", ["ok:aaaa notok:bbbb[3-5,8]", "well:aaaa"])
def test_what_had_ended_before_a_job_was_submitted_is_known(local: JobExecutor, text: str) -> None:
    spec = JobSpec("/bin/true")
    spec.attributes.set_custom_attribute(job_store.MET, text)
    local.submit(Job(spec))
    (found,) = job_store.jobs()

    if text.startswith("well"):
        with pytest.raises(SubmitException, match=r"the attribute jpsi\.after_ended cannot be read"):
            found.read_dependencies()
    else:
        assert found.read_dependencies() == (Dependency("aaaa"), Dependency("bbbb[3-5,8]", "notok"))


def test_a_job_that_has_ended_is_recalled_as_that(local: JobExecutor) -> None:
    job = Job(JobSpec("/bin/sh", ["-c", "exit 3"]))
    local.submit(job)
    job.wait(PATIENCE)

    (recalled,) = JobExecutor("local").recall([job.id])

    status = recalled.wait(PATIENCE)
    assert status is not None
    assert (status.state, status.exit_code) == (JobState.FAILED, 3)


def test_a_failure_is_certain_once_the_site_is_known(
    toys: JobExecutor, fake: FakeScheduler, work: Path
) -> None:
    program = (
        "import jpsi, os, sys\n"
        "executor = jpsi.JobExecutor('toy')\n"
        "waits = 'until [ -e \"$0\" ]; do sleep 0.01; done; exit 7'\n"
        "executor.submit(jpsi.Job(jpsi.JobSpec('/bin/sh', ['-c', waits, sys.argv[1]])))\n"
        "os._exit(0)\n"
    )
    release_file = work / "release"
    subprocess.run([sys.executable, "-c", program, release_file], check=True)
    # only now, so that no process observes its end
    release_file.touch()
    assert fake.wait_for(lambda: fake.jobs and fake.jobs[0].state is FakeState.FAILED)
    (work / "toy" / "requeue.json").unlink(missing_ok=True)

    unsure = only_job()
    store_requeue_codes(str(work / "toy"), frozenset())
    sure = only_job()

    assert (unsure.status.state, sure.status.state) == (JobState.ACTIVE, JobState.FAILED)
    assert "it ended with exit code 7" in (unsure.remark or "")
    assert (sure.status.exit_code, sure.remark) == (7, None)


def test_the_codes_of_a_site_are_recorded_once_they_are_known(tmp_path: Path) -> None:
    store_requeue_codes(str(tmp_path), EVERY_FAILURE)
    assert (list(tmp_path.iterdir()), read_requeue_codes(str(tmp_path))) == ([], EVERY_FAILURE)

    store_requeue_codes(str(tmp_path), {99, 5})
    assert set(read_requeue_codes(str(tmp_path))) == {5, 99}

    (tmp_path / "requeue.json").write_text("nonsense")
    assert read_requeue_codes(str(tmp_path)) == EVERY_FAILURE


def test_the_number_of_refused_requeues_is_listed(local: JobExecutor) -> None:
    job = Job(JobSpec("/bin/true"))
    local.submit(job)
    job.wait(PATIENCE)
    assert only_job().reruns == 0

    (only_job().folder / "rerun.1").write_text("17\n17\n")

    assert only_job().reruns == 2


def test_malformed_files_cost_no_other_job(local: JobExecutor, work: Path) -> None:
    job = Job(JobSpec("/bin/true"))
    local.submit(job)
    job.wait(PATIENCE)
    jobs = only_job().folder.parent
    for name, intent in {"empty": None, "torn": '{"id"', "strange": "[]", "bare": '{"id": "bare"}'}.items():
        (jobs / name).mkdir()
        if intent is not None:
            (jobs / name / "intent.1.json").write_text(intent)
    (jobs / "file").touch()
    (work / "not-a-spool").mkdir()

    damage = {it.id: it.damage for it in job_store.jobs()}

    # another process may be writing the others
    wrong = ("intent.1.json has content that jpsi does not write",)
    assert damage == {job.id: (), "strange": wrong, "bare": wrong}


def test_an_incomplete_attempt_has_the_spec_of_the_last_one(local: JobExecutor) -> None:
    job = Job(JobSpec("/bin/true", name="mine"))
    local.submit(job)
    job.wait(PATIENCE)
    (only_job().folder / "intent.2.json").write_text('{"id"')

    found = only_job()

    assert (found.name, found.attempt, found.native_id, found.status.state) == ("mine", 2, None, JobState.NEW)
    assert found.remark == (
        "it is not known yet whether it was submitted: the submission is in progress, or was interrupted"
    )


def test_attempts_that_could_never_run_are_not_counted(local: JobExecutor, tmp_path: Path) -> None:
    job = Job(JobSpec("/bin/sh", ["-c", "echo >>tries; test $(wc -l <tries) = 2 || exit 75"]))
    assert job.spec is not None
    job.spec.directory, job.spec.attributes.retry = tmp_path, {75: 2, "delay": 0}
    local.submit(job)
    job.wait(PATIENCE)
    stored = only_job()
    # as if another client had revoked an attempt before the one that ran
    for file in stored.folder.iterdir():
        file.rename(file.with_name(re.sub(r"\.2(?=\.|$)", ".3", file.name)))
    Spool(stored.origin.path).revoke(job.id, 2)

    found = only_job()

    assert (found.attempt, found.counted_attempt, len(found.earlier_ends)) == (3, 2, 1)
    assert (found.status.state, found.status.metadata["attempt"]) == (JobState.COMPLETED, 2)


CONFIG = """
executors:
  local: {{config: {{work_directory: {one}}}}}
targets:
  big-one: {{executor: local, config: {{work_directory: {two}}}}}
"""


def test_jobs_of_every_configured_directory_are_listed(tmp_path: Path) -> None:
    (tmp_path / "config" / "jpsi").mkdir(parents=True)
    text = CONFIG.format(one=tmp_path / "one", two=tmp_path / "two")
    (tmp_path / "config" / "jpsi" / "config.yaml").write_text(text)
    for name in ("local", "Big-One"):
        executor = JobExecutor(name)
        job = Job(JobSpec("/bin/true", name=name))
        executor.submit(job)
        job.wait(PATIENCE)

    found = {it.name: it for it in job_store.jobs()}

    assert {name: it.origin.name for name, it in found.items()} == {"local": "local", "Big-One": "big-one"}
    for it in found.values():
        (recalled,) = it.origin.open().recall([it.id])
        assert recalled.wait(PATIENCE)


def test_jobs_of_another_host_are_listed_and_left_alone(local: JobExecutor, work: Path) -> None:
    job = Job(JobSpec("/bin/true"))
    local.submit(job)
    job.wait(PATIENCE)
    (machine,) = (work / "local").iterdir()
    machine.rename(work / "local" / "otherhost")

    found = only_job()

    assert (found.status.state, found.origin.machine) == (JobState.COMPLETED, "otherhost")
    with pytest.raises(jpsi.SubmitException, match="processes of otherhost"):
        found.origin.open()


def test_a_preview_shows_the_submission_and_submits_nothing(
    toys: JobExecutor, fake: FakeScheduler, work: Path
) -> None:
    job = Job(JobSpec("/bin/echo", ["it's"], name="mine"))

    preview = toys.preview(job)

    assert (job_store.jobs(), fake.jobs, job.status.state) == ([], [], JobState.NEW)
    assert preview.command[0] == "tsubmit"
    toys.submit(job)
    folder = only_job().folder
    assert preview.path == folder / "run.1"
    assert preview.run == preview.path.read_text()
    assert preview.script is not None
    assert str(preview.path) in preview.script


def test_a_container_gets_the_index_of_an_element(toys: JobExecutor) -> None:
    container = jpsi.Container("image", "charliecloud")
    spec = JobSpec("a", container=container, inherit_environment=False, environment={"JPSI_ARRAY_INDEX": "7"})

    preview = toys.preview(Job(spec))

    assert "--set-env=TOY_INDEX=" in preview.run
    assert "export TOY_INDEX=7\n" in preview.run


def test_a_preview_of_a_process_is_its_script(local: JobExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jpsi_engine.local.starter._JOBS_BEFORE", math.inf)
    job = Job(JobSpec("/bin/true"))

    preview = local.preview(job)
    local.submit(job)

    assert preview.script is None
    assert list(preview.command) == ["/bin/sh", str(preview.path)]
    assert preview.run == preview.path.read_text()


def test_an_invalid_job_has_no_preview(local: JobExecutor) -> None:
    with pytest.raises(jpsi.InvalidJobException, match="directory '/gone' does not exist"):
        local.preview(Job(JobSpec("/bin/true", directory=Path("/gone"))))


def test_output_is_readable_while_the_job_writes_it(local: JobExecutor, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    text = "echo one; echo >$1; read x <$1; echo two; echo bad >&2"
    job = Job(JobSpec("/bin/sh", ["-c", text, "sh", str(fifo)]))
    assert job.output() is None
    local.submit(job)
    fifo.read_text()

    live, written = job.output(), only_job().output()
    assert live is not None
    first = live.read()
    assert first is not None
    assert (first.data, first.end) == (b"one\n", 4)
    assert written.read() == first
    fifo.write_text("\n")
    job.wait(PATIENCE)

    for stdout in (live, written):
        assert stdout.is_local
        assert stdout.read(first.end) == jpsi.OutputPart(b"two\n", 4, 8)
        assert stdout.read(-3, 2) == jpsi.OutputPart(b"wo", 5, 8)
    stderr = job.output("stderr")
    assert stderr is not None
    assert stderr.read() == only_job().output("stderr").read() == jpsi.OutputPart(b"bad\n", 0, 4)


# A transport to this host as if it had other files.
_THERE = """
from jpsi.plugin import hookimpl

class There:
    is_local = False

    def __init__(self, here):
        self.here = here

    def run(self, command, keep=None, ready=None):
        return self.here.run(command, keep, ready)

    def exchange(self, command, data=b""):
        return self.here.exchange(command, data)

    def close(self):
        pass

@hookimpl
def open_transport(here):
    return There(here)
"""


@pytest.mark.parametrize("selector", ["toy", "big"], ids=["a url", "a target"])
def test_output_on_a_remote_host_is_read_by_the_transport(
    fake: FakeScheduler,
    plugin_directory: PluginDirectory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    selector: str,
) -> None:
    plugin_directory.add(
        "jpsi-there",
        "0.1",
        entry_points={"jpsi.transports": {"there": "jpsi_there"}},
        files={"jpsi_there.py": _THERE},
    )
    configuration = tmp_path / "jpsi.yaml"
    configuration.write_text("targets: {big: {executor: toy, url: 'there://big'}}\n")
    monkeypatch.setenv("JPSI_CONFIG", str(configuration))
    executor = JobExecutor(selector, url="there://big" if selector == "toy" else None)
    job = Job(JobSpec("echo", ["hello"]))
    executor.submit(job)
    job.wait(PATIENCE)

    live, written = job.output(), only_job().output()

    assert live is not None
    for output in (live, written):
        assert not output.is_local
        assert output.read() == jpsi.OutputPart(b"hello\n", 0, 6)
    assert only_job().output(files=executor.files).read(1, 1) == jpsi.OutputPart(b"e", 1, 6)
    executor.files.put(str(configuration), str(tmp_path / "there"))
    assert (tmp_path / "there").read_bytes() == configuration.read_bytes()


def test_output_is_found_without_the_plugin_of_its_executor(
    fake: FakeScheduler, toys: JobExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(JobSpec("echo", ["hello"]))
    toys.submit(job)
    job.wait(PATIENCE)

    monkeypatch.delenv("JPSI_PLUGIN_PATH")

    assert only_job().output().read() == jpsi.OutputPart(b"hello\n", 0, 6)


def test_jobs_are_found_in_a_work_directory_that_only_a_program_named(tmp_path: Path) -> None:
    with JobExecutor("local", config=ExecutorConfig(work_directory=tmp_path / "own")) as executor:
        job = Job(JobSpec("true"))
        executor.submit(job)
        job.wait(PATIENCE)

    assert job_store.jobs() == []
    assert [it.id for it in job_store.jobs(also=[tmp_path / "own", tmp_path / "none"])] == [job.id]

"""Single jobs that one command submits: each runs once and has its outcome, whatever fails."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import pytest

import jpsi
from jpsi import BulkException, Job, JobExecutor, JobSpec, JobState
from jpsi.plugin import BatchConfig, Dependency, Script
from jpsi_engine.scheduler.backend import Backend, Submitted
from jpsi_engine.spool.spool import Spool
from jpsi_engine.submission.dependency_states import DependencyStates
from jpsi_testing import PluginDirectory, RemoteTransport, toy
from jpsi_testing.fake import FakeScheduler, on_path
from killed_clients import PATIENCE, run_client
from toys import QUICK

COUNT = 4

# Has no arrays, and submits four jobs with one command, which prints the ids of all but the last.
SEVERAL = r'''

_EACH = """
for text do
  printf %s "$text" | tsubmit || exit
  [ "${STOP_AFTER-}" != $((n += 1)) ] || exit 3
done
"""


@hookimpl
def capabilities() -> Capabilities:
    return Capabilities(default_launcher="multiple", id_variable="TOY_JOB_ID", jobs_per_submission=4)


@hookimpl
def submit_several(scripts: Sequence[Script], spec: JobSpec) -> Command | NotOffered:
    if spec.name == "alone":
        return NOT_OFFERED
    return Command(["sh", "-c", _EACH, "each", *(script.text for script in scripts)], unset=["TOY_*"])


@hookimpl
def parse_submit_several(result: CommandResult, contexts: Sequence[SubmitContext]) -> dict[str, str]:
    found = re.findall(r"^accepted as job (\d+)$", result.stdout, re.MULTILINE)
    return dict(list(zip((it.tag for it in contexts), found))[:-1])


@hookimpl
def classify_failure(result: CommandResult) -> Failure | None:
    may_be_there = "accepted" in result.stdout
    return Failure(FailureKind.AMBIGUOUS if may_be_there else FailureKind.INVALID_JOB, result.complaint)
'''

# Submits jobs at once and waits for them, but is killed before or after a call of a function.
CLIENT = """
import sys
import jpsi, jpsi.executor
from jpsi.plugin import BatchConfig
from killed_clients import kill_around

module, path, when, work, proofs, count = sys.argv[1:]
kill_around(module, path, when)
executor = jpsi.JobExecutor("toy", config=BatchConfig(work_directory=work))
command = 'echo ran >> "$1"; exit "$2"'
jobs = [
    jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", command, "sh", f"{proofs}/proof{code}", str(code)]))
    for code in range(int(count))
]
executor.submit_many(jobs)
"""

# The step at which the client is killed, and the number of its jobs that recovery finds then.
STEPS = [
    ("jpsi_engine.spool.spool", "Spool.prepare", "before", 0),
    ("jpsi_engine.spool.spool", "Spool.prepare", "after", 1),
    ("jpsi_engine.spool.spool", "Spool.sync", "before", COUNT),
    ("jpsi_engine.scheduler.backend", "Backend.submit", "before", COUNT),
    ("jpsi_engine.scheduler.backend", "Backend.submit", "after", COUNT),
    ("jpsi_engine.spool.spool", "Spool.started", "before", COUNT),
    ("jpsi_engine.spool.spool", "Spool.started", "after", COUNT),
    ("jpsi_engine.monitor.publisher", "Publisher.add", "before", COUNT),
    ("jpsi.job", "Job._bind", "before", COUNT),
]


@pytest.fixture
def batch(state_home: Path, plugin_directory: PluginDirectory) -> BatchConfig:
    imports = "from jpsi.plugin import (\n    NOT_OFFERED,\n    NotOffered,"
    text = Path(toy.__file__).read_text().replace("from jpsi.plugin import (", imports)
    plugin_directory.add(
        "jpsi-toy",
        "0.1",
        entry_points={"jpsi.executors": {"toy": "jpsi_toy"}},
        files={"jpsi_toy.py": text + SEVERAL},
    )
    return attrs.evolve(QUICK, work_directory=state_home / "work")


@pytest.fixture
def fake(batch: BatchConfig) -> Iterator[FakeScheduler]:
    with FakeScheduler(kill_delay=0.5, slots=8) as scheduler, on_path("toy", scheduler):
        yield scheduler


@pytest.fixture
def toys(batch: BatchConfig, fake: FakeScheduler) -> Iterator[JobExecutor]:
    with JobExecutor("toy", config=batch) as executor:
        yield executor


def proof_job(proofs: Path, code: int, name: str | None = None) -> Job:
    """Return a job that writes a line each time it runs."""
    command = 'echo ran >> "$1"; exit "$2"'
    return Job(JobSpec("/bin/sh", ["-c", command, "sh", str(proofs / f"proof{code}"), str(code)], name=name))


def runs(proofs: Path) -> list[str]:
    """Return the lines of the jobs that ran: their exit codes."""
    return [it.read_text() for it in sorted(proofs.glob("proof*"))]


def ends(jobs: Sequence[Job]) -> list[int | None]:
    statuses = [job.wait(PATIENCE) for job in jobs]
    assert None not in statuses
    return [None if status is None else status.exit_code for status in statuses]


def release_jobs(fake: FakeScheduler) -> None:
    """Release the queued jobs, and wait until all jobs have ended."""
    fake.slots = 8
    fake.settle()
    assert fake.wait_for(lambda: all(it.state.final for it in fake.jobs), PATIENCE)


def test_each_job_has_its_own_id_and_end_and_one_without_printed_id_is_found_by_its_tag(
    toys: JobExecutor, fake: FakeScheduler, tmp_path: Path
) -> None:
    jobs = [proof_job(tmp_path, code) for code in range(COUNT)]

    toys.submit_many(jobs)

    assert sorted(job.native_id or "" for job in jobs) == [job.native_id for job in fake.jobs]
    assert ends(jobs) == list(range(COUNT))
    assert runs(tmp_path) == ["ran\n"] * COUNT


def test_jobs_that_a_backend_excludes_are_submitted_one_by_one(
    toys: JobExecutor, fake: FakeScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOP_AFTER", "1")
    jobs = [proof_job(tmp_path, code, "alone") for code in range(COUNT)]

    toys.submit_many(jobs)

    assert ends(jobs) == list(range(COUNT))


def test_no_more_files_are_open_than_may_be(
    toys: JobExecutor, fake: FakeScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two for each of four commands at a time are half of sixteen."""
    submit, counts = Backend.submit, list[int]()

    def counting(backend: Backend, scripts: Sequence[Script], *args: object) -> Submitted:
        counts.append(len(scripts))
        return submit(backend, scripts, *args)  # type: ignore[arg-type]  # whatever they are

    monkeypatch.setattr(resource, "getrlimit", lambda _: (16, 1024))
    monkeypatch.setattr(Backend, "submit", counting)
    jobs = [proof_job(tmp_path, code) for code in range(COUNT)]

    toys.submit_many(jobs)

    assert counts == [2, 2]
    assert ends(jobs) == list(range(COUNT))


@pytest.mark.parametrize(
    ("module", "path", "when", "found"), STEPS, ids=[f"{when}-{path}" for _, path, when, _ in STEPS]
)
def test_a_client_killed_at_any_step_leaves_jobs_that_run_once(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path, module: str, path: str, when: str, found: int
) -> None:
    words = [module, path, when, str(batch.work_directory), str(tmp_path), str(COUNT)]
    client = run_client(CLIENT, *words)
    assert client.returncode == -signal.SIGKILL

    with JobExecutor("toy", config=batch) as executor:
        jobs = list(executor.recover())
        assert len(jobs) == found
        executor.submit_many(job for job in jobs if job.status.state is JobState.NEW)

        assert sorted(code or 0 for code in ends(jobs)) == list(range(found))
        assert executor.recover() == []
    assert runs(tmp_path) == ["ran\n"] * found


def test_a_partial_submission_names_the_submitted_jobs(
    toys: JobExecutor, fake: FakeScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOP_AFTER", "2")
    fake.slots = 0
    jobs = [proof_job(tmp_path, code) for code in range(COUNT)]

    with pytest.raises(BulkException) as caught:
        toys.submit_many(jobs)

    assert caught.value.done == tuple(jobs[:2])
    assert list(caught.value.failed) == jobs[2:]
    assert caught.value.transient
    assert [job.status.state for job in jobs[2:]] == [JobState.NEW] * 2
    monkeypatch.delenv("STOP_AFTER")
    toys.submit_many(jobs[2:])
    release_jobs(fake)
    assert ends(jobs) == list(range(COUNT))
    assert runs(tmp_path) == ["ran\n"] * COUNT


def test_a_refusal_is_for_all_jobs_of_the_command(toys: JobExecutor, fake: FakeScheduler) -> None:
    spec = JobSpec("/bin/true", attributes=jpsi.JobAttributes(queue_name="nowhere"))
    jobs = [Job(spec) for _ in range(COUNT)]

    with pytest.raises(BulkException) as caught:
        toys.submit_many(jobs)

    assert list(caught.value.failed) == jobs
    assert all(isinstance(it, jpsi.InvalidJobException) for it in caught.value.failed.values())
    assert fake.jobs == []


def test_an_error_of_a_common_dependency_is_raised_for_all_jobs(
    toys: JobExecutor, fake: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object) -> tuple[Dependency, ...]:
        msg = "job 17 is unknown"
        raise jpsi.SubmitException(msg)

    monkeypatch.setattr(DependencyStates, "open_dependencies", unknown)
    jobs = [Job(JobSpec("/bin/true")) for _ in range(COUNT + 1)]

    with pytest.raises(BulkException, match="job 17 is unknown") as caught:
        toys.submit_many(jobs)

    assert list(caught.value.failed) == jobs
    assert fake.jobs == []


def test_jobs_that_may_not_survive_a_crash_are_not_submitted(
    toys: JobExecutor, fake: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_lock: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Spool, "sync", staticmethod(full))
    jobs = [Job(JobSpec("/bin/true")) for _ in range(COUNT)]

    with pytest.raises(BulkException, match="No space left"):
        toys.submit_many(jobs)

    assert fake.jobs == []
    assert {job.status.state for job in jobs} == {JobState.NEW}


def test_no_unbound_job_of_an_interrupted_submitter_runs(
    toys: JobExecutor, fake: FakeScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = Backend.submit

    def interrupted(backend: Backend, *args: object) -> Submitted:
        submit(backend, *args)  # type: ignore[arg-type]  # whatever they are
        raise KeyboardInterrupt

    fake.slots = 0
    monkeypatch.setattr(Backend, "submit", interrupted)
    jobs = [proof_job(tmp_path, code) for code in range(COUNT)]

    with pytest.raises(KeyboardInterrupt):
        toys.submit_many(jobs)

    assert {job.status.state for job in jobs} == {JobState.NEW}
    monkeypatch.undo()
    release_jobs(fake)
    assert runs(tmp_path) == []


# ------------------------------------------------------------------------------------- on a remote host


@pytest.fixture
def remote_transport(tmp_path: Path) -> RemoteTransport:
    return RemoteTransport(tmp_path / "remote home")


@pytest.fixture
def remote_toys(
    batch: BatchConfig, fake: FakeScheduler, remote_transport: RemoteTransport
) -> Iterator[JobExecutor]:
    config = attrs.evolve(batch, work_directory=None)
    with JobExecutor.get_instance("toy", url=remote_transport.url, config=config) as executor:
        yield executor


def remote_folders(remote_transport: RemoteTransport) -> list[str]:
    return [it.name for it in remote_transport.home.glob(".local/state/jpsi/work/*/jobs/*")]


def test_refused_remote_jobs_are_removed_by_one_command(
    remote_toys: JobExecutor, fake: FakeScheduler, remote_transport: RemoteTransport
) -> None:
    spec = JobSpec("/bin/true", attributes=jpsi.JobAttributes(queue_name="nowhere"))

    with pytest.raises(BulkException, match="rejects it"):
        remote_toys.submit_many([Job(spec) for _ in range(COUNT)])

    assert remote_folders(remote_transport) == []
    assert len([it for it in remote_transport.sent if "rm -rf" in it and "tsubmit" not in it]) == 1


def test_the_error_without_a_connection_mentions_no_runs(
    remote_toys: JobExecutor, fake: FakeScheduler, remote_transport: RemoteTransport, tmp_path: Path
) -> None:
    jobs = [proof_job(tmp_path, code) for code in range(COUNT)]
    remote_toys.submit(proof_job(tmp_path, COUNT))
    remote_transport.down()

    # the second time there are local folders
    for _ in range(2):
        with pytest.raises(BulkException) as caught:
            remote_toys.submit_many(jobs)

        assert not any("may run" in str(it) for it in caught.value.failed.values())
        assert caught.value.transient
    remote_transport.up()
    remote_toys.submit_many(jobs)
    assert ends(jobs) == list(range(COUNT))


def test_an_attempt_of_another_host_prevents_the_submission_of_all(
    remote_toys: JobExecutor,
    batch: BatchConfig,
    fake: FakeScheduler,
    remote_transport: RemoteTransport,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its job is queued, and none of the others is submitted."""
    fake.slots = 0
    waits, jobs = proof_job(tmp_path, 0), [proof_job(tmp_path, code) for code in range(2)]
    jobs[0]._id, jobs[0]._attempt, waits._attempt = waits.id, 1, 1
    remote_toys.submit(waits)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state of another machine"))

    config = attrs.evolve(batch, work_directory=None)
    with (
        JobExecutor.get_instance("toy", url=remote_transport.url, config=config) as other,
        pytest.raises(BulkException, match="another machine"),
    ):
        other.submit_many(jobs)
    release_jobs(fake)

    assert ends([waits]) == [0]
    assert remote_folders(remote_transport) == [waits.id]

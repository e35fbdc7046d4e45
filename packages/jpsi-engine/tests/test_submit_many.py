"""Bulk submission under failures: each job runs once, and each outcome is reported."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

import jpsi
from jpsi import (
    BulkException,
    HeterogeneousResources,
    Job,
    JobExecutor,
    JobSpec,
    JobState,
    Reason,
    ResourceSpecV1,
)
from jpsi.contract.observation import Observation
from jpsi.model.states import Evidence
from jpsi.plugin import BatchConfig
from jpsi_engine import job_store
from jpsi_engine.scheduler.backend import Backend
from jpsi_engine.spool.arrays import ArrayFiles, ArrayMember
from jpsi_engine.spool.job_records import JobRecords
from jpsi_engine.spool.pruning import prune
from jpsi_engine.spool.spool import Spool
from jpsi_engine.submission.handoff import HandedOff, Handoff, Prepared
from jpsi_engine.submission.submission import SubmissionPipeline
from jpsi_engine.verdict.marker_verdict import CANCEL, Stop, has_exit_marker
from jpsi_testing import PluginDirectory, toy
from jpsi_testing.conformance.base import Sign
from jpsi_testing.fake import FakeScheduler, FakeState, Outcome, on_path
from jpsi_testing.waiting import eventually
from killed_clients import PATIENCE, run_client
from toys import QUICK, install_toy

COUNT = 5

# Submits jobs as one array and waits for them, but is killed before or after a call of a function.
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
    jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", command, "sh", f"{proofs}/{code}", str(code)]))
    for code in range(int(count))
]
print(*(job.id for job in jobs), flush=True)
executor.submit_many(jobs)
for job in jobs:
    job.wait()
"""

# The step at which the client is killed, and whether recovery finds its jobs then.
STEPS = [
    ("jpsi_engine.spool.arrays", "ArrayFiles.prepare", "before", 0),
    ("jpsi_engine.host", "write_new", "before", COUNT),
    ("jpsi_engine.host", "write_new", "after", COUNT),
    ("jpsi_engine.spool.arrays", "ArrayFiles.prepare", "after", COUNT),
    ("jpsi_engine.spool.spool", "Spool.sync", "before", COUNT),
    ("jpsi_engine.scheduler.backend", "Backend.submit", "after", COUNT),
    ("jpsi_engine.spool.spool", "Spool.started", "before", COUNT),
    ("jpsi_engine.spool.spool", "Spool.started", "after", COUNT),
    ("jpsi_engine.monitor.publisher", "Publisher.add", "before", COUNT),
    ("jpsi.job", "Job._bind", "before", COUNT),
    ("jpsi_engine.monitor.job_monitor", "JobMonitor.follow", "before", COUNT),
]


@pytest.fixture
def batch(state_home: Path, plugin_directory: PluginDirectory) -> BatchConfig:
    install_toy(plugin_directory)
    return attrs.evolve(QUICK, work_directory=state_home / "work")


@pytest.fixture
def fake(batch: BatchConfig) -> Iterator[FakeScheduler]:
    with FakeScheduler(kill_delay=0.5, slots=8) as scheduler, on_path("toy", scheduler):
        yield scheduler


@pytest.fixture
def toys(batch: BatchConfig, fake: FakeScheduler) -> Iterator[JobExecutor]:
    with JobExecutor("toy", config=batch) as executor:
        yield executor


def job_with_exit_code(code: int, **fields: object) -> Job:
    return Job(JobSpec("/bin/sh", ["-c", f"exit {code}"], **fields))  # type: ignore[arg-type]  # fields of a spec


def ends(jobs: list[Job]) -> list[int | None]:
    statuses = [job.wait(PATIENCE) for job in jobs]
    assert None not in statuses
    return [None if status is None else status.exit_code for status in statuses]


@pytest.mark.parametrize(
    ("module", "path", "when", "found"), STEPS, ids=[f"{when}-{path}" for _, path, when, _ in STEPS]
)
def test_a_client_killed_at_any_step_leaves_jobs_that_run_once(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path, module: str, path: str, when: str, found: int
) -> None:
    proofs = tmp_path / "proofs"
    proofs.mkdir()
    words = [module, path, when, str(batch.work_directory), str(proofs), str(COUNT)]
    client = run_client(CLIENT, *words)
    assert client.returncode == -signal.SIGKILL

    with JobExecutor("toy", config=batch) as executor:
        jobs = list(executor.recover())
        assert len(jobs) == found
        executor.submit_many(job for job in jobs if job.status.state is JobState.NEW)
        codes = ends(jobs)
        assert executor.recover() == []

    assert sorted(codes, key=str) == list(range(found))
    assert {it.name: it.read_text() for it in proofs.iterdir()} == {
        str(code): "ran\n" for code in range(found)
    }
    with JobExecutor("toy", config=batch) as executor:
        assert executor.recover() == []


@pytest.mark.parametrize(
    ("module", "path", "when", "found"), STEPS, ids=[f"{when}-{path}" for _, path, when, _ in STEPS]
)
def test_jobs_of_a_client_killed_at_any_step_are_recalled_by_their_ids(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path, module: str, path: str, when: str, found: int
) -> None:
    """This includes jobs that never reached the batch system."""
    words = [module, path, when, str(batch.work_directory), str(tmp_path), str(COUNT)]
    client = run_client(CLIENT, *words, stdout=subprocess.PIPE)

    with JobExecutor("toy", config=batch) as executor:
        jobs = list(executor.recall(client.stdout.decode().split()))
        assert len(jobs) == found
        executor.submit_many(job for job in jobs if job.status.state is JobState.NEW)
        codes = ends(jobs)

    assert sorted(codes, key=str) == list(range(found))
    assert {it.name: it.read_text() for it in tmp_path.glob("[0-9]")} == {
        str(code): "ran\n" for code in range(found)
    }


def test_jobs_that_were_submitted_again_are_recovered_once(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    """They are in two arrays: one that failed, and one in which they are queued."""
    proofs = tmp_path / "proofs"
    proofs.mkdir()
    words = [
        "jpsi_engine.spool.spool",
        "Spool.sync",
        "before",
        str(batch.work_directory),
        str(proofs),
        str(COUNT),
    ]
    run_client(CLIENT, *words)
    fake.slots = 0
    with JobExecutor("toy", config=batch) as executor:
        executor.submit_many(executor.recover())

    with JobExecutor("toy", config=batch) as executor:
        jobs = list(executor.recover())
        fake.slots = 8
        fake.settle()

        assert len(jobs) == COUNT
        assert len({job.native_id for job in jobs} - {None}) == COUNT
        assert sorted(code or 0 for code in ends(jobs)) == list(range(COUNT))


# Submits a single job, but is killed before the handoff.
SINGLE = """
import sys
import jpsi
from jpsi.plugin import BatchConfig
from killed_clients import kill_around

work, proof, code = sys.argv[1:]
kill_around("jpsi_engine.spool.spool", "Spool.sync", "before")
executor = jpsi.JobExecutor("toy", config=BatchConfig(work_directory=work))
command = 'echo ran >> "$1"; exit "$2"'
executor.submit(jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", command, "sh", proof, code])))
"""


def proof_job(proofs: Path, code: int) -> Job:
    """Return a job that writes a line each time it runs."""
    command = 'echo ran >> "$1"; exit "$2"'
    return Job(JobSpec("/bin/sh", ["-c", command, "sh", str(proofs / f"proof{code}"), str(code)]))


def runs(proofs: Path) -> list[str]:
    """Return the lines of the jobs that ran: their exit codes."""
    return [it.read_text() for it in sorted(proofs.glob("proof*"))]


def release_jobs(fake: FakeScheduler) -> None:
    """Release the queued jobs, and wait until all jobs have ended."""
    fake.lag, fake.slots = 0.0, 8
    fake.settle()
    fake.wait_for(lambda: all(it.state.final for it in fake.jobs), PATIENCE)


def test_jobs_submitted_as_an_array_after_a_crash_are_recovered_from_the_array(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    """Their folders record a first attempt as single jobs, and their array is queued."""
    for code in range(3):
        words = [str(batch.work_directory), str(tmp_path / f"proof{code}"), str(code)]
        client = run_client(SINGLE, *words)
        assert client.returncode == -signal.SIGKILL
    fake.slots = 0
    with JobExecutor("toy", config=batch) as executor:
        jobs = executor.recover()
        assert [job.status.state for job in jobs] == [JobState.NEW] * 3
        executor.submit_many(jobs)
        native_ids = {job.id: job.native_id for job in jobs}

    with JobExecutor("toy", config=batch) as executor:
        found = list(executor.recover())
        release_jobs(fake)

        assert {job.id: job.native_id for job in found} == native_ids
        assert len(found) == 3
        assert sorted(code or 0 for code in ends(found)) == [0, 1, 2]
    assert runs(tmp_path) == ["ran\n"] * 3


def test_jobs_whose_first_attempt_failed_are_recovered_from_their_array(
    batch: BatchConfig, toys: JobExecutor, fake: FakeScheduler, tmp_path: Path
) -> None:
    jobs = [proof_job(tmp_path, code) for code in range(3)]
    fake.slots, fake.lag = 0, 3600.0
    for job in jobs:
        fake.faults.cut("tsubmit")
        with pytest.raises(jpsi.SubmitException):
            toys.submit(job)
    fake.lag = 0.0
    toys.submit_many(jobs)
    prune(Spool(Path(str(batch.work_directory), "toy")), time.time() + 1000, 30 * 86400, 1, has_exit_marker)

    with JobExecutor("toy", config=batch) as executor:
        found = list(executor.recover())
        release_jobs(fake)

        assert {job.id: job.native_id for job in found} == {job.id: job.native_id for job in jobs}
        assert sorted(code or 0 for code in ends(found)) == [0, 1, 2]
    assert runs(tmp_path) == ["ran\n"] * 3


def test_one_of_two_executors_that_recovered_jobs_submits_them(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    proofs = tmp_path / "proofs"
    proofs.mkdir()
    words = [
        "jpsi_engine.spool.spool",
        "Spool.sync",
        "before",
        str(batch.work_directory),
        str(proofs),
        str(COUNT),
    ]
    run_client(CLIENT, *words)
    with JobExecutor("toy", config=batch) as one, JobExecutor("toy", config=batch) as other:
        mine, others = one.recover(), other.recover()
        one.submit_many(mine)

        with pytest.raises(BulkException, match="by another process in the meantime"):
            other.submit_many(others)

        assert sorted(code or 0 for code in ends(list(mine))) == list(range(COUNT))
    assert [it.read_text() for it in proofs.iterdir()] == ["ran\n"] * COUNT


@pytest.mark.parametrize("how_many", [1, COUNT], ids=["by itself", "in an array"])
def test_jobs_that_two_clients_submit_at_the_same_time_are_recovered_once(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how_many: int
) -> None:
    """Neither client noticed the other; the second records another array, or finds one recorded."""
    proofs = tmp_path / "proofs"
    proofs.mkdir()
    words = [
        "jpsi_engine.spool.spool",
        "Spool.sync",
        "before",
        str(batch.work_directory),
        str(proofs),
        str(COUNT),
    ]
    run_client(CLIENT, *words)
    fake.slots = 0
    with JobExecutor("toy", config=batch) as one, JobExecutor("toy", config=batch) as other:
        mine, others = one.recover()[:how_many], other.recover()
        one.submit_many(mine)
        native_ids = {job.id: job.native_id for job in mine}
        with monkeypatch.context() as patch:
            patch.setattr(Spool, "attempt_exists", lambda *_: False)
            with pytest.raises(BulkException, match="by another process in the meantime") as caught:
                other.submit_many(others)
        assert {job.id for job in caught.value.failed} == native_ids.keys()
        assert {job.id for job in caught.value.done} == {job.id for job in others} - native_ids.keys()

    with JobExecutor("toy", config=batch) as executor:
        found = list(executor.recover())
        release_jobs(fake)

        assert len(found) == COUNT
        assert {job.id: job.native_id for job in found if job.id in native_ids} == native_ids
        assert sorted(code or 0 for code in ends(found)) == list(range(COUNT))
    assert [it.read_text() for it in proofs.iterdir()] == ["ran\n"] * COUNT


def test_a_job_submitted_again_as_a_single_job_is_recovered_as_one(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    """Its first attempt is in an array that failed, and which remains because of other jobs."""
    proofs = tmp_path / "proofs"
    proofs.mkdir()
    words = [
        "jpsi_engine.spool.spool",
        "Spool.sync",
        "before",
        str(batch.work_directory),
        str(proofs),
        str(COUNT),
    ]
    run_client(CLIENT, *words)
    fake.slots = 0
    with JobExecutor("toy", config=batch) as executor:
        first = executor.recover()[0]
        executor.submit(first)

    with JobExecutor("toy", config=batch) as executor:
        found = executor.recover()

        assert len(found) == COUNT
        assert [job.native_id for job in found if job.native_id is not None] == [first.native_id]
        assert [job.id for job in found if job.native_id is not None] == [first.id]


@pytest.mark.parametrize("count", [1, 3])
def test_jobs_in_submission_are_not_recovered(
    toys: JobExecutor, fake: FakeScheduler, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Between the output of the submit command and the engine's record they look abandoned."""
    jobs = [job_with_exit_code(code) for code in range(count)]
    sent, found = threading.Event(), threading.Event()
    send = SubmissionPipeline._hand_off

    def waiting(self: SubmissionPipeline, *arguments: Any, **named: Any) -> object:
        accepted_at = send(self, *arguments, **named)
        sent.set()
        assert found.wait(PATIENCE)
        return accepted_at

    monkeypatch.setattr(SubmissionPipeline, "_hand_off", waiting)
    submission = threading.Thread(target=toys.submit_many, args=(jobs,))
    submission.start()
    assert sent.wait(PATIENCE)
    recovered = toys.recover()
    found.set()
    submission.join(PATIENCE)

    assert recovered == []
    assert ends(jobs) == list(range(count))


def submit_and_die(batch: BatchConfig, proofs: Path) -> None:
    """Submit jobs from a client that is killed before the handoff of their array."""
    proofs.mkdir(exist_ok=True)
    words = [
        "jpsi_engine.spool.spool",
        "Spool.sync",
        "before",
        str(batch.work_directory),
        str(proofs),
        str(COUNT),
    ]
    run_client(CLIENT, *words)


def test_jobs_in_one_array_with_a_contested_job_are_submitted_without_it(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit_and_die(batch, tmp_path / "proofs")
    fake.slots = 0
    with JobExecutor("toy", config=batch) as one, JobExecutor("toy", config=batch) as other:
        mine, others = one.recover(), other.recover()
        (last,) = [job for job in mine if job.id == others[-1].id]
        one.submit(last)
        with monkeypatch.context() as patch:
            patch.setattr(Spool, "attempt_exists", lambda *_: False)
            with pytest.raises(BulkException):
                other.submit_many(others)

    with JobExecutor("toy", config=batch) as executor:
        found = executor.recover()

    assert {job.id: job.native_id for job in found} == {
        job.id: job.native_id for job in [*others[:-1], last] if job.native_id is not None
    }
    assert len(found) == COUNT
    on_disk = JobRecords(
        f"{batch.work_directory}/toy", lambda _, them: [str(it) for it in them], are_processes=False
    )
    assert {it.job_id for it in on_disk.read()} == {job.id for job in others}


def test_a_late_client_does_not_revoke_a_queued_array(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    submit_and_die(batch, tmp_path / "proofs")
    fake.slots = 0
    with JobExecutor("toy", config=batch) as one, JobExecutor("toy", config=batch) as other:
        mine, others = list(one.recover()), other.recover()
        one.submit_many(mine)
        for why in ("by another process", "runs already"):
            with pytest.raises(BulkException, match=why):
                other.submit_many(others)
        release_jobs(fake)

        assert sorted(code or 0 for code in ends(mine)) == list(range(COUNT))


def test_a_job_whose_link_names_the_element_of_another_job_is_not_submitted_again(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    """Its own array may run, whatever became of that of the other job."""
    submit_and_die(batch, tmp_path / "proofs")
    spool = Spool(Path(str(batch.work_directory), "toy"))
    (name,), sent = spool.arrays.names(), len(fake.jobs)
    with JobExecutor("toy", config=batch) as executor:
        job, other = sorted(executor.recover(), key=lambda it: it.id)[:2]
        array = spool.arrays.read(name)
        assert array is not None
        place = 1 + [element["id"] for element in array.elements].index(other.id)
        spool.adopt(job.id, 1, ArrayMember(name, place))

        with pytest.raises(jpsi.SubmitException, match="names the element of another job"):
            executor.submit(job)
        assert len(fake.jobs) == sent
        executor.submit(other)

    assert len(fake.jobs) == sent + 1


def test_an_element_cancelled_before_the_handoff_is_final(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    submit_and_die(batch, tmp_path / "proofs")
    spool = Spool(Path(str(batch.work_directory), "toy"))
    (name,) = spool.arrays.names()
    array = spool.arrays.read(name)
    assert array is not None
    stopped, *others = [element["id"] for element in array.elements]
    spool.adopt(stopped, 1, ArrayMember(name, 1))
    spool.stop(stopped, 1, Stop(CANCEL, datetime.now(UTC)))

    for _ in range(2):
        with JobExecutor("toy", config=batch) as executor:
            assert {job.id for job in executor.recover()} == set(others)


# Recovers jobs and submits them again, but is killed at the second call of a function.
AGAIN = """
import sys
import jpsi
from jpsi.plugin import BatchConfig
from killed_clients import kill_around

kill_around("jpsi_engine.spool.spool", "Spool.link_retry", "before", 2)
executor = jpsi.JobExecutor("toy", config=BatchConfig(work_directory=sys.argv[1]))
executor.submit_many(executor.recover())
"""


def test_jobs_half_of_which_record_their_array_are_recovered_once(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    for code in range(3):
        words = [str(batch.work_directory), str(tmp_path / f"proof{code}"), str(code)]
        run_client(SINGLE, *words)
    assert run_client(AGAIN, batch.work_directory).returncode == -signal.SIGKILL

    with JobExecutor("toy", config=batch) as executor:
        found = list(executor.recover())
        assert [job.status.state for job in found] == [JobState.NEW] * 3
        assert len({job.id for job in found}) == 3
        executor.submit_many(found)
        assert sorted(code or 0 for code in ends(found)) == [0, 1, 2]
    assert runs(tmp_path) == ["ran\n"] * 3


def test_malformed_files_among_the_arrays_cost_no_job_its_recovery(
    batch: BatchConfig, toys: JobExecutor, fake: FakeScheduler
) -> None:
    fake.slots = 0
    jobs = [job_with_exit_code(code) for code in range(3)]
    toys.submit_many(jobs)
    arrays = Path(str(batch.work_directory), "toy", "arrays")
    (arrays / ".DS_Store").touch()
    for name, text in {
        "a": '{"count": 1, "spec": {}}\n{"new": 1}',
        "b": '{"count": 1}\n[]',
        "c": "5",
    }.items():
        (arrays / name).mkdir()
        (arrays / name / "intent.json").write_text(text)
    (arrays / "d" / "intent.json").mkdir(parents=True)
    (arrays / "e").mkdir()
    (arrays / "e" / "intent.json").write_text(
        '{"count": 1, "spec": {}}\n{"id": "x", "attempt": 1, "spec": {}}'
    )
    (arrays / "e" / "claim").mkdir()
    loop = arrays.parent / "jobs" / jobs.pop().id
    loop.symlink_to(loop)

    with JobExecutor("toy", config=batch) as executor:
        found = executor.recover()
        attached = Job()
        executor.attach_many([(attached, "999.1")])

        assert {job.id for job in found} == {job.id for job in jobs}
        assert eventually(lambda: attached.status.reason is Reason.ATTACH_UNVERIFIED, PATIENCE)


@pytest.mark.parametrize("is_first", [True, False])
def test_jobs_of_an_array_do_not_share_their_files(
    toys: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "before.sh").write_text("true\n")
    fields: dict[str, Any] = {"directory": tmp_path / "there", "pre_launch": Path("before.sh")}
    staging = job_with_exit_code(7, stage_in=[jpsi.StageIn("before.sh", Path("before.sh"))], **fields)
    plain = job_with_exit_code(7, **fields)

    with pytest.raises(BulkException) as raised:
        toys.submit_many([staging, plain] if is_first else [plain, staging])

    assert set(raised.value.failed) == {plain}
    assert ends([staging]) == [7]


def test_a_queued_element_is_cancelled_without_delay(batch: BatchConfig, fake: FakeScheduler) -> None:
    """Its array is known: the client needs no grace for a snapshot that does not mention it."""
    fake.slots = 0
    with JobExecutor("toy", config=attrs.evolve(batch, grace=timedelta(hours=1))) as executor:
        jobs = [job_with_exit_code(code) for code in range(3)]
        executor.submit_many(jobs)
        executor.cancel_many(jobs[:1])
        fake.vanish(jobs[0].native_id or "")

        status = jobs[0].wait(PATIENCE)

    assert status is not None
    assert status.state is JobState.CANCELED


def test_the_first_cancellation_does_not_wait_for_the_records_of_all_others(
    batch: BatchConfig, toys: JobExecutor, fake: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.slots = 0
    jobs = [job_with_exit_code(code) for code in range(4)]
    toys.submit_many(jobs)
    folders, written = Path(str(batch.work_directory), "toy", "jobs"), list[int]()
    cancel = Backend.cancel

    def counting(
        backend: Backend, native_ids: Sequence[str], observations: Mapping[str, Observation]
    ) -> Mapping[str, str]:
        written.append(len(list(folders.glob("*/stop.1.json"))))
        return cancel(backend, native_ids, observations)

    monkeypatch.setattr(Backend, "split_for_requests", lambda _, things: [things[:2], things[2:]])
    monkeypatch.setattr(Backend, "cancel", counting)
    toys.cancel_many(jobs)

    assert written == [2, 4]
    for job in jobs:
        status = job.wait(PATIENCE)
        assert status is not None
        assert status.state is JobState.CANCELED


def test_jobs_that_are_cancelled_for_a_dependency_say_which(
    batch: BatchConfig, toys: JobExecutor, fake: FakeScheduler
) -> None:
    fake.slots = 0
    jobs = [job_with_exit_code(code) for code in range(2)]
    toys.submit_many(jobs)

    toys.cancel_many(jobs, unmet="fit has not completed")

    statuses = [job.wait(PATIENCE) for job in jobs]
    assert [it and (it.state, it.reason, it.message) for it in statuses] == [
        (JobState.CANCELED, Reason.DEPENDENCY, "fit has not completed")
    ] * 2
    stored = [it.status.message for it in job_store.jobs(also=[Path(str(batch.work_directory))])]
    assert stored == ["fit has not completed"] * 2


@pytest.mark.clause("cancel-race")
def test_jobs_that_end_while_others_are_cancelled_keep_their_ends(
    batch: BatchConfig, toys: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = tmp_path / "go_on"
    jobs = [Job(JobSpec("/bin/sh", ["-c", f"until [ -e {go_on} ]; do sleep 0.05; done"])) for _ in range(4)]
    toys.submit_many(jobs)
    for job in jobs:
        assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
    cancel = Backend.cancel

    def slow(
        backend: Backend, native_ids: Sequence[str], observations: Mapping[str, Observation]
    ) -> Mapping[str, str]:
        go_on.touch()
        assert ends(jobs[2:]) == [0, 0]
        return cancel(backend, native_ids, observations)

    monkeypatch.setattr(Backend, "split_for_requests", lambda _, things: (things[:2], things[2:]))
    monkeypatch.setattr(Backend, "cancel", slow)
    toys.cancel_many(jobs)
    for job in jobs:
        job.wait(PATIENCE)

    with JobExecutor("toy", config=batch) as executor:
        assert executor.recover() == []


def test_a_system_that_does_not_answer_gets_no_further_cancel_command(
    toys: JobExecutor, fake: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.slots = 0
    jobs = [job_with_exit_code(code) for code in range(6)]
    toys.submit_many(jobs)
    cancelled = list[Sequence[str]]()

    def unanswered(
        _: Backend, native_ids: Sequence[str], observations: Mapping[str, Observation]
    ) -> Mapping[str, str]:
        cancelled.append(native_ids)
        msg = "tdel did not answer in time"
        raise jpsi.SubmitException(msg, transient=True)

    monkeypatch.setattr(
        Backend, "split_for_requests", lambda _, things: (things[:2], things[2:4], things[4:])
    )
    monkeypatch.setattr(Backend, "cancel", unanswered)
    with pytest.raises(BulkException) as caught:
        toys.cancel_many(jobs)

    assert list(caught.value.failed) == jobs
    assert len(cancelled) == 1


def test_a_job_that_is_listed_twice_is_an_error(toys: JobExecutor, fake: FakeScheduler) -> None:
    job = job_with_exit_code(0)

    with pytest.raises(ValueError, match="is given twice"):
        toys.submit_many([job, job_with_exit_code(1), job])

    assert job.status.state is JobState.NEW
    assert fake.jobs == []
    with pytest.raises(TypeError, match="a Job is needed"):
        toys.submit_many([job, None])  # type: ignore[list-item]  # that is the mistake


def test_an_empty_list_runs_no_command(toys: JobExecutor, fake: FakeScheduler) -> None:
    toys.submit_many([])
    toys.cancel_many([])
    toys.attach_many([])

    assert fake.log.count("tsubmit") == 0


# A backend or an override of one, whose refusals count the calls of its check.
COUNTING = """
from jpsi.plugin import hookimpl
CHECKED = []

@hookimpl
def check_spec(spec):
    CHECKED.append(spec.executable)
    return [f"{spec.executable}, checked {len(CHECKED)} times"] if spec.executable != "/bin/sh" else []
"""


@pytest.mark.parametrize(
    ("group", "module", "expected", "expected_again"),
    [
        (
            "jpsi.executors",
            f"{Path(toy.__file__).read_text()}{COUNTING}",
            ["a, checked 1 times"] * 2,
            ["a, checked 2 times"] * 2,
        ),
        (
            "jpsi.overrides",
            COUNTING,
            ["a, checked 1 times", "b, checked 2 times"],
            ["a, checked 3 times", "b, checked 4 times"],
        ),
    ],
    ids=["backend", "override"],
)
def test_a_check_that_reads_the_whole_spec_is_called_for_each_job(
    batch: BatchConfig,
    plugin_directory: PluginDirectory,
    group: str,
    module: str,
    expected: list[str],
    expected_again: list[str],
) -> None:
    """A backend checks jobs that differ only in their commands once; a site's policy checks each."""
    name = "counted" if group == "jpsi.executors" else "toy"
    plugin_directory.add("counting", entry_points={group: {name: "counting"}}, files={"counting.py": module})
    jobs = [Job(JobSpec("a")), Job(JobSpec("b"))]

    with JobExecutor(name, config=batch) as executor, pytest.raises(BulkException) as refused:
        executor.submit_many(jobs)

    assert [str(refused.value.failed[job]) for job in jobs] == [
        f"the job is not valid: {it}" for it in expected
    ]

    with JobExecutor(name, config=batch) as executor:
        refusals = [refusal(executor, executable) for executable in ("a", "b")]
    assert refusals == [f"the job is not valid: {it}" for it in expected_again]


def refusal(executor: JobExecutor, executable: str) -> str:
    """Return the reason why a job is not submitted."""
    with pytest.raises(jpsi.InvalidJobException) as refused:
        executor.submit(Job(JobSpec(executable)))
    return str(refused.value)


def test_a_closed_executor_accepts_no_jobs(toys: JobExecutor) -> None:
    toys.close()

    with pytest.raises(jpsi.SubmitException, match="closed"):
        toys.submit_many([job_with_exit_code(0)])


def test_jobs_that_were_submitted_already_stay_as_they_are(toys: JobExecutor) -> None:
    first, second = job_with_exit_code(1), job_with_exit_code(2)
    toys.submit(first)

    with pytest.raises(BulkException) as caught:
        toys.submit_many([first, second])

    assert caught.value.done == (second,)
    assert isinstance(caught.value.failed[first], jpsi.InvalidJobException)
    assert ends([first, second]) == [1, 2]


def test_a_refused_array_does_not_prevent_the_submission_of_others(
    toys: JobExecutor, fake: FakeScheduler
) -> None:
    refused = [job_with_exit_code(1, attributes=jpsi.JobAttributes(queue_name="nowhere")) for _ in range(3)]
    taken = [job_with_exit_code(code) for code in range(3)]

    with pytest.raises(BulkException, match="no queue 'nowhere'") as caught:
        toys.submit_many([*refused, *taken])

    assert caught.value.done == tuple(taken)
    assert list(caught.value.failed) == refused
    assert not caught.value.transient
    assert ends(taken) == [0, 1, 2]
    assert [it.status.state for it in refused] == [JobState.NEW] * 3


def test_jobs_whose_intent_cannot_be_written_are_not_submitted(
    toys: JobExecutor, fake: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [job_with_exit_code(code) for code in range(3)]

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr("jpsi_engine.host.write_new", full)
        with pytest.raises(BulkException, match="could not be recorded") as caught:
            toys.submit_many(jobs)

    assert caught.value.transient
    assert fake.jobs == []
    toys.submit_many(jobs)
    assert ends(jobs) == [0, 1, 2]


def test_an_interrupt_is_raised_after_the_accepted_jobs_are_bound(
    toys: JobExecutor, fake: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [job_with_exit_code(code) for code in range(3)]
    send = Handoff.submit

    def interrupted(handoff: Handoff, prepared: Prepared) -> HandedOff:
        return attrs.evolve(send(handoff, prepared), interrupt=KeyboardInterrupt())

    with monkeypatch.context() as patch:
        patch.setattr(Handoff, "submit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            toys.submit_many(jobs)

    assert [job.native_id for job in jobs] == ["1.1", "1.2", "1.3"]
    assert ends(jobs) == [0, 1, 2]


def test_an_interrupt_before_that_leaves_jobs_that_can_be_submitted(
    toys: JobExecutor, fake: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [job_with_exit_code(code) for code in range(3)]

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("jpsi_engine.scheduler.backend.Backend.submit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            toys.submit_many(jobs)

    assert [job.status.state for job in jobs] == [JobState.NEW] * 3
    toys.submit_many(jobs)
    assert ends(jobs) == [0, 1, 2]


def test_an_interrupt_during_binding_is_raised_after_all_jobs_are_bound(
    toys: JobExecutor, fake: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [job_with_exit_code(code) for code in range(3)]
    bind = Job._bind

    def interrupting(job: Job, native_id: str | None, attempt: int) -> None:
        if job is jobs[1]:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        bind(job, native_id, attempt)

    monkeypatch.setattr(Job, "_bind", interrupting)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            toys.submit_many(jobs)
    finally:
        signal.signal(signal.SIGINT, before)

    assert [job.native_id for job in jobs] == ["1.1", "1.2", "1.3"]
    assert ends(jobs) == [0, 1, 2]


def test_jobs_run_once_though_a_failure_prevents_the_binding_of_some(
    toys: JobExecutor, fake: FakeScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [proof_job(tmp_path, code) for code in range(5)]
    bind = Job._bind
    fake.slots = 0

    def failing(job: Job, native_id: str | None, attempt: int) -> None:
        if job is jobs[2]:
            raise MemoryError
        bind(job, native_id, attempt)

    with monkeypatch.context() as patch:
        patch.setattr(Job, "_bind", failing)
        with pytest.raises(MemoryError):
            toys.submit_many(jobs)
    assert [job.status.state for job in jobs] == [JobState.QUEUED] * 2 + [JobState.NEW] * 3
    with pytest.raises(BulkException, match="runs already") as caught:
        toys.submit_many(jobs[2:])
    found = {job.id: job for job in toys.recover()}
    release_jobs(fake)

    assert list(caught.value.failed) == jobs[2:]
    assert ends([found.pop(job.id) for job in jobs[2:]]) == [2, 3, 4]
    assert found == {}
    assert runs(tmp_path) == ["ran\n"] * 5
    assert ends(jobs[:2]) == [0, 1]


def refusal_of_many(executor: JobExecutor, jobs: Sequence[Job]) -> str:
    with pytest.raises(BulkException) as caught:
        executor.submit_many(jobs)
    return str(caught.value)


@pytest.mark.parametrize("count", [1, 3])
def test_jobs_that_could_not_be_revoked_are_revoked_before_they_are_submitted_again(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    jobs = [proof_job(tmp_path, code) for code in range(count)]
    fake.slots, fake.lag = 0, 3600.0
    fake.faults.accept_and_hang("tsubmit")
    hasty = attrs.evolve(batch, command_timeout=timedelta(seconds=3))

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    with JobExecutor("toy", config=hasty) as toys:
        with monkeypatch.context() as patch:
            patch.setattr("jpsi_engine.spool.arrays.revoke", full)
            patch.setattr("jpsi_engine.spool.spool.revoke", full)
            with pytest.raises(jpsi.SubmitException, match="may run or not"):
                toys.submit_many(jobs)
            # the hanging command may hold the lock until it ends
            assert eventually(lambda: "No space left" in refusal_of_many(toys, jobs))
        toys.submit_many(jobs)
        release_jobs(fake)

        assert runs(tmp_path) == ["ran\n"] * count
        assert ends(jobs) == list(range(count))


def test_many_arrays_are_submitted_in_parallel(batch: BatchConfig, fake: FakeScheduler) -> None:
    fake.outcome = Outcome(seconds=0.0)
    with JobExecutor("toy", config=attrs.evolve(batch, array_size=3)) as executor:
        jobs = [job_with_exit_code(0) for _ in range(20)]
        executor.submit_many(jobs)

    assert fake.log.count("tsubmit") == 7
    assert len({job.native_id for job in jobs}) == 20
    # two are left for the last of them
    assert sorted(it.native_id.count(".") for it in fake.jobs) == [1] * 20


def test_an_element_whose_folder_does_not_show_keeps_its_end(
    batch: BatchConfig, toys: JobExecutor, tmp_path: Path
) -> None:
    """A node made the folder, and the network file system shows it late."""
    go_on = tmp_path / "go_on"
    command = f'until [ -e {go_on} ]; do sleep 0.1; done; exit "$1"'
    streams = {"stdout_path": "/dev/null", "stderr_path": "/dev/null"}
    signs = [Sign(tmp_path / f"sign{code}") for code in range(3)]
    jobs = [
        Job(JobSpec("/bin/sh", ["-c", f'echo >"$2"; {command}', "sh", str(code), str(sign.path)], **streams))
        for code, sign in enumerate(signs)
    ]
    toys.submit_many(jobs)
    for job, sign in zip(jobs, signs, strict=True):
        # its runner no longer needs the folder
        assert sign.wait(PATIENCE)
        assert job.wait(PATIENCE, target_states=JobState.ACTIVE)
        shutil.rmtree(Path(str(batch.work_directory), "toy", "jobs", job.id))

    go_on.touch()

    assert ends(jobs) == [0, 1, 2]
    assert {job.status.evidence for job in jobs} == {Evidence.MARKER}


def test_the_queue_reports_the_end_of_a_killed_element(toys: JobExecutor, fake: FakeScheduler) -> None:
    jobs = [Job(JobSpec("/bin/sleep", ["1000"])) for _ in range(3)]
    toys.submit_many(jobs)
    for job in jobs:
        assert job.wait(PATIENCE, target_states=JobState.ACTIVE)

    fake.end_as(jobs[1].native_id or "", FakeState.NODE_FAIL)

    status = jobs[1].wait(PATIENCE)
    assert status is not None
    assert status.reason is Reason.NODE_FAIL
    toys.cancel_many(jobs)
    assert [job.wait(PATIENCE) is not None for job in jobs] == [True] * 3


def test_callbacks_get_the_statuses_of_each_element(toys: JobExecutor) -> None:
    states: dict[str, list[JobState]] = {}
    all_over = threading.Event()

    def callback(job: Job, status: jpsi.JobStatus) -> None:
        states.setdefault(job.id, []).append(status.state)
        if sum(history[-1].final for history in states.values()) == 3:
            all_over.set()

    toys.set_job_status_callback(callback)
    jobs = [job_with_exit_code(code) for code in range(3)]
    toys.submit_many(jobs)

    assert all_over.wait(PATIENCE)
    assert [states[job.id][0] for job in jobs] == [JobState.QUEUED] * 3
    assert [states[job.id][-1] for job in jobs] == [JobState.COMPLETED, JobState.FAILED, JobState.FAILED]


def test_many_local_jobs_are_started_in_parallel(executor: JobExecutor) -> None:
    jobs = [job_with_exit_code(code) for code in range(8)]

    executor.submit_many(jobs)

    assert ends(jobs) == list(range(8))


def test_only_the_index_of_an_element_is_read(
    batch: BatchConfig, toys: JobExecutor, fake: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spec of an element follows those of all elements before it; a folder is read once."""
    fake.slots = 0
    waiting, jobs = (
        [job_with_exit_code(code) for code in range(3)],
        [job_with_exit_code(code) for code in range(5)],
    )
    toys.submit_many(waiting)
    spool = Spool(Path(str(batch.work_directory), "toy"))
    (array,) = spool.arrays.names()
    for index, job in enumerate(waiting, 1):
        spool.adopt(job.id, 1, ArrayMember(array, index))
    toys.submit_many(jobs)
    read, listed, last_array_member = list[ArrayMember](), list[str](), Spool.last_array_member

    def counting(spool: Spool, job_id: str) -> ArrayMember | None:
        listed.append(job_id)
        return last_array_member(spool, job_id)

    monkeypatch.setattr(ArrayFiles, "read_element", lambda _, place: read.append(place))
    with JobExecutor("toy", config=batch) as executor:
        assert len(executor.recover()) == 8
        prune(spool, time.time(), 0, 0, has_exit_marker)
        monkeypatch.setattr(Spool, "last_array_member", counting)
        executor.attach_many([(Job(), "998"), (Job(), "999")])

    assert read == []
    assert sorted(listed) == sorted(job.id for job in waiting)


def test_attach_to_many_names_the_jobs_that_fail(toys: JobExecutor, fake: FakeScheduler) -> None:
    jobs = [job_with_exit_code(code) for code in range(2)]
    toys.submit_many(jobs)
    one, other, taken = Job(), Job(), job_with_exit_code(0)
    toys.submit(taken)

    with pytest.raises(BulkException) as caught:
        toys.attach_many([(one, jobs[0].native_id or ""), (other, ""), (taken, jobs[1].native_id or "")])

    assert list(caught.value.failed) == [taken]
    assert other.status.reason is Reason.ATTACH_UNVERIFIED
    assert ends([one]) == [0]
    assert one.native_id == jobs[0].native_id


def test_an_invalid_job_prevents_the_submission_of_all_if_all_are_checked_first(
    toys: JobExecutor, fake: FakeScheduler
) -> None:
    good, wrong, other = Job(JobSpec("true")), Job(JobSpec("true", arguments=["\0"])), Job(JobSpec("true"))

    with pytest.raises(BulkException) as caught:
        toys.submit_many([good, wrong, other], checks_first=True)

    assert caught.value.done == ()
    assert list(caught.value.failed) == [good, wrong, other]
    assert isinstance(caught.value.failed[wrong], jpsi.InvalidJobException)
    assert not isinstance(caught.value.failed[good], jpsi.InvalidJobException)
    assert fake.jobs == []
    toys.submit_many([good, other], checks_first=True)
    assert all(job.wait(timedelta(seconds=PATIENCE)) for job in (good, other))


def test_jobs_with_slots_of_several_kinds_are_no_array(toys: JobExecutor, fake: FakeScheduler) -> None:
    several = HeterogeneousResources([ResourceSpecV1(process_count=2), ResourceSpecV1(process_count=3)])
    jobs = [Job(JobSpec("/bin/true", resources=several, launcher="single")) for _ in range(3)]

    toys.submit_many(jobs)

    assert fake.log.count("tsubmit") == 3
    assert ends(jobs) == [0, 0, 0]


def test_jobs_of_one_array_have_one_shell(toys: JobExecutor, tmp_path: Path) -> None:
    (tmp_path / "bash").write_text("#!/bin/bash\nwords=(7 8)\nexport CODE=${words[1]}\n")
    (tmp_path / "sh").write_text("export CODE=9\n")
    scripts = ["bash", "sh", "bash", "sh"]
    jobs = [Job(JobSpec("/bin/sh", ["-c", "exit $CODE"], pre_launch=tmp_path / it)) for it in scripts]

    toys.submit_many(jobs)

    assert ends(jobs) == [8, 9, 8, 9]
    arrays = {job.id: job.array[0] for job in job_store.jobs(also=[toys_directory(toys)]) if job.array}
    assert len({arrays[job.id] for job in jobs}) == 2
    assert arrays[jobs[0].id] == arrays[jobs[2].id]


def toys_directory(executor: JobExecutor) -> Path:
    directory = executor.system.site().config.work_directory
    assert directory is not None
    return directory

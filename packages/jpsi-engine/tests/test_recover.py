"""A client may be killed at any instruction: the next one finds every job and every exit code."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import jpsi
from jpsi import Job, JobExecutor, JobSpec, JobState, Reason
from killed_clients import run_client

PATIENCE = 30

# Submits one job and waits for it, but is killed before or after a function of jpsi is called.
CLIENT = """
import sys
import jpsi
import jpsi.executor
from jpsi_engine.local import starter
from killed_clients import kill_around

module, path, when, work, proof, fifo, *ways = sys.argv[1:]
starter._JOBS_BEFORE, starter._READY_SECONDS = 0 if ways else 9, 30
kill_around(module, path, "before" if when == "before" else "after", 2 if when == "again" else 1)
executor = jpsi.JobExecutor("local", config=jpsi.ExecutorConfig(work_directory=work))
command = 'echo ran >> "$1"; read x < "$2"; exit 3'
job = jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", command, "sh", proof, fifo]))
executor.submit(job)
open(fifo, "w").close()
job.wait()
"""

BEFORE_SPAWN = ("jpsi_engine.local.local_engine", "spawn", "before")
STEPS = [
    ("jpsi_engine.spool.spool", "Spool.prepare", "before", 0, 0),
    ("jpsi_engine.host", "write_new", "before", 1, 1),
    ("jpsi_engine.host", "write_new", "after", 1, 1),
    ("jpsi_engine.local.local_engine", "spawn", "before", 1, 1),
    ("jpsi_engine.local.local_engine", "spawn", "after", 1, 1),
    ("jpsi_engine.spool.spool", "Spool.started", "before", 1, 1),
    ("jpsi_engine.spool.spool", "Spool.started", "after", 1, 1),
    ("jpsi.job", "Job._bind", "before", 1, 1),
    ("jpsi.job", "Job._bind", "after", 1, 1),
    ("jpsi_engine.local.exits", "ExitWatch.watch", "before", 1, 1),
    ("jpsi_engine.local.exits", "ExitWatch.watch", "after", 1, 1),
    ("jpsi_engine.spool.spool", "Spool.collect", "before", 1, 1),
    # the exit marker is in the folder of the job: the job is final on disk
    ("jpsi_engine.local.supervision", "Supervisor._finish", "before", 0, 1),
]
# Of a job whose program another process starts; `again` is after the second call of the function.
STARTER_STEPS = [
    ("jpsi_engine.spool.spool", "Spool.prepare", "before", 0, 0),
    ("jpsi_engine.spool.spool", "Spool.prepare", "after", 1, 1),
    ("jpsi_engine.local.starter", "Starter.__init__", "before", 1, 1),
    ("socket", "send_fds", "after", 1, 1),
    ("socket", "send_fds", "again", 1, 1),
    ("jpsi_engine.local.starter", "Starter.start", "after", 1, 1),
    ("jpsi.job", "Job._bind", "before", 1, 1),
    ("jpsi_engine.local.starter", "Starter.follow", "before", 1, 1),
    ("jpsi_engine.local.starter", "Starter.follow", "after", 1, 1),
    ("jpsi_engine.local.supervision", "Supervisor.on_program_end", "before", 0, 1),
    ("jpsi_engine.local.supervision", "Supervisor._finish", "before", 0, 1),
]


@pytest.mark.parametrize(
    ("module", "path", "when", "found", "runs", "way"),
    [(*step, "") for step in STEPS] + [(*step, "starter") for step in STARTER_STEPS],
    ids=[f"{when}-{path}" for _, path, when, *_ in STEPS]
    + [f"starter-{when}-{path}" for _, path, when, *_ in STARTER_STEPS],
)
def test_a_client_killed_at_any_step_leaves_a_job_that_runs_once(
    config: jpsi.ExecutorConfig,
    tmp_path: Path,
    module: str,
    path: str,
    when: str,
    found: int,
    runs: int,
    way: str,
) -> None:
    proof, fifo = tmp_path / "proof", tmp_path / "fifo"
    proof.touch()
    os.mkfifo(fifo)
    words = [module, path, when, config.work_directory, proof, fifo, *filter(None, [way])]
    client = run_client(CLIENT, *words)
    assert client.returncode == -signal.SIGKILL

    executor = JobExecutor("local", config=config)
    jobs = executor.recover()
    assert len(jobs) == found
    # read and write, so that opening does not wait and the job's read ends at once
    writer = os.open(fifo, os.O_RDWR)
    os.write(writer, b"\n" * 10)
    for job in jobs:
        if job.status.state is JobState.NEW:
            executor.submit(job)
        status = job.wait(PATIENCE)
        assert status is not None
        assert (status.state, status.exit_code) == (JobState.FAILED, 3)
    os.close(writer)

    assert proof.read_text() == "ran\n" * runs
    assert JobExecutor("local", config=config).recover() == []


MANY = """
import jpsi, sys
executor = jpsi.JobExecutor("local", config=jpsi.ExecutorConfig(work_directory=sys.argv[1]))
for number in range(40):
    proof = f"{sys.argv[2]}/{number}"
    job = jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", 'echo ran >> "$1"; exit $2', "sh", proof, str(number)]))
    executor.submit(job)
    print(job.id, number, flush=True)
"""


@pytest.mark.parametrize("survived", [1, 7, 23, 40])
def test_a_client_killed_between_many_jobs_loses_none(
    config: jpsi.ExecutorConfig, tmp_path: Path, survived: int
) -> None:
    proofs = tmp_path / "proofs"
    proofs.mkdir()
    client = subprocess.Popen(
        [sys.executable, "-c", MANY, str(config.work_directory), str(proofs)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert client.stdout is not None
    expected = dict(client.stdout.readline().split() for _ in range(survived))
    client.kill()
    client.communicate()

    jobs = {job.id: job for job in JobExecutor("local", config=config).recover()}
    codes = {}
    for id_, job in jobs.items():
        if job.status.state is not JobState.NEW:
            status = job.wait(PATIENCE)
            assert status is not None
            codes[id_] = status.exit_code

    # what ended while its client still lived may be settled already
    for id_, number in expected.items():
        assert codes.get(id_, _settled_code(config, id_)) == int(number)
        assert (proofs / number).read_text() == "ran\n"


def _settled_code(config: jpsi.ExecutorConfig, job_id: str) -> int:
    assert config.work_directory is not None
    (marker,) = config.work_directory.glob(f"local/*/jobs/{job_id}/*.exit.run*")
    return int(marker.name.rpartition(".")[2])


def test_recovered_jobs_keep_id_spec_native_id_and_streams(
    executor: JobExecutor, config: jpsi.ExecutorConfig, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    job = Job(JobSpec("/bin/sh", ["-c", f"echo out; read x <'{fifo}'"], name="a name"))
    executor.submit(job)

    (found,) = JobExecutor("local", config=config).recover()
    fifo.write_text("\n")

    assert (found.id, found.native_id, found.spec) == (job.id, job.native_id, job.spec)
    assert found.streams == job.streams
    assert found.wait(PATIENCE) is not None
    assert found.streams is not None
    assert found.streams.stdout.read_text() == "out\n"


def test_an_executor_does_not_recover_its_own_jobs(executor: JobExecutor, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    job = Job(JobSpec("/bin/sh", ["-c", f"read x <'{fifo}'"]))
    executor.submit(job)

    assert executor.recover() == []

    fifo.write_text("\n")
    assert job.wait(PATIENCE) is not None


def test_a_job_of_an_earlier_boot_is_lost_and_its_pid_is_no_process_of_it(
    executor: JobExecutor, config: jpsi.ExecutorConfig, state_home: Path, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    job = Job(JobSpec("/bin/sh", ["-c", f"read x <'{fifo}'"]))
    executor.submit(job)
    (path,) = state_home.glob("work/local/*/jobs/*/intent.1.json")
    intent = json.loads(path.read_text().splitlines()[0])
    assert job.native_id is not None
    earlier = job.native_id.rpartition(".")[0] + ".0dd5"
    path.write_text(json.dumps({**intent, "boot": "0dd5"}) + "\n" + earlier)

    (found,) = JobExecutor("local", config=config).recover()
    status = found.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.reason) == (JobState.FAILED, Reason.LOST)
    assert job.status.state is JobState.ACTIVE
    fifo.write_text("\n")
    assert job.wait(PATIENCE) is not None


def test_two_recoverers_of_one_unsent_job_submit_it_once(
    config: jpsi.ExecutorConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = tmp_path / "proof"
    run_client(CLIENT, *BEFORE_SPAWN, config.work_directory, proof, "/dev/null")
    first, second = (JobExecutor("local", config=config) for _ in range(2))
    (one,), (other,) = first.recover(), second.recover()

    first.submit(one)
    with pytest.raises(jpsi.SubmitException, match="by another process in the meantime"):
        second.submit(other)

    status = one.wait(PATIENCE)
    assert status is not None
    assert status.exit_code == 3, status
    assert proof.read_text() == "ran\n"


def test_an_attempt_with_an_incomplete_intent_is_made_again(
    config: jpsi.ExecutorConfig, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    run_client(CLIENT, *BEFORE_SPAWN, config.work_directory, proof, "/dev/null")
    assert config.work_directory is not None
    (folder,) = config.work_directory.glob("local/*/jobs/*")
    (folder / "intent.2.json").write_text('{"id": "')
    executor = JobExecutor("local", config=config)

    (job,) = executor.recover()
    assert job.status.state is JobState.NEW
    executor.submit(job)
    status = job.wait(PATIENCE)

    assert status is not None
    assert status.exit_code == 3
    assert proof.read_text() == "ran\n"


def test_a_recovered_job_can_be_submitted_again_after_a_failure(
    config: jpsi.ExecutorConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = tmp_path / "proof"
    run_client(CLIENT, *BEFORE_SPAWN, config.work_directory, proof, "/dev/null")
    executor = JobExecutor("local", config=config)
    (job,) = executor.recover()

    def refuse(*_: object) -> int:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    with monkeypatch.context() as patch:
        patch.setattr("jpsi_engine.local.starter._JOBS_BEFORE", math.inf)
        patch.setattr("jpsi_engine.local.local_engine.spawn", refuse)
        for _ in range(2):
            with pytest.raises(jpsi.SubmitException) as caught:
                executor.submit(job)
            assert caught.value.transient
    executor.submit(job)

    status = job.wait(PATIENCE)
    assert status is not None
    assert status.exit_code == 3
    assert proof.read_text() == "ran\n"


def test_a_job_recovered_twice_is_published_once(config: jpsi.ExecutorConfig, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    run_client(CLIENT, *BEFORE_SPAWN, config.work_directory, proof, "/dev/null")
    executor = JobExecutor("local", config=config)
    (one,), (other,) = executor.recover(), executor.recover()

    executor.submit(one)
    with pytest.raises(jpsi.SubmitException):
        executor.submit(other)

    assert one.wait(PATIENCE) is not None


def test_the_recorded_end_is_published_by_other_clients(
    executor: JobExecutor, config: jpsi.ExecutorConfig, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    job = Job(JobSpec("/bin/sh", ["-c", f"echo >'{fifo}'; exec sleep 1000"]))
    executor.submit(job)
    fifo.read_text()
    assert job.native_id is not None
    os.kill(int(job.native_id.partition(".")[0]), signal.SIGKILL)
    first = job.wait(PATIENCE)
    other = Job()

    JobExecutor("local", config=config).attach(other, job.native_id)
    second = other.wait(PATIENCE)

    assert first is not None
    assert second is not None
    assert (second.reason, second.exit_code) == (first.reason, first.exit_code) == (Reason.SIGNAL, 137)


def test_a_job_just_submitted_can_be_attached(executor: JobExecutor, config: jpsi.ExecutorConfig) -> None:
    other = JobExecutor("local", config=config)
    for _ in range(10):
        job, attached = Job(JobSpec("/bin/sh", ["-c", "exit 6"])), Job()
        executor.submit(job)
        assert job.native_id is not None
        other.attach(attached, job.native_id)

        status = attached.wait(PATIENCE)

        assert status is not None
        assert status.exit_code == 6


def test_unknown_files_are_ignored(executor: JobExecutor, state_home: Path) -> None:
    done = Job(JobSpec("/bin/true"))
    executor.submit(done)
    done.wait(PATIENCE)
    (jobs,) = state_home.glob("work/local/*/jobs")
    (jobs / "stray").write_text("")
    (jobs / "empty").mkdir()
    (jobs / "torn").mkdir()
    (jobs / "torn" / "intent.1.json").write_text('{"id": "to')
    (jobs.parent / "events" / "nonsense.x.exit").write_text("")

    assert executor.recover() == []

"""Jobs of a real Slurm behind a real sshd, with lost connections, and many jobs at once."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import attrs
import pytest

from conftest import SMALL, random_file, servers
from jpsi import Job, JobAttributes, JobExecutor, JobState, StageIn, StageOut, StagingMode, SubmitException
from jpsi_slurm import SlurmConfig
from jpsi_testing.conformance.base import Gate, Proof, shell
from jpsi_testing.conformance.recovery import client
from jpsi_testing.waiting import eventually

pytestmark = [
    pytest.mark.skipif(shutil.which("sbatch") is None, reason="there is no sbatch on PATH"),
    # Tests cut all connections of the user.
    pytest.mark.alone,
]

TIMEOUT_SECONDS = 120.0
_URL = "ssh://cluster"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmConfig:
    """Return a configuration whose grace ends long before a lost connection returns."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state here"))
    return SlurmConfig(
        work_directory=tmp_path / "work",
        shortest_interval=timedelta(seconds=0.2),
        longest_interval=timedelta(seconds=0.5),
        grace=timedelta(seconds=1),
        command_timeout=timedelta(seconds=20),
    )


@pytest.fixture
def executor(config: SlurmConfig, runtime: Path) -> Iterator[JobExecutor]:
    with JobExecutor.get_instance("slurm", url=_URL, config=config) as executor:
        yield executor


@pytest.fixture(params=[3.0, pytest.param(60.0, marks=pytest.mark.long)])
def cut_seconds(request: pytest.FixtureRequest) -> float:
    """Return the seconds for which connections are cut."""
    seconds: float = request.param
    return seconds


@contextmanager
def cut() -> Iterator[None]:
    """Cut all existing connections, before the block begins, and new ones as long as it runs."""
    is_over = threading.Event()

    def kill_servers() -> None:
        for pid in servers():
            # a process may be gone already, or still belong to root
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def cutting() -> None:
        while not is_over.wait(0.02):
            kill_servers()

    kill_servers()
    thread = threading.Thread(target=cutting)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _end(job: Job) -> int | None:
    status = job.wait(TIMEOUT_SECONDS)
    assert status is not None, f"{job!r} has not ended"
    return status.exit_code


def _submit(executor: JobExecutor, job: Job) -> None:
    """Submit a job with retries; a job that runs with an unknown outcome of its submission stays NEW."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            executor.submit(job)
        except SubmitException as e:
            if "runs already" in str(e):
                return
            if not e.transient or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def _known(executor: JobExecutor, jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs; those with an unknown outcome of their submission are recovered from disk."""
    unknown = [job.id for job in jobs if job.status.state is JobState.NEW]
    found = {job.id: job for job in executor.recall(unknown)}
    return [found.get(job.id, job) for job in jobs]


@pytest.mark.parametrize("is_cut", [False, True], ids=["at once", "while the connection is cut"])
def test_a_job_is_submitted_again_until_it_succeeds(
    executor: JobExecutor, tmp_path: Path, is_cut: bool
) -> None:
    runs = tmp_path / "runs"
    text = 'echo ran >>"$1"; test "$(wc -l <"$1")" -ge 3 || exit 75'
    job = Job(shell(text, runs, attributes=JobAttributes(retry={75: 4})))
    _submit(executor, job)
    if is_cut:
        assert eventually(runs.exists)
        with cut():
            time.sleep(2)

    assert _end(job) == 0
    assert job.status.metadata["attempt"] == 3
    assert runs.read_text() == "ran\n" * 3


def test_a_connection_lost_while_a_job_runs_loses_nothing(
    executor: JobExecutor, tmp_path: Path, cut_seconds: float
) -> None:
    gates = [Gate(tmp_path / f"gate{number}") for number in range(2)]
    proofs = [Proof(tmp_path / f"proof{number}") for number in range(2)]
    jobs = [
        Job(shell(f"{Gate.WAIT}; shift; {Proof.WRITE}; exit $2", gate.path, proof.path, code))
        for gate, proof, code in zip(gates, proofs, (7, 8), strict=True)
    ]
    for job in jobs:
        executor.submit(job)
    for job in jobs:
        assert job.wait(TIMEOUT_SECONDS, target_states=JobState.ACTIVE)

    with cut():
        gates[0].open()
        assert jobs[0].wait(cut_seconds) is None
        assert [job.status.state for job in jobs] == [JobState.ACTIVE] * 2

    assert _end(jobs[0]) == 7
    gates[1].open()
    assert _end(jobs[1]) == 8
    assert [proof.runs for proof in proofs] == [1, 1]


def test_a_connection_lost_during_submission_runs_each_job_once(
    executor: JobExecutor, tmp_path: Path, cut_seconds: float
) -> None:
    jobs = [Job(Proof(tmp_path / f"proof{number}").job(number)) for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        submitting = [pool.submit(_submit, executor, job) for job in jobs]
        assert eventually(lambda: any(it.done() for it in submitting))
        with cut():
            time.sleep(cut_seconds)
        for it in submitting:
            it.result()

    assert [_end(job) for job in _known(executor, jobs)] == list(range(12))
    assert [Proof(tmp_path / f"proof{number}").runs for number in range(12)] == [1] * 12


def test_jobs_of_a_killed_client_are_recovered_on_another_host(
    config: SlurmConfig, tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, proofs = Gate(tmp_path / "gate"), [Proof(tmp_path / f"proof{code}") for code in range(3)]
    text = f"{Proof.WRITE}; shift; {Gate.WAIT}; exit $2"
    specs = [shell(text, proof.path, gate.path, code) for code, proof in enumerate(proofs)]
    with client("slurm", config, specs, url=_URL) as process:
        assert process.stdout is not None
        *ids, done = [process.stdout.readline().decode().strip() for _ in range(4)]
        process.kill()
    assert done == "done"
    # a client on another host cannot know earlier whether they are still in submission
    assert eventually(lambda: all(proof.runs for proof in proofs))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state of another machine"))

    with JobExecutor.get_instance("slurm", url=_URL, config=config) as executor:
        jobs = {job.id: job for job in executor.recover()}
        gate.open()

        assert [_end(jobs[job_id]) for job_id in ids] == [0, 1, 2]
        assert not executor.recover()
    assert [proof.runs for proof in proofs] == [1, 1, 1]


@pytest.mark.skipif(not SMALL.is_mount(), reason="ci/sshd/up could not make a small file system")
def test_a_full_remote_disk_is_reported_and_loses_no_job(
    config: SlurmConfig, runtime: Path, tmp_path: Path
) -> None:
    place = Path(tempfile.mkdtemp(dir=SMALL))
    gate, begun, proof = Gate(tmp_path / "gate"), Proof(tmp_path / "begun"), Proof(tmp_path / "proof")
    runs = Job(shell(f"{Proof.WRITE}; shift; {Gate.WAIT}; exit 7", begun.path, gate.path))
    waits, filler = Job(proof.job(8)), place / "filler"
    config = attrs.evolve(config, work_directory=place / "work")
    try:
        with JobExecutor.get_instance("slurm", url=_URL, config=config) as executor:
            executor.submit(runs)
            assert eventually(lambda: begun.runs == 1)
            subprocess.run(["sh", "-c", 'cat /dev/zero >"$0"', filler], stderr=subprocess.PIPE, check=False)

            with pytest.raises(SubmitException, match="No space left on device") as raised:
                executor.submit(waits)
            gate.open()
            code = _end(runs)
            filler.unlink()
            executor.submit(waits)

            assert raised.value.transient
            assert (code, _end(waits)) == (7, 8)
            assert (begun.runs, proof.runs) == (1, 1)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_two_hundred_jobs_are_submitted_together_over_one_connection(
    executor: JobExecutor, tmp_path: Path
) -> None:
    before = servers()
    jobs = [Job(Proof(tmp_path / f"proof{number}").job(number % 5)) for number in range(200)]

    with ThreadPoolExecutor(200) as pool:
        list(pool.map(executor.submit, jobs))

    assert len(servers()) - len(before) == 1
    assert [_end(job) for job in jobs] == [number % 5 for number in range(200)]
    assert {Proof(tmp_path / f"proof{number}").runs for number in range(200)} == {1}


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@pytest.mark.parametrize(
    "size",
    [pytest.param(20_000_000, id="small"), pytest.param(1 << 30, id="a gigabyte", marks=pytest.mark.long)],
)
def test_files_are_staged_in_and_out_with_their_checksums(
    executor: JobExecutor, tmp_path: Path, size: int
) -> None:
    digest = random_file(tmp_path / "source", size)
    job = Job(
        shell(
            "sha256sum source >sum",
            directory=tmp_path / "run",
            create_directory=True,
            stage_in=[StageIn(str(tmp_path / "source"), Path("source"), StagingMode.MOVE)],
            stage_out=[
                StageOut(Path("source"), f"{tmp_path}/back", mode=StagingMode.MOVE),
                StageOut(Path("sum"), f"{tmp_path}/sum"),
            ],
            cleanup=[Path("sum")],
        )
    )
    executor.submit(job)

    # the transfer of a gigabyte takes as long as this host needs
    status = job.wait(10 * TIMEOUT_SECONDS)

    assert status is not None
    assert status.state is JobState.COMPLETED, status
    assert (tmp_path / "sum").read_text().split()[0] == digest
    assert _checksum(tmp_path / "back") == digest
    assert not list((tmp_path / "run").iterdir())
    assert not list((tmp_path / "work").glob("*/staged/*"))


def test_a_connection_lost_during_staging_loses_no_file(
    executor: JobExecutor, tmp_path: Path, cut_seconds: float
) -> None:
    digest, gate = random_file(tmp_path / "source", 20_000_000), Gate(tmp_path / "gate")
    job = Job(
        shell(
            Gate.WAIT,
            gate.path,
            directory=tmp_path / "run",
            create_directory=True,
            stage_in=[StageIn(str(tmp_path / "source"), Path("source"))],
            stage_out=[StageOut(Path("source"), f"{tmp_path}/back")],
        )
    )
    with ThreadPoolExecutor(1) as pool:
        submitting = pool.submit(_submit, executor, job)
        begun = (tmp_path / "work").glob
        assert eventually(lambda: submitting.done() or any(begun("*/staged/*/in.*/.jpsi-*")))
        with cut():
            time.sleep(cut_seconds)
        submitting.result()
    (job,) = _known(executor, [job])
    assert job.wait(TIMEOUT_SECONDS, target_states=JobState.ACTIVE)

    gate.open()
    assert eventually(lambda: job.status.final or any(begun("*/staged/*/out.*/*")))
    with cut():
        job.wait(cut_seconds)

    assert _end(job) == 0
    assert _checksum(tmp_path / "back") == digest

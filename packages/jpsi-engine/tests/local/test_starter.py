"""Programs that a process starts which outlives the client: the same jobs, and what its death costs."""

from __future__ import annotations

import ctypes
import fcntl
import math
import os
import re
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import jpsi
from jpsi import Evidence, Job, JobExecutor, JobSpec, JobState, Reason
from jpsi_engine.local import job_starter, starter
from jpsi_testing.waiting import eventually
from killed_starter import KILLED
from manual_executor import PATIENCE

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")


@pytest.fixture(autouse=True)
def own_starter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a new process start programs from the first job on."""
    monkeypatch.setattr(starter, "_JOBS_BEFORE", 0)
    monkeypatch.setattr(starter, "_READY_SECONDS", PATIENCE)
    monkeypatch.setattr(starter, "_shared", None)
    yield
    if starter._shared is not None:
        starter._shared.retire()


@pytest.fixture
def proof(tmp_path: Path) -> Path:
    path = tmp_path / "proof"
    path.touch()
    os.mkfifo(tmp_path / "fifo")
    return path


def waiting(proof: Path) -> Job:
    """Return a job that leaves proof of each run, waits for a line in a pipe, and exits with 3."""
    command = 'echo ran >>"$1"; read x <"$2"; exit 3'
    return Job(JobSpec("/bin/sh", ["-c", command, "sh", str(proof), str(proof.with_name("fifo"))]))


def release(proof: Path) -> int:
    """Let every such job go on, for as long as the descriptor is open."""
    writer = os.open(proof.with_name("fifo"), os.O_RDWR)
    os.write(writer, b"\n" * 10)
    return writer


def starter_pid() -> int:
    """Return the pid of the process that starts programs for this one."""
    assert starter._shared is not None
    found = subprocess.run(
        ["pgrep", "-f", f"{Path(job_starter.__file__).parent}$"], check=True, capture_output=True, text=True
    ).stdout.split()
    return max(map(int, found))


STEPS = [
    # it has made no claim: a shell runs the job
    ("module.Starter", "_start", "before", 1, 1),
    ("module", "_write_new", "before", 1, 1),
    # it may have run it, for all that a client can know
    ("module", "_write_new", "after", 1, 0),
    ("module.Starter", "_spawn", "before", 1, 0),
    # it runs, and is found by its variable
    ("module.Starter", "_spawn", "after", 1, 1),
    ("os", "ftruncate", "never", 1, 1),
    # it runs, and the intent has its native id
    ("module.Starter", "_start", "after", 1, 1),
    ("module.Starter", "_note", "before", 1, 1),
    # its markers are there
    ("module.Starter", "_note", "after", 1, 1),
    ("os", "waitpid", "after", 1, 1),
]


@pytest.mark.parametrize(("owner", "name", "when", "calls", "runs"), STEPS)
def test_a_starter_killed_at_any_step_runs_no_job_twice_and_no_end_is_guessed(
    executor: JobExecutor,
    config: jpsi.ExecutorConfig,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    proof: Path,
    owner: str,
    name: str,
    when: str,
    calls: int,
    runs: int,
) -> None:
    program = tmp_path / "killed.py"
    path = job_starter.__file__
    program.write_text(KILLED.format(path=path, owner=owner, name=name, when=when, calls=calls))
    monkeypatch.setattr(job_starter, "__file__", str(program))
    job = waiting(proof)

    executor.submit(job)
    writer = release(proof)
    status = job.wait(PATIENCE)
    os.close(writer)

    assert status is not None
    # a kernel tells the exit code of a process of another parent since Linux 6.15
    is_lost = (status.reason, status.exit_code) == (Reason.LOST, None)
    assert status.state is JobState.FAILED
    assert status.exit_code == 3 or is_lost
    assert is_lost or runs
    assert proof.read_text() == "ran\n" * runs
    assert JobExecutor("local", config=config).recover() == []


def test_jobs_of_a_killed_starter_go_on_and_the_next_job_gets_another(
    executor: JobExecutor, proof: Path
) -> None:
    job, other = waiting(proof), Job(JobSpec("/bin/true"))
    executor.submit(job)
    first = starter_pid()

    os.kill(first, signal.SIGKILL)
    executor.submit(other)

    assert other.wait(PATIENCE) is not None
    assert other.status.evidence is Evidence.MARKER
    assert job.status.state is JobState.ACTIVE
    job.cancel()
    status = job.wait(PATIENCE)
    assert status is not None
    assert status.state is JobState.CANCELED


CLIENT = """
import jpsi, sys
from jpsi_engine.local import starter
starter._JOBS_BEFORE, starter._READY_SECONDS = 0, 30
executor = jpsi.JobExecutor("local", config=jpsi.ExecutorConfig(work_directory=sys.argv[1]))
command = 'echo ran >>"$1"; read x <"$2"; exit 3'
job = jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", command, "sh", *sys.argv[2:]]))
executor.submit(job)
print(job.native_id, flush=True)
job.wait()
"""


def start_client(config: jpsi.ExecutorConfig, proof: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a client that submits a waiting job; return it and the native id of the job."""
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(config.work_directory), proof, proof.with_name("fifo")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert client.stdout is not None
    return client, client.stdout.readline().strip()


@pytest.mark.parametrize("also_starter", [False, True], ids=["client", "both"])
def test_the_jobs_of_a_killed_client_are_found(
    config: jpsi.ExecutorConfig, proof: Path, also_starter: bool
) -> None:
    client, native_id = start_client(config, proof)
    if also_starter:
        os.kill(starter_of(native_id), signal.SIGKILL)
    client.kill()
    client.communicate()

    (job,) = JobExecutor("local", config=config).recover()
    writer = release(proof)
    status = job.wait(PATIENCE)
    os.close(writer)

    assert job.native_id == native_id
    assert status is not None
    assert status.exit_code == 3 or (also_starter and status.reason is Reason.LOST)
    assert also_starter or status.evidence is Evidence.MARKER
    assert proof.read_text() == "ran\n"


_SET_CHILD_SUBREAPER = 36


@pytest.fixture
def uncollected() -> Iterator[list[int]]:
    """Have orphans become zombies of this process, like those of many a container.

    Yields the pids that are collected after the test.
    """
    pids: list[int] = []
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield pids
    finally:
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def end_uncollected(native_id: str, proof: Path, uncollected: list[int]) -> None:
    """Let a job whose starter was killed end, and become a zombie of this process."""
    starter, pid = uncollected[0], int(native_id.partition(".")[0])
    os.kill(starter, signal.SIGKILL)
    assert eventually(lambda: starter_of(native_id) == os.getpid())
    uncollected.append(pid)
    writer = release(proof)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    os.close(writer)


@linux
def test_a_job_that_nobody_collects_after_its_starter_ends(
    executor: JobExecutor, proof: Path, uncollected: list[int]
) -> None:
    job = waiting(proof)
    executor.submit(job)
    uncollected.append(starter_of(job.native_id or ""))

    end_uncollected(job.native_id or "", proof, uncollected)
    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.reason, status.exit_code) == (JobState.FAILED, Reason.LOST, None)


@linux
def test_a_job_that_nobody_collects_after_its_starter_and_its_client_is_found(
    config: jpsi.ExecutorConfig, proof: Path, uncollected: list[int]
) -> None:
    client, native_id = start_client(config, proof)
    uncollected.append(starter_of(native_id))
    client.kill()
    client.communicate()

    end_uncollected(native_id, proof, uncollected)
    (job,) = JobExecutor("local", config=config).recover()
    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.reason, status.exit_code) == (JobState.FAILED, Reason.LOST, None)


def starter_of(native_id: str) -> int:
    """Return the parent of a job's process."""
    pid = native_id.partition(".")[0]
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


LOOK = """
umask; pwd; echo "$PWD"; readlink /proc/self/fd/0; ls /proc/$$/fd
grep -E 'SigIgn|SigBlk' /proc/self/status; env | grep -v -E '^(_|OLDPWD|JPSI_JOB_ID)=' | sort
ps -o sid=,pgid= -p $$ | tr -d ' \n' | grep -c .; echo error >&2; ulimit -n
"""


def test_a_program_starts_like_one_that_a_shell_starts(
    executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "a b\n$c")
    monkeypatch.setenv("JPSI_NODEFILE", "/of/another/job")
    monkeypatch.setenv("UNWANTED", "x")
    before = os.umask(0o027)
    outputs = []
    try:
        for jobs_before in (0, 9):
            monkeypatch.setattr(starter, "_JOBS_BEFORE", jobs_before)
            monkeypatch.setattr(starter, "_jobs", 0)
            spec = JobSpec("/bin/sh", ["-c", LOOK], directory=tmp_path)
            spec.environment = {"UNWANTED": None, "X": "$1"}
            spec.stdout_path, spec.stderr_path = Path("out"), Path("both")
            job = Job(spec)
            executor.submit(job)
            assert job.wait(PATIENCE) is not None
            made = [(tmp_path / name).stat().st_mode for name in ("out", "both")]
            outputs.append([(tmp_path / name).read_text() for name in ("out", "both")] + made)
            (tmp_path / "out").unlink()
            (tmp_path / "both").unlink()
    finally:
        os.umask(before)

    assert outputs[0] == outputs[1]
    assert "MINE=a b" in str(outputs[0][0])


@pytest.mark.parametrize(
    "change",
    [
        {"directory": "."},
        {"stdin_path": "/dev/null"},
        {"environment": {"A": "${HOME}"}},
        {"arguments": ["${HOME}"]},
        {"inherit_environment": False},
        {"stdout_path": "pipe"},
        {"executable": "script"},
        {"executable": "missing"},
        {"create_directory": True},
    ],
    ids=lambda it: next(iter(it)),
)
def test_other_jobs_are_run_by_a_shell(
    executor: JobExecutor, tmp_path: Path, state_home: Path, change: dict[str, object]
) -> None:
    (tmp_path / "link").symlink_to("/usr/bin")
    script = tmp_path / "script"
    script.write_text("exit 0\n")
    script.chmod(0o700)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    fields: dict[str, object] = {"directory": tmp_path, **change}
    if change.get("directory"):
        fields["directory"] = f"{tmp_path}/link/.."
    if change.get("executable") == "script":
        fields["executable"] = "./script"
    job = Job(JobSpec(**{"executable": "/bin/true", **fields}))  # type: ignore[arg-type]

    executor.submit(job)
    status = job.wait(PATIENCE)
    os.close(reader)

    assert status is not None
    assert status.exit_code == (127 if change.get("executable") == "missing" else 0)
    assert list(state_home.glob(f"work/local/*/jobs/{job.id}/run.1"))


def test_a_program_inherits_what_this_process_has_now(executor: JobExecutor, tmp_path: Path) -> None:
    """Another process starts it then, as the one before has what this process had."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    limits = []
    for limit in (0, 512):
        resource.setrlimit(resource.RLIMIT_CORE, (limit, hard))
        job = Job(JobSpec("/bin/sh", ["-c", "ulimit -c"], stdout_path=tmp_path / "out"))
        executor.submit(job)
        assert job.wait(PATIENCE) is not None
        limits.append((tmp_path / "out").read_text())
        assert job.streams is not None
        assert not list(job.streams.stderr.parent.glob("run.*"))
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))

    assert limits == ["0\n", "1\n"]


def test_a_job_that_is_cancelled_leaves_the_marker_of_the_signal(
    executor: JobExecutor, state_home: Path, proof: Path
) -> None:
    job = waiting(proof)
    executor.submit(job)
    while not proof.read_text():
        pass

    job.cancel()
    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.exit_code, status.evidence) == (JobState.CANCELED, 143, Evidence.MARKER)
    names = {it.name for it in state_home.glob(f"work/local/*/jobs/{job.id}/{job.id}.*")}
    # without what it has used
    markers = {re.sub(r"run(-\d+)+", "run", it) for it in names}
    assert markers == {f"{job.id}.1.signalled", f"{job.id}.1.exit.run.143"}


def test_what_a_program_has_used_is_known(executor: JobExecutor) -> None:
    size = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) + (32 << 20)
    fill = f"b = bytearray({size})\nfor i in range(0, {size}, 4096): b[i] = 1\n"
    job = Job(JobSpec(sys.executable, ["-c", f"{fill}import time\nwhile time.process_time() < 0.3: pass"]))

    executor.submit(job)
    status = job.wait(PATIENCE)

    assert status is not None
    assert 0.3 <= status.metadata["used.cpu"] < 3
    assert size <= status.metadata["used.process_memory"] < size * 1.1 + (16 << 20)


def test_a_job_that_catches_the_signal_of_its_cancel_is_cancelled(executor: JobExecutor, proof: Path) -> None:
    """Its exit code alone would say that it has ended by itself."""
    command = "trap 'exit 0' TERM; echo ran >>\"$1\"; while :; do sleep 0.01; done"
    job = Job(JobSpec("/bin/sh", ["-c", command, "sh", str(proof)]))
    executor.submit(job)
    while not proof.read_text():
        pass

    job.cancel()
    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.exit_code) == (JobState.CANCELED, 0)


def test_a_single_job_costs_no_second_process(executor: JobExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starter, "_JOBS_BEFORE", 1)
    monkeypatch.setattr(starter, "_jobs", 0)
    job = Job(JobSpec("/bin/true"))

    executor.submit(job)

    assert job.wait(PATIENCE) is not None
    assert starter._shared is None


def test_a_forked_child_has_its_own_starter(executor: JobExecutor) -> None:
    first = Job(JobSpec("/bin/true"))
    executor.submit(first)
    assert first.wait(PATIENCE) is not None
    assert starter._shared is not None
    pid = os.fork()
    if pid == 0:
        os._exit(7 if starter._shared is None else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    job = Job(JobSpec("/bin/true"))
    executor.submit(job)
    assert job.wait(PATIENCE) is not None
    assert job.status.evidence is Evidence.MARKER


def test_the_starter_keeps_no_descriptor_of_this_process_open(
    executor: JobExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe that it kept would not end before it."""
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    # as if it was made right after the scan for such descriptors
    monkeypatch.setattr("jpsi_engine.local.spawn._scanned", math.inf)
    monkeypatch.setattr("jpsi_engine.local.spawn._inherited", ())
    job = Job(JobSpec("/bin/true"))

    executor.submit(job)
    assert job.wait(PATIENCE) is not None
    os.close(writer)

    assert select.select([reader], [], [], 1.0)[0], "another process has the pipe"
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_directory_is_the_one_that_its_path_names_now(
    executor: JobExecutor, tmp_path: Path, proof: Path
) -> None:
    """Since the last job, a link leads to another one; a job that runs keeps the starter where it is."""
    current = tmp_path / "current"
    executor.submit(long := waiting(proof))
    for version in ("1", "2"):
        (tmp_path / version).mkdir()
        current.unlink(missing_ok=True)
        current.symlink_to(tmp_path / version)
        executor.submit(job := Job(JobSpec("/bin/sh", ["-c", "echo here > file"], directory=current)))
        status = job.wait(PATIENCE)
        assert status is not None
        assert status.state is JobState.COMPLETED

    long.cancel()
    assert (tmp_path / "2/file").read_text() == "here\n"


def test_descriptors_with_large_numbers_keep_no_job_from_its_start(executor: JobExecutor) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < 2000:
        pytest.skip("this process may not open so many files")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, most))
    opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        starter._shared = None
        jobs = [Job(JobSpec("/bin/true")) for _ in range(3)]
        for job in jobs:
            executor.submit(job)
        states = [status.state for job in jobs if (status := job.wait(PATIENCE)) is not None]
    finally:
        for fd in opened:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    assert states == [JobState.COMPLETED] * 3


def test_jobs_do_without_a_starter_that_cannot_run(
    executor: JobExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starter, "_shared", None)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    begun: list[object] = []
    monkeypatch.setattr(
        starter, "Starter", lambda state, make=starter.Starter: begun.append(state) or make(state)
    )
    jobs = [Job(JobSpec("/bin/true")) for _ in range(4)]

    for job in jobs:
        executor.submit(job)

    assert [status.state for job in jobs if (status := job.wait(PATIENCE))] == [JobState.COMPLETED] * 4
    assert len(begun) == 1


def test_a_job_that_is_being_started_is_not_lost_to_another_client(
    executor: JobExecutor, state_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the claim and the native id, only the lock tells that the program is starting."""
    job = Job(JobSpec("/bin/true"))
    executor.submit(job)
    job.wait(PATIENCE)
    (folder,) = state_home.glob(f"work/local/*/jobs/{job.id}")
    intent = folder / "intent.1.json"
    intent.write_text(intent.read_text().splitlines()[0])
    for file in (*folder.glob(f"{job.id}.*"), *folder.glob("final.*")):
        file.unlink()
    monkeypatch.setattr("jpsi_engine.local.local_engine._JUDGE_SECONDS", 0.2)

    with intent.open() as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        assert executor.recover() == []

    (recovered,) = executor.recover()
    status = recovered.wait(PATIENCE)
    assert status is not None
    assert status.reason is Reason.LOST

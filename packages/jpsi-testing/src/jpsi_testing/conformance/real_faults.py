"""Tests of faults on a real batch system: its server dies, its commands answer wrongly, clients are killed.

`e2e` tests of a backend inherit `RealFaultTests`. No job may be lost, run twice or get a wrong exit code.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import attrs
import pytest

from jpsi import Job, JobExecutor, JobState, SubmitException
from jpsi.plugin import Reason
from jpsi_testing.conformance.base import Gate, shell
from jpsi_testing.waiting import eventually

_Value = TypeVar("_Value")

#: The grace period of the executors of these tests, in seconds.
GRACE = 3.0

# A job that runs twice may begin late: proofs count once none has come for so many seconds.
_SETTLED = 5.0

# The exit code of a job that TERM has ended; no job has it as its own.
_TERMINATED = 128 + signal.SIGTERM

# Stands for a command on PATH, and does what the file beside it says.
_COMMAND = """\
#!/bin/sh
case "$1" in
FIRST) ;;
*) exec REAL "$@" ;;
esac
echo "$*" >>"DIRECTORY/calls"
read -r fault <"DIRECTORY/fault"
case $fault in
hangs) exec sleep 30 ;;
empty) exit 0 ;;
fails) echo 'no answer' >&2; exit 1 ;;
garbled) REAL "$@" | tr '0-9<>{' '1-90ab[' ;;
cut) REAL "$@" | head -c 700 ;;
*) exec REAL "$@" ;;
esac
"""

# Submits many jobs at once, or finds them again; each proves that it ran, and has its own exit code. None
# ends before the second client, which does not find jobs whose end the first one has seen.
_CLIENT = r"""
import sys
from pathlib import Path

import jpsi

root, what, name, count = Path(sys.argv[1]), *sys.argv[2:]
executor = jpsi.JobExecutor.get_instance(name)
text = 'echo "$1" >>"$2"; while [ ! -e "$3" ]; do sleep 0.1; done; exit "$1"'
if what == "submit":
    specs = [["-c", text, "sh", str(it), f"{root}/proof", f"{root}/gate"] for it in range(int(count))]
    print("begun", flush=True)
    executor.submit_many([jpsi.Job(jpsi.JobSpec("/bin/sh", spec)) for spec in specs])
else:
    jobs = executor.recover()
    Path(root, "gate").touch()
    executor.submit_many(job for job in jobs if job.status.state is jpsi.JobState.NEW)
    for job in jobs:
        status = job.wait(300)
        print(job.spec.arguments[3], None if status is None else status.exit_code, flush=True)
"""

_INTERVALS = {"shortest_interval": "0.5s", "longest_interval": "1s", "grace": "15s"}
_CLIENT_SETTINGS = {"array_size": 20, **_INTERVALS}


class NumberedJobs:
    """Jobs that prove their runs, and end with exit codes of their own once the gate is open."""

    def __init__(self, directory: Path) -> None:
        self.gate, self._proof = Gate(directory / "gate"), directory / "proof"

    def job(self, number: int) -> Job:
        """Return the job with this number."""
        text = f'echo "$2" >>"$3"; {Gate.WAIT}; exit "$2"'
        return Job(shell(text, self.gate.path, number, self._proof))

    @property
    def runs(self) -> list[int]:
        """The numbers of the jobs that have begun, as often as they did."""
        return sorted(map(int, _words(self._proof)))

    def settled_runs(self) -> list[int]:
        """Return the same, once no job has begun for some seconds."""
        return _settled(lambda: self.runs)


class RealFaultTests:
    """The tests, for a class with the fixture `executor`, whose grace period is `GRACE`."""

    #: The commands that report on jobs, and for each its first argument when it does, as a shell pattern.
    status_commands: ClassVar[dict[str, str]]
    #: The configuration of the executor of the client that is killed, as in a configuration file, besides
    #: short intervals.
    client_settings: ClassVar[Mapping[str, Any]] = {}
    #: False if jobs end with the server, or it forgets them: some may be FAILED with the exit code of TERM,
    #: or with `Reason.LOST`.
    jobs_outlive_server: ClassVar[bool] = True
    #: True if a server that is killed may forget a job whose id it has just given: that never runs.
    forgets_new_jobs: ClassVar[bool] = False
    #: The longest time for something that must happen, in seconds.
    patience: ClassVar[float] = 300.0
    #: The number of jobs that a server has when it is killed, and of those that are submitted meanwhile; with
    #: `--long` and without.
    server_jobs: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((50, 20), (50, 20))
    #: How often a client is killed, with `--long` and without.
    client_rounds: ClassVar[tuple[int, int]] = (100, 5)
    #: The longest time between the beginning of its submission and its end, in seconds.
    client_seconds: ClassVar[float] = 1.5
    #: The number of jobs that it submits.
    client_jobs: ClassVar[int] = 60

    @pytest.fixture
    def control(self) -> Callable[[str], None]:
        """Return a function that kills (`kill`) and starts (`start`) the server; skip the test without it."""
        path = os.environ.get("JPSI_CI_CONTROL")
        if path is None:
            pytest.skip("no process that may kill the server listens at JPSI_CI_CONTROL")

        def send(verb: str) -> None:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                client.sendall(verb.encode() + b"\n")
                assert client.makefile().readline().strip() == "0", verb

        return send

    @pytest.fixture
    def faulty(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Put commands on PATH that have the fault that a file says, and return the directory of that."""
        directory = tmp_path / "bin"
        directory.mkdir()
        (directory / "fault").write_text("none\n")
        (directory / "calls").touch()
        for name, first in self.status_commands.items():
            text = _COMMAND.replace("REAL", shutil.which(name) or name).replace("FIRST", first)
            (directory / name).write_text(text.replace("DIRECTORY", str(directory)))
            (directory / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
        return directory

    def is_stuck(self, executor: JobExecutor, job: Job) -> bool:
        """Return True if a job never ends as its server was killed, which is the server's own mistake."""
        del executor, job
        return False

    def _exit_codes(self, jobs: list[Job]) -> list[int | None]:
        statuses = [job.wait(self.patience) for job in jobs]
        return [None if status is None else status.exit_code for status in statuses]

    @pytest.mark.parametrize("fault", ["garbled", "cut", "empty", "hangs", "fails"])
    def test_a_wrong_answer_changes_no_outcome(
        self, faulty: Path, executor: JobExecutor, tmp_path: Path, fault: str
    ) -> None:
        """The fault begins while jobs run, lasts for longer than the grace period, and they end meanwhile."""
        jobs = NumberedJobs(tmp_path)
        members = [jobs.job(number) for number in range(12)]
        executor.submit_many(members[:9])
        for it in members[9:]:
            executor.submit(it)
        assert eventually(lambda: len(jobs.runs) > 2, self.patience)
        calls = faulty / "calls"

        before = len(calls.read_text().splitlines())
        (faulty / "fault").write_text(f"{fault}\n")
        time.sleep(3 * GRACE)
        jobs.gate.open()
        time.sleep(3 * GRACE)

        assert len(calls.read_text().splitlines()) > before
        assert all(it.status.exit_code in {None, number} for number, it in enumerate(members))
        (faulty / "fault").write_text("none\n")
        assert self._exit_codes(members) == list(range(12))
        assert jobs.settled_runs() == list(range(12))

    @pytest.mark.alone
    @pytest.mark.parametrize("round_", range(2))
    def test_a_killed_server_loses_no_job(
        self,
        executor: JobExecutor,
        control: Callable[[str], None],
        tmp_path: Path,
        round_: int,
        pytestconfig: pytest.Config,
    ) -> None:
        """The server is killed with -9 and started again while jobs are there and others are submitted."""
        jobs = NumberedJobs(tmp_path)
        first, later = _of_form(self.server_jobs, pytestconfig)
        members = [jobs.job(number) for number in range(first + later)]
        executor.submit_many(members[:first])
        members[0].wait(self.patience, target_states=JobState.ACTIVE)
        errors: list[str] = []
        threads = [
            threading.Thread(target=_submit_patiently, args=[executor, it, errors]) for it in members[first:]
        ]
        for thread in threads[: later // 2]:
            thread.start()
        time.sleep(0.1 * round_)
        control("kill")
        for thread in threads[later // 2 :]:
            thread.start()
        time.sleep(5)
        control("start")
        for thread in threads:
            thread.join(self.patience)
        jobs.gate.open()

        codes = self._exit_codes([it for it in members if not self.is_stuck(executor, it)])
        runs = jobs.settled_runs()
        stuck = [number for number, it in enumerate(members) if not it.status.final]
        lost = [number for number, it in enumerate(members) if _is_lost(it)]
        others = [number for number in range(len(members)) if number not in stuck + lost]
        assert len(stuck) <= 1, errors
        forgotten = [number for number in lost if number >= first and number not in runs]
        expected = forgotten if self.forgets_new_jobs else []
        assert not self.jobs_outlive_server or lost == expected, errors
        assert [it for it in codes if it not in {None, _TERMINATED}] == others, errors
        assert [it for it in runs if it not in lost] == others, errors
        assert len(runs) == len(set(runs)), errors

    def test_a_killed_client_loses_no_job(
        self, executor: JobExecutor, tmp_path: Path, pytestconfig: pytest.Config
    ) -> None:
        """A client is killed with -9 while it submits; another finds the jobs, and submits the others."""
        instants = random.Random(20261122)  # noqa: S311  the same in each run
        clients = []
        for round_ in range(_of_form(self.client_rounds, pytestconfig)):
            root = tmp_path / str(round_)
            root.mkdir()
            settings = {**_CLIENT_SETTINGS, **self.client_settings, "work_directory": str(root / "work")}
            # each document of JSON is one of YAML
            configuration = json.dumps({"executors": {executor.name: {"config": settings}}})
            (root / "config.yaml").write_text(configuration)
            clients.append(self._kill_client(executor.name, root, instants.uniform(0.0, self.client_seconds)))

        proofs = _settled(lambda: [it.runs for it in clients])
        assert [it for it, runs in zip(clients, proofs, strict=True) if not it.is_right(runs)] == []

    def _kill_client(self, name: str, root: Path, instant: float) -> _KilledClient:
        """Kill a client once, and have another find its jobs."""
        program = [sys.executable, "-c", _CLIENT, str(root)]
        environment = {**os.environ, "JPSI_CONFIG": str(root / "config.yaml")}
        submission = [*program, "submit", name, str(self.client_jobs)]
        with subprocess.Popen(submission, stdout=subprocess.PIPE, text=True, env=environment) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == "begun\n"
            time.sleep(instant)
            client.send_signal(signal.SIGKILL)
        found = subprocess.run(
            [*program, "recover", name, "0"], capture_output=True, text=True, check=False, env=environment
        )
        codes = dict(line.split() for line in found.stdout.splitlines())
        error = found.stderr if found.returncode else ""
        return _KilledClient(instant=instant, proof=root / "proof", codes=codes, error=error)


@attrs.frozen(kw_only=True)
class _KilledClient:
    """A client that was killed, and what the next one found."""

    #: The time after the beginning of its submission, in seconds.
    instant: float
    #: The file with the numbers of the jobs that have begun.
    proof: Path
    #: The exit codes by the numbers of the jobs.
    codes: Mapping[str, str]
    #: The error of the second client.
    error: str

    @property
    def runs(self) -> list[str]:
        """The numbers of the jobs that have begun, as often as they did."""
        return sorted(_words(self.proof))

    def is_right(self, runs: list[str]) -> bool:
        """Return True if each job ran once, with its own exit code."""
        has_codes = all(number == code for number, code in self.codes.items())
        return not self.error and has_codes and runs == sorted(self.codes)


def _of_form(choices: tuple[_Value, _Value], config: pytest.Config) -> _Value:
    """Return the first value with `--long`, else the second."""
    return choices[0 if config.getoption("--long", default=False) else 1]


def _words(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def _settled(read: Callable[[], _Value]) -> _Value:
    """Return a value once it has not changed for `_SETTLED` seconds."""
    value, since = read(), time.monotonic()
    while time.monotonic() - since < _SETTLED:
        time.sleep(0.2)
        if (new := read()) != value:
            value, since = new, time.monotonic()
    return value


def _is_lost(job: Job) -> bool:
    return job.status.reason is Reason.LOST or job.status.exit_code == _TERMINATED


def _submit_patiently(executor: JobExecutor, job: Job, errors: list[str]) -> None:
    """Submit a job, again if the server does not answer, and note the errors."""
    while job.native_id is None and job.status.state is JobState.NEW:
        try:
            executor.submit(job)
        except SubmitException as e:
            errors.append(str(e))
            if not e.transient:
                return
            time.sleep(1)

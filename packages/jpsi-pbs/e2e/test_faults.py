"""A real PBS or Torque whose server dies, or whose qstat answers wrongly: no job is lost or runs twice."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi import Job, JobExecutor, JobState, SubmitException
from jpsi_pbs import PbsConfig
from jpsi_testing.conformance.base import Gate, shell
from jpsi_testing.waiting import eventually

PATIENCE = 300.0
GRACE = 3.0

# Stands for qstat on PATH, and does what the file beside it says.
_QSTAT = """\
#!/bin/sh
echo "$*" >>"${0}.calls"
read -r fault <"${0}.fault"
case $fault in
hangs) exec sleep 30 ;;
empty) exit 0 ;;
fails) echo 'qstat: no answer' >&2; exit 1 ;;
garbled) REAL "$@" | tr '0-9<>{' '1-90ab[' ;;
cut) REAL "$@" | head -c 700 ;;
*) exec REAL "$@" ;;
esac
"""


@pytest.fixture
def executor(server_system: str, tmp_path: Path) -> Iterator[JobExecutor]:
    config = PbsConfig(
        work_directory=tmp_path / "work",
        shortest_interval=timedelta(seconds=0.5),
        longest_interval=timedelta(seconds=1),
        command_timeout=timedelta(seconds=5),
        grace=timedelta(seconds=GRACE),
    )
    with JobExecutor.get_instance(server_system, config=config) as executor:
        yield executor


@pytest.fixture
def qstat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a qstat on PATH that has the fault that is named in the file `qstat.fault` beside it."""
    path = tmp_path / "bin" / "qstat"
    path.parent.mkdir()
    (path.parent / "qstat.fault").write_text("none\n")
    path.write_text(_QSTAT.replace("REAL", shutil.which("qstat") or "qstat"))
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    return path


class Jobs:
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
        return sorted(map(int, self._proof.read_text().split())) if self._proof.exists() else []


def exit_codes(jobs: list[Job]) -> list[int | None]:
    """Return the exit codes of jobs when all have ended."""
    statuses = [job.wait(PATIENCE) for job in jobs]
    return [None if status is None else status.exit_code for status in statuses]


@pytest.mark.parametrize("fault", ["garbled", "cut", "empty", "hangs", "fails"])
def test_a_wrong_answer_changes_no_outcome(
    executor: JobExecutor, qstat: Path, tmp_path: Path, fault: str
) -> None:
    """The fault begins while jobs run, lasts for longer than the grace period, and they end meanwhile."""
    jobs = Jobs(tmp_path)
    members = [jobs.job(number) for number in range(12)]
    executor.submit_many(members[:9])
    for it in members[9:]:
        executor.submit(it)
    assert eventually(lambda: len(jobs.runs) > 2, PATIENCE)
    calls = qstat.with_name("qstat.calls")

    before = len(calls.read_text().splitlines())
    qstat.with_name("qstat.fault").write_text(f"{fault}\n")
    time.sleep(3 * GRACE)
    jobs.gate.open()
    time.sleep(3 * GRACE)

    assert len(calls.read_text().splitlines()) > before
    assert all(it.status.exit_code in {None, number} for number, it in enumerate(members))
    qstat.with_name("qstat.fault").write_text("none\n")
    assert exit_codes(members) == list(range(12))
    assert jobs.runs == list(range(12))


@pytest.mark.parametrize("round_", range(2))
def test_a_killed_server_loses_no_job(
    executor: JobExecutor, control: Callable[[str], None], tmp_path: Path, round_: int
) -> None:
    """It is killed with -9 and started again while 50 jobs are there and 20 more are submitted.

    An element that OpenPBS 23.06.06 was starting may then be R with the substate 41 for ever, and never run;
    even qdel waits for ever. jpsi reports it as PBS does.
    """
    jobs = Jobs(tmp_path)
    members = [jobs.job(number) for number in range(70)]
    executor.submit_many(members[:50])
    members[0].wait(PATIENCE, target_states=JobState.ACTIVE)
    errors: list[str] = []

    def submit(job: Job) -> None:
        while job.native_id is None:
            try:
                executor.submit(job)
            except SubmitException as e:
                errors.append(str(e))
                if not e.transient:
                    return
                time.sleep(1)

    threads = [threading.Thread(target=submit, args=[job]) for job in members[50:]]
    for thread in threads[:10]:
        thread.start()
    time.sleep(0.1 * round_)
    control("kill")
    for thread in threads[10:]:
        thread.start()
    time.sleep(5)
    control("start")
    for thread in threads:
        thread.join(PATIENCE)
    jobs.gate.open()

    codes = exit_codes([it for it in members if not _is_stuck(executor, it)])
    stuck = [number for number, it in enumerate(members) if not it.status.final]
    others = [number for number in range(70) if number not in stuck]
    assert len(stuck) <= 1, errors
    assert codes == jobs.runs == others, errors


def _is_stuck(executor: JobExecutor, job: Job) -> bool:
    """Return True if PBS shows a job in the state that it had when its server was killed."""
    if executor.name != "pbs" or job.wait(PATIENCE / 2) is not None:
        return False
    found = executor.info(job)
    return found is not None and found.details.get("pbs.substate") == "41"

"""Jobs of an array are submitted again after the ends that `retry` names, once each, whoever is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from jpsi import BulkException, Job, JobAttributes, JobExecutor, JobSpec, JobState, Reason
from jpsi.plugin import BatchConfig
from jpsi_engine import job_store
from jpsi_engine.scheduler import retry_loop
from jpsi_engine.spool.pruning import prune
from jpsi_engine.spool.spool import Spool
from jpsi_engine.verdict.marker_verdict import has_exit_marker
from jpsi_testing import PluginDirectory
from jpsi_testing.fake import FakeScheduler, FakeState, on_path
from jpsi_testing.waiting import eventually
from killed_clients import PATIENCE, run_client
from retried_jobs import COMMAND, failing_job
from toys import QUICK, install_toy

# The same as `COMMAND`, once there is a file.
WAITING = f'until test -e "${{1%/*}}/../go"; do sleep 0.02; done; {COMMAND}'

# Submits such jobs as an array and waits for them; it is killed before its n-th access to the work directory,
# or its n-th process.
CLIENT = """
import sys
from datetime import timedelta
import jpsi
from jpsi.plugin import BatchConfig
import jpsi_engine.job_store, jpsi_engine.batch
from jpsi_engine.scheduler import retry_loop
from killed_clients import kill_at

retry_loop._GATHER_SECONDS = 0.2
work, proofs, command, step = sys.argv[1:]
short, long, grace = (timedelta(seconds=it) for it in (0.1, 0.3, 0.5))
config = BatchConfig(work_directory=work, shortest_interval=short, longest_interval=long, grace=grace)
executor = jpsi.JobExecutor("toy", config=config)
attributes = jpsi.JobAttributes(retry={75: 4})
words = ["-c", command, "sh"]
jobs = [
    jpsi.Job(jpsi.JobSpec("/bin/sh", [*words, f"{proofs}{runs}", str(runs)], attributes=attributes))
    for runs in (1, 2, 2, 3)
]
for number, job in enumerate(jobs):
    job.spec.arguments[3] += f".{number}"
left = kill_at(int(step), work)
executor.submit_many(jobs)
for job in jobs:
    job.wait()
print(left())
sys.exit(0 if {it.status.state for it in jobs} == {jpsi.JobState.COMPLETED} else 1)
"""

# Submits an array of jobs that fail once, and is killed before or after a call of a function, the n-th that
# follows. If there is one more argument, another client has cancelled the second job at that moment.
AGAIN = """
import sys
from datetime import timedelta
import jpsi
from jpsi.plugin import BatchConfig
import jpsi_engine.batch
from jpsi_engine.scheduler import retry_loop
from killed_clients import kill_around

retry_loop._GATHER_SECONDS = 0.2
module, path, when, call, work, proofs, command, *cancelled = sys.argv[1:]
short, long, grace = (timedelta(seconds=it) for it in (0.1, 0.3, 0.5))
config = BatchConfig(work_directory=work, shortest_interval=short, longest_interval=long, grace=grace)
executor = jpsi.JobExecutor("toy", config=config)
attributes = jpsi.JobAttributes(retry={75: 4})
jobs = [
    jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", command, "sh", f"{proofs}{number}", "2"], attributes=attributes))
    for number in range(3)
]
executor.submit_many(jobs)

def cancel():
    if cancelled:
        executor._engine._spool.cancel_retry(jobs[1].id, 1)

kill_around(module, path, when, int(call), first=cancel)
# they are due together
loop = executor._engine._retry_loop
find_gone = loop.find_gone
loop.find_gone = lambda intents: find_gone(intents) if len(intents) == 3 else ()
open(f"{proofs}../go", "w").close()
for job in jobs:
    job.wait()
"""

# The step of a further submission at which the client is killed, and at which call.
STEPS = [
    ("jpsi_engine.monitor.publisher", "record_end", "before", 1),
    ("jpsi_engine.monitor.publisher", "record_end", "after", 2),
    ("jpsi_engine.monitor.publisher", "record_end", "after", 3),
    ("jpsi_engine.spool.arrays", "ArrayFiles.prepare", "before", 1),
    ("jpsi_engine.host", "write_new", "before", 1),
    ("jpsi_engine.spool.arrays", "ArrayFiles.prepare", "after", 1),
    ("jpsi_engine.spool.spool", "Spool.link_retry", "before", 1),
    ("jpsi_engine.spool.spool", "Spool.link_retry", "before", 2),
    ("jpsi_engine.spool.spool", "Spool.link_retry", "after", 2),
    ("jpsi_engine.spool.spool", "Spool.allow_retry", "before", 3),
    ("jpsi_engine.spool.spool", "Spool.allow_retry", "after", 3),
    ("jpsi_engine.spool.spool", "Spool.sync", "before", 1),
    ("jpsi_engine.spool.spool", "Spool.sync", "after", 1),
    ("jpsi_engine.scheduler.backend", "Backend.submit", "before", 1),
    ("jpsi_engine.scheduler.backend", "Backend.submit", "after", 1),
    ("jpsi_engine.spool.spool", "Spool.started", "before", 1),
    ("jpsi_engine.spool.spool", "Spool.started", "after", 1),
    ("jpsi_engine.monitor.publisher", "Publisher.add", "before", 2),
    ("jpsi_engine.scheduler.retry_loop", "RetryLoop._track", "before", 2),
    ("jpsi_engine.monitor.job_monitor", "JobMonitor.follow", "before", 1),
]


@pytest.fixture
def batch(state_home: Path, plugin_directory: PluginDirectory) -> BatchConfig:
    install_toy(plugin_directory)
    return attrs.evolve(QUICK, work_directory=state_home / "work")


@pytest.fixture
def fake(batch: BatchConfig) -> Iterator[FakeScheduler]:
    with FakeScheduler(kill_delay=0.5, slots=8) as scheduler, on_path("toy", scheduler):
        yield scheduler


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry_loop, "_LOOK_SECONDS", 0.2)
    monkeypatch.setattr(retry_loop, "_GATHER_SECONDS", 0.2)
    monkeypatch.setattr(retry_loop, "_LONGEST_PAUSE", 0.5)


@pytest.fixture
def toys(batch: BatchConfig, fake: FakeScheduler) -> Iterator[JobExecutor]:
    with JobExecutor("toy", config=batch) as executor:
        yield executor


def failing_jobs(proofs: Path, *runs: int, **retry: object) -> list[Job]:
    """Return jobs, each of which fails with 75 until it has run so often."""
    proofs.mkdir(exist_ok=True)
    return [failing_job(proofs / str(number), count, **retry) for number, count in enumerate(runs)]


def runs_of(proofs: Path) -> list[int]:
    return [len(it.read_text().splitlines()) for it in sorted(proofs.iterdir())]


def states(jobs: Sequence[Job]) -> list[JobState | None]:
    statuses = [job.wait(PATIENCE) for job in jobs]
    return [None if it is None else it.state for it in statuses]


def spool_of(batch: BatchConfig) -> Spool:
    return Spool(Path(str(batch.work_directory), "toy"))


def stored_jobs(batch: BatchConfig) -> dict[str, job_store.StoredJob]:
    assert batch.work_directory is not None
    return {it.id: it for it in job_store.jobs(also=[batch.work_directory])}


def array_of(native_id: str | None) -> str:
    return str(native_id).partition(".")[0]


def waiting_jobs(executor: JobExecutor, batch: BatchConfig, tmp_path: Path) -> list[Job]:
    """Return the jobs of an array, each of which waits for its second attempt."""
    jobs = failing_jobs(tmp_path / "proofs", 2, 2, 2, delay=3600)
    executor.submit_many(jobs)
    assert eventually(lambda: all(spool_of(batch).pending_retry(job.id) for job in jobs))
    return jobs


def test_jobs_with_retries_are_one_array_and_are_submitted_again_until_they_succeed(
    toys: JobExecutor, batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    jobs = failing_jobs(tmp_path / "proofs", 1, 2, 3, 1)
    seen = list[tuple[str, JobState]]()
    for job in jobs:
        job.set_job_status_callback(lambda it, status: seen.append((it.id, status.state)))

    toys.submit_many(jobs)

    assert {array_of(job.native_id) for job in jobs} == {"1"}
    assert states(jobs) == [JobState.COMPLETED] * 4
    assert runs_of(tmp_path / "proofs") == [1, 2, 3, 1]
    assert [job.status.metadata.get("attempt") for job in jobs] == [None, 2, 3, None]
    for job in jobs:
        own = [state for job_id, state in seen if job_id == job.id]
        assert own == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]
    stored = stored_jobs(batch)
    assert [len(stored[job.id].earlier_ends) for job in jobs] == [0, 1, 2, 0]
    assert toys.recover() == []


def test_an_element_ends_once_its_retries_are_used_up(
    toys: JobExecutor, batch: BatchConfig, tmp_path: Path
) -> None:
    jobs = failing_jobs(tmp_path / "proofs", 9, 1)
    for job in jobs:
        job.spec.attributes.retry = {75: 1}  # type: ignore[union-attr]  # it has a spec
    toys.submit_many(jobs)

    assert states(jobs) == [JobState.FAILED, JobState.COMPLETED]
    assert "submitted again 1 time" in str(jobs[0].status.message)
    assert runs_of(tmp_path / "proofs") == [2, 1]
    assert stored_jobs(batch)[jobs[0].id].status.message == jobs[0].status.message


def test_elements_with_and_without_retries_share_an_array(toys: JobExecutor, tmp_path: Path) -> None:
    jobs = failing_jobs(tmp_path / "proofs", 2, 2)
    jobs[1].spec.attributes.retry = None  # type: ignore[union-attr]  # it has a spec
    toys.submit_many(jobs)

    assert {array_of(job.native_id) for job in jobs} == {"1"}
    assert states(jobs) == [JobState.COMPLETED, JobState.FAILED]
    assert runs_of(tmp_path / "proofs") == [2, 1]


@pytest.mark.parametrize("step", [*range(1, 60, 4), *range(60, 220, 16)])
def test_a_client_killed_at_any_step_leaves_an_array_that_ends_as_if_it_lived(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path, step: int
) -> None:
    proofs = tmp_path / "proofs"
    proofs.mkdir()
    words = [str(batch.work_directory), f"{proofs}/", COMMAND, str(step)]
    client = run_client(CLIENT, *words)
    assert client.returncode in {-signal.SIGKILL, 0}

    with JobExecutor("toy", config=batch) as executor:
        found = executor.recover()
        new = [job for job in found if job.status.state is JobState.NEW]
        if new:
            executor.submit_many(new)
        assert set(states(found)) <= {JobState.COMPLETED}
        assert runs_of(proofs) in ([], [1, 2, 2, 3])
        assert {it.status.state for it in stored_jobs(batch).values()} <= {JobState.COMPLETED}
        assert len(stored_jobs(batch)) == len(runs_of(proofs))
        assert executor.recover() == []


@pytest.mark.parametrize(
    ("module", "path", "when", "call"), STEPS, ids=[" ".join(map(str, it[1:])) for it in STEPS]
)
def test_a_client_killed_while_it_submits_again_leaves_jobs_that_end_as_if_it_lived(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path, module: str, path: str, when: str, call: int
) -> None:
    proofs = tmp_path / "proofs"
    proofs.mkdir()
    words = [module, path, when, str(call), str(batch.work_directory), f"{proofs}/", WAITING]
    client = run_client(AGAIN, *words)
    assert client.returncode == -signal.SIGKILL

    # not back to an earlier state; one that was submitted may have ended by now
    allowed = {JobState.ACTIVE, JobState.COMPLETED}
    stored = stored_jobs(batch)
    # it is read from the disk, where the clients that recover jobs soon record further ends
    retried = {it.id for it in stored.values() if it.earlier_ends}
    assert {stored[it].status.state for it in retried} <= allowed
    assert JobState.NEW not in {it.status.state for it in stored.values()}
    with JobExecutor("toy", config=batch) as executor, JobExecutor("toy", config=batch) as other:
        found = [*executor.recover(), *other.recover()]

        assert {job.id for job in found} == {it.id for it in stored.values() if not it.status.final}
        assert {job.status.state for job in found if job.id in retried} <= allowed
        assert set(states(found)) == {JobState.COMPLETED}
        assert runs_of(proofs) == [2, 2, 2]
        assert [it.status.state for it in stored_jobs(batch).values()] == [JobState.COMPLETED] * 3
        assert executor.recover() == []


@pytest.mark.parametrize(
    ("module", "path", "when", "call"), STEPS[4::3], ids=[" ".join(map(str, it[1:])) for it in STEPS[4::3]]
)
def test_an_element_that_was_cancelled_while_its_attempt_was_made_ends_though_both_clients_are_killed(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path, module: str, path: str, when: str, call: int
) -> None:
    proofs = tmp_path / "proofs"
    proofs.mkdir()
    command = f'case $1 in */1) test ! -e "$1" || {{ echo ran >>"$1"; exec sleep 100; }} ;; esac; {WAITING}'
    words = [module, path, when, str(call), str(batch.work_directory), f"{proofs}/", command, "cancelled"]
    client = run_client(AGAIN, *words)
    assert client.returncode == -signal.SIGKILL

    with JobExecutor("toy", config=batch) as executor:
        found = {job.spec.arguments[3][-1]: job for job in executor.recover()}  # type: ignore[union-attr, index]

        assert states([found["1"]]) == [JobState.CANCELED]
        assert set(states(list(found.values()))) <= {JobState.COMPLETED, JobState.CANCELED}
        first, second, third = runs_of(proofs)
        assert (first, second <= 2, third) == (2, True, 2)
        ends = sorted(it.status.state.value for it in stored_jobs(batch).values())
        assert ends == ["CANCELED", "COMPLETED", "COMPLETED"]
        assert executor.recover() == []


def held_back(executor: JobExecutor, count: int) -> threading.Event:
    """Have jobs wait for their next attempts until the event is set, and so many are due together."""
    is_open = threading.Event()
    may_begin, loop = threading.Event(), executor._engine._retry_loop  # type: ignore[attr-defined]  # of batch systems
    find_gone = loop.find_gone

    def find(intents: Sequence[Any]) -> Collection[str]:
        if may_begin.is_set() and len(intents) == count:
            is_open.set()
        return find_gone(intents) if is_open.is_set() else ()

    loop.find_gone = find
    return may_begin


def test_elements_that_fail_together_are_submitted_again_as_one_array(
    toys: JobExecutor, batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    jobs = failing_jobs(tmp_path / "proofs", 2, 1, 3, 2)
    may_begin = held_back(toys, 3)
    toys.submit_many(jobs)
    failed = [jobs[0], *jobs[2:]]
    assert eventually(lambda: all(spool_of(batch).pending_retry(job.id) for job in failed))
    assert states(jobs[1:2]) == [JobState.COMPLETED]
    may_begin.set()

    assert states(jobs) == [JobState.COMPLETED] * 4
    assert runs_of(tmp_path / "proofs") == [2, 1, 3, 2]
    # in the order in which their ends were seen
    assert {str(jobs[0].native_id), str(jobs[3].native_id)} < {"2.1", "2.2", "2.3"}
    # the third time there is one left
    assert fake.log.count("tsubmit") == 3
    assert jobs[2].native_id == "3"


def test_elements_that_need_different_resources_are_submitted_again_in_different_arrays(
    toys: JobExecutor, batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    proofs = tmp_path / "proofs"
    proofs.mkdir()
    attributes = JobAttributes(
        retry={"timeout": 1, "node_failure": 1, "grow_duration": 2}, duration=timedelta(minutes=1)
    )
    command = 'echo ran >>"$0"; test "$(wc -l <"$0")" = 2 || sleep 600'
    jobs = [
        Job(JobSpec("/bin/sh", ["-c", command, str(proofs / str(number))], attributes=attributes))
        for number in range(4)
    ]
    may_begin = held_back(toys, 4)
    toys.submit_many(jobs)
    assert eventually(lambda: len(list(proofs.iterdir())) == 4 and runs_of(proofs) == [1] * 4)
    for job, end in zip(jobs, [FakeState.TIMEOUT, FakeState.NODE_FAIL] * 2, strict=True):
        fake.end_as(str(job.native_id), end)
    assert eventually(lambda: all(spool_of(batch).pending_retry(job.id) for job in jobs))
    may_begin.set()

    assert states(jobs) == [JobState.COMPLETED] * 4
    assert [job.status.metadata["retry_reason"] for job in jobs] == ["timeout", "node_failure"] * 2
    assert runs_of(proofs) == [2] * 4
    assert fake.log.count("tsubmit") == 3
    limits = {it.native_id: it.time_limit for it in fake.jobs}
    assert [limits[str(job.native_id)] for job in jobs] == [120.0, 60.0] * 2
    assert array_of(jobs[0].native_id) == array_of(jobs[2].native_id) != array_of(jobs[1].native_id)


def test_one_of_the_elements_that_wait_for_their_next_attempt_is_cancelled(
    toys: JobExecutor, batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    jobs = failing_jobs(tmp_path / "proofs", 2, 2, 2)
    may_begin = held_back(toys, 2)
    toys.submit_many(jobs)
    assert eventually(lambda: all(spool_of(batch).pending_retry(job.id) for job in jobs))
    with JobExecutor("toy", config=batch) as other:
        # by another client, whose request this one has to find
        (found,) = other.recall([jobs[1].id])
        found.cancel()
        may_begin.set()

        assert states([*jobs, found]) == [JobState.COMPLETED, JobState.CANCELED] * 2
    assert runs_of(tmp_path / "proofs") == [2, 1, 2]


@pytest.mark.parametrize(
    ("fault", "is_repeated"),
    [
        ({"returncode": 2, "stderr": "tsubmit: no such queue\n"}, False),
        ({"returncode": 3, "stderr": "tsubmit: cannot contact the toy server\n"}, True),
        ({"returncode": 1, "stderr": "?\n"}, True),
    ],
    ids=["refused", "outage", "unclear"],
)
def test_elements_end_if_they_are_refused_together_and_are_repeated_after_a_failure(
    toys: JobExecutor,
    batch: BatchConfig,
    fake: FakeScheduler,
    tmp_path: Path,
    fault: dict[str, Any],
    is_repeated: bool,
) -> None:
    jobs = failing_jobs(tmp_path / "proofs", 2, 2, 2)
    may_begin = held_back(toys, 3)
    toys.submit_many(jobs)
    assert eventually(lambda: all(spool_of(batch).pending_retry(job.id) for job in jobs))
    fake.faults.fail("tsubmit", **fault)
    may_begin.set()

    assert states(jobs) == [JobState.COMPLETED if is_repeated else JobState.FAILED] * 3
    assert runs_of(tmp_path / "proofs") == [1 + is_repeated] * 3
    # one for all of them; those that are repeated may go by themselves
    assert fake.log.count("tsubmit") in ({3, 4, 5} if is_repeated else {2})
    assert is_repeated or all("no such queue" in str(job.status.message) for job in jobs)
    stored = stored_jobs(batch)
    assert [stored[job.id].status.message for job in jobs] == [job.status.message for job in jobs]
    with JobExecutor("toy", config=batch) as other:
        assert other.recover() == []


def test_an_array_that_never_ran_is_kept_while_its_jobs_wait_for_the_next(
    toys: JobExecutor, batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    jobs = failing_jobs(tmp_path / "proofs", 2, 2)
    may_begin = held_back(toys, 2)
    toys.submit_many(jobs)
    spool = spool_of(batch)
    assert eventually(lambda: all(spool.pending_retry(job.id) for job in jobs))
    fake.faults.fail("tsubmit", times=None, returncode=3, stderr="tsubmit: cannot contact the toy server\n")
    may_begin.set()
    assert eventually(
        lambda: all(spool.last_attempt(job.id) > 1 and spool.pending_retry(job.id) for job in jobs)
    )
    assert {it.status.state for it in stored_jobs(batch).values()} == {JobState.ACTIVE}

    prune(spool, time.time() + 10**7, 1.0, 0, has_exit_marker)

    assert {it.status.state for it in stored_jobs(batch).values()} == {JobState.ACTIVE}
    with JobExecutor("toy", config=batch) as other:
        for found in (other.recover(), JobExecutor("toy", config=batch).recall([job.id for job in jobs])):
            assert {job.id for job in found} == {job.id for job in jobs}
            assert {job.status.state for job in found} == {JobState.ACTIVE}
    fake.faults.clear()
    assert states(jobs) == [JobState.COMPLETED] * 2
    assert runs_of(tmp_path / "proofs") == [2, 2]


def test_clients_that_follow_one_array_make_each_attempt_once(
    toys: JobExecutor, batch: BatchConfig, tmp_path: Path
) -> None:
    jobs, go = failing_jobs(tmp_path / "proofs", 4, 3, 2, 4), tmp_path / "go"
    for job in jobs:
        assert job.spec is not None
        job.spec.pre_launch = tmp_path / "wait"
    (tmp_path / "wait").write_text(f"while ! test -e {go}; do sleep 0.05; done\n")
    toys.submit_many(jobs)
    others = [JobExecutor("toy", config=batch) for _ in range(3)]
    found = [job for other in others for job in other.recover()]
    assert len(found) == 12
    go.touch()

    assert states([*jobs, *found]) == [JobState.COMPLETED] * 16
    assert runs_of(tmp_path / "proofs") == [4, 3, 2, 4]


def test_jobs_that_another_process_has_submitted_keep_their_files(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    jobs = failing_jobs(tmp_path / "proofs", 3, 2, 1)
    executor = JobExecutor("toy", config=batch)
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            executor.submit_many(jobs[:2])
        os._exit(0)
    os.waitpid(child, 0)
    spool = spool_of(batch)
    assert set(spool.job_ids()) == {job.id for job in jobs[:2]}

    with pytest.raises(BulkException, match="another process") as caught:
        executor.submit_many(jobs)

    assert {job.id for job in caught.value.failed} == {job.id for job in jobs[:2]}
    assert all({"array.1", "retry.1"} <= set(spool.names(job.id)) for job in jobs[:2])
    with JobExecutor("toy", config=batch) as other:
        found = {job.id: job for job in other.recover()}
        assert states([found.get(job.id, job) for job in jobs]) == [JobState.COMPLETED] * 3
    assert runs_of(tmp_path / "proofs") == [3, 2, 1]


def test_an_element_that_waits_for_its_next_attempt_is_cancelled_alone(
    toys: JobExecutor, batch: BatchConfig, tmp_path: Path
) -> None:
    jobs = waiting_jobs(toys, batch, tmp_path)
    stored = stored_jobs(batch)
    assert {stored[job.id].status.state for job in jobs} == {JobState.ACTIVE}
    assert all("attempt 2 follows" in str(it.remark) for it in stored.values())

    jobs[1].cancel()

    assert states(jobs[1:2]) == [JobState.CANCELED]
    assert [job.status.state for job in jobs] == [JobState.ACTIVE, JobState.CANCELED, JobState.ACTIVE]
    stored = stored_jobs(batch)
    assert stored[jobs[1].id].status.state is JobState.CANCELED
    assert stored[jobs[0].id].awaits_retry
    toys.cancel_many([jobs[0], jobs[2]])
    assert states(jobs) == [JobState.CANCELED] * 3
    assert runs_of(tmp_path / "proofs") == [1, 1, 1]


@pytest.mark.parametrize("is_recalled", [True, False])
def test_another_client_cancels_an_array_between_its_attempts(
    toys: JobExecutor,
    batch: BatchConfig,
    tmp_path: Path,
    is_recalled: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    jobs = waiting_jobs(toys, batch, tmp_path)
    with JobExecutor("toy", config=batch) as other:
        found = other.recall([job.id for job in jobs]) if is_recalled else other.recover()
        assert {job.status.state for job in found} == {JobState.ACTIVE}
        assert {job.id: job.native_id for job in found} == {job.id: job.native_id for job in jobs}
        assert not caplog.records
        other.cancel_many(found)

        assert states(found) == [JobState.CANCELED] * 3

    assert states(jobs) == [JobState.CANCELED] * 3
    assert runs_of(tmp_path / "proofs") == [1, 1, 1]
    assert {it.status.state for it in stored_jobs(batch).values()} == {JobState.CANCELED}
    assert toys.recover() == []


def test_a_cancelled_array_is_not_submitted_again(toys: JobExecutor, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    attributes = JobAttributes(retry={143: 5, 137: 5, "timeout": 5, "lost": 5})
    words = ["-c", 'echo ran >>"$0"; sleep 600', str(proof)]
    jobs = [Job(JobSpec("/bin/sh", words, attributes=attributes)) for _ in range(3)]
    toys.submit_many(jobs)
    assert eventually(lambda: proof.exists() and len(proof.read_text().splitlines()) == 3)

    toys.cancel_many(jobs)

    assert states(jobs) == [JobState.CANCELED] * 3
    assert len(proof.read_text().splitlines()) == 3


def test_an_element_that_never_began_is_submitted_again(
    toys: JobExecutor, fake: FakeScheduler, tmp_path: Path
) -> None:
    fake.slots = 0
    jobs = failing_jobs(tmp_path / "proofs", 1, 1, lost=1)
    toys.submit_many(jobs)
    lost = str(jobs[0].native_id)
    fake.vanish(lost)
    assert eventually(lambda: jobs[0].native_id != lost, PATIENCE)
    fake.slots = 8
    # starts what waits
    fake.submit_all([])

    assert states(jobs) == [JobState.COMPLETED] * 2
    assert runs_of(tmp_path / "proofs") == [1, 1]
    assert jobs[0].status.metadata["retry_reason"] == "lost"


def test_ends_of_elements_that_only_the_batch_system_knows_are_retried(
    toys: JobExecutor, fake: FakeScheduler, tmp_path: Path
) -> None:
    proofs = tmp_path / "proofs"
    proofs.mkdir()
    attributes = JobAttributes(
        retry={"timeout": 1, "node_failure": 1, "grow_duration": 2}, duration=timedelta(minutes=1)
    )
    command = 'echo ran >>"$0"; test "$(wc -l <"$0")" = 2 || sleep 600'
    jobs = [
        Job(JobSpec("/bin/sh", ["-c", command, str(proofs / str(number))], attributes=attributes))
        for number in range(3)
    ]
    toys.submit_many(jobs)
    assert eventually(lambda: proofs.exists() and len(list(proofs.iterdir())) == 3)
    assert eventually(lambda: runs_of(proofs) == [1, 1, 1])
    first, second, third = (str(job.native_id) for job in jobs)
    fake.end_as(first, FakeState.TIMEOUT)
    fake.end_as(second, FakeState.NODE_FAIL)
    fake.end_as(third, FakeState.TIMEOUT)

    assert states(jobs) == [JobState.COMPLETED] * 3
    assert [job.status.metadata["retry_reason"] for job in jobs] == ["timeout", "node_failure", "timeout"]
    assert runs_of(proofs) == [2, 2, 2]
    limits = {it.native_id: it.time_limit for it in fake.jobs}
    assert [limits[str(job.native_id)] for job in jobs] == [120.0, 60.0, 120.0]


def test_no_attempt_begins_while_the_batch_system_has_requeued_an_element(
    toys: JobExecutor, batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    command = 'echo "${TOY_ARRAY_ID-}:$TOY_JOB_ID" >>"$0"; test "$(wc -l <"$0")" = 2 || sleep 600'
    attributes = JobAttributes(retry={"node_failure": 1})
    job = Job(JobSpec("/bin/sh", ["-c", command, str(proof)], attributes=attributes))
    other = Job(JobSpec("/bin/true", attributes=attributes))
    may_begin = held_back(toys, 1)
    toys.submit_many([job, other])
    assert eventually(lambda: proof.exists() and bool(proof.read_text()))
    first = str(job.native_id)
    fake.end_as(first, FakeState.NODE_FAIL)
    assert eventually(lambda: spool_of(batch).pending_retry(job.id) is not None)
    # from an old state, as if it had not ended
    fake.restore(first)
    may_begin.set()

    assert states([job, other]) == [JobState.COMPLETED] * 2
    assert len(proof.read_text().splitlines()) == 2


def test_an_element_whose_next_attempt_is_refused_ends(
    toys: JobExecutor, batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    jobs = failing_jobs(tmp_path / "proofs", 2, 1)
    may_begin = held_back(toys, 1)
    toys.submit_many(jobs)
    assert eventually(lambda: spool_of(batch).pending_retry(jobs[0].id) is not None)
    fake.faults.fail("tsubmit", returncode=2, stderr="tsubmit: no such queue\n")
    may_begin.set()

    assert states(jobs) == [JobState.FAILED, JobState.COMPLETED]
    status = jobs[0].status
    assert (status.exit_code, status.reason) == (75, Reason.EXIT_CODE)
    assert "could not be submitted again" in str(status.message)
    stored = stored_jobs(batch)[jobs[0].id]
    assert (stored.status.state, stored.status.message) == (status.state, status.message)
    assert toys.recover() == []
    with JobExecutor("toy", config=batch) as other:
        assert other.recover() == []
        (recalled,) = other.recall([jobs[0].id])
        again = recalled.wait(PATIENCE)
    assert again is not None
    assert (again.state, again.message) == (status.state, status.message)


def test_a_refused_array_leaves_nothing_and_its_jobs_can_be_submitted(
    toys: JobExecutor, batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    jobs = failing_jobs(tmp_path / "proofs", 1, 2)
    fake.faults.fail("tsubmit", returncode=2, stderr="tsubmit: no such queue\n")
    with pytest.raises(BulkException, match="no such queue"):
        toys.submit_many(jobs)
    assert stored_jobs(batch) == {}
    assert spool_of(batch).job_ids() == []

    toys.submit_many(jobs)

    assert states(jobs) == [JobState.COMPLETED] * 2
    assert runs_of(tmp_path / "proofs") == [1, 2]


def test_an_element_keeps_its_state_while_its_next_attempt_is_being_written(
    toys: JobExecutor, batch: BatchConfig, tmp_path: Path
) -> None:
    jobs = waiting_jobs(toys, batch, tmp_path)
    spool = spool_of(batch)
    lock = spool.reserve(jobs[0].id, 2)

    stored = stored_jobs(batch)

    assert stored[jobs[0].id].status.state is JobState.ACTIVE
    assert stored[jobs[0].id].spec.arguments == jobs[0].spec.arguments  # type: ignore[union-attr]
    # as if the client had been killed there
    os.close(lock)
    with JobExecutor("toy", config=batch) as other:
        found: Any = {job.id: job for job in other.recover()}
        assert found.keys() == {job.id for job in jobs}
        assert found[jobs[0].id].status.state is JobState.ACTIVE
        other.cancel_many(found.values())
        assert states(list(found.values())) == [JobState.CANCELED] * 3
    assert states(jobs) == [JobState.CANCELED] * 3

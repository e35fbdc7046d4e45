"""Calls on this machine: submit, map, shutdown and the futures."""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import stat
import threading
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, as_completed, wait
from pathlib import Path

import pytest

import functions_to_call as calls
import jpsi
from jpsi_functions import CallFuture, FunctionExecutor, RemoteTraceback
from jpsi_functions.calls import Call
from jpsi_functions.sessions import Session, StoredCall
from jpsi_functions.submit_queue import SubmitQueue
from jpsi_testing.threads import in_this_thread

# However busy the machine is.
PATIENCE = 60


def test_a_call_returns_what_the_function_returns(executor: FunctionExecutor) -> None:
    future = executor.submit(calls.divide, 1, denominator=4)

    assert future.result(60) == 0.25
    assert future.exception() is None


def test_functions_without_a_module_travel_whole(executor: FunctionExecutor) -> None:
    factor = 3

    assert executor.submit(lambda it: it * factor, 14).result(60) == 42


def test_an_exception_has_the_traceback_of_the_job_as_its_cause(executor: FunctionExecutor) -> None:
    future = executor.submit(calls.divide, 1, 0)

    error = future.exception(60)
    assert type(error) is ZeroDivisionError
    assert isinstance(error.__cause__, RemoteTraceback)
    shown = "".join(traceback.format_exception(error))
    assert "return numerator / denominator" in shown
    assert "worker.py" not in shown


def test_a_job_whose_call_raised_has_failed(executor: FunctionExecutor) -> None:
    future = executor.submit(calls.divide, 1, 0)
    future.exception(60)

    status = future.job.wait(60)
    assert status is not None
    assert (status.state, status.exit_code) == (jpsi.JobState.FAILED, 1)


def test_map_returns_the_results_in_order(executor: FunctionExecutor) -> None:
    assert list(executor.map(calls.square, range(50))) == [it * it for it in range(50)]
    assert list(executor.map(pow, [2, 3, 4], [5, 2], chunksize=2)) == [32, 9]
    assert list(executor.map(calls.square, [])) == []


def test_map_yields_results_before_all_of_them_are_there(executor: FunctionExecutor, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    results = executor.map(calls.wait_for, [__file__, __file__, str(gate)], [1, 2, 3], chunksize=1)

    assert [next(results), next(results)] == [1, 2]
    gate.touch()
    assert list(results) == [3]


def test_map_makes_no_more_jobs_than_chunks(executor: FunctionExecutor) -> None:
    assert sum(executor.map(calls.square, range(1000), chunksize=300)) == sum(it * it for it in range(1000))

    assert len(list(_spool().glob("jobs/*"))) == 4


def test_map_raises_in_the_place_of_the_call(executor: FunctionExecutor) -> None:
    results = executor.map(calls.divide, [1, 1, 1], [1, 0, 1], chunksize=3)

    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_map_cancels_what_is_left_once_it_took_too_long(tmp_path: Path) -> None:
    with FunctionExecutor("local", max_workers=1) as executor:
        results = executor.map(
            calls.wait_for, [str(tmp_path / "never")] * 3, range(3), timeout=0, chunksize=1
        )

        with pytest.raises(TimeoutError):
            next(results)


def test_a_cancelled_job_is_cancelled_as_soon_as_it_is_submitted() -> None:
    class Executor:
        """Submits a job once the one before it was cancelled."""

        submitting = threading.Event()
        cancelled: Mapping[jpsi.Job, threading.Event]

        def submit_many(self, jobs: Sequence[jpsi.Job]) -> None:
            self.cancelled = {it: threading.Event() for it in jobs}
            self.submitting.set()
            for job in jobs:
                job._reserve(self)
                job._bind("1", 1)
                assert self.cancelled[job].wait(20)
            for job in jobs:
                job._publish(jpsi.JobStatus(jpsi.JobState.CANCELED))

        def cancel_many(self, jobs: Iterable[jpsi.Job]) -> None:
            for job in jobs:
                self.cancelled[job].set()

        def _notify(self, *_: object, is_behind: bool) -> bool:
            return is_behind

    stored = [StoredCall(Path("/nowhere"), number, attempt=0, items=1, job_id="") for number in range(2)]
    made = [Call(it, jpsi.Job(), "the function") for it in stored]
    queue = SubmitQueue(Executor(), None)  # type: ignore[arg-type]  as much as the queue uses
    for call in made:
        call.futures = [CallFuture(call.job, functools.partial(queue.cancel, call))]
    queue.put(made)
    assert Executor.submitting.wait(60)

    for call in made:
        call.cancel()

    queue.wait()
    assert [it.job.status.state for it in made] == [jpsi.JobState.CANCELED] * 2


@pytest.mark.parametrize("number", [0, -1])
def test_chunks_and_workers_are_at_least_one(executor: FunctionExecutor, number: int) -> None:
    with pytest.raises(ValueError, match="chunksize must be at least 1"):
        executor.map(calls.square, [1], chunksize=number)
    with pytest.raises(ValueError, match="max_workers must be greater than 0"):
        FunctionExecutor("local", max_workers=number)


def test_no_more_jobs_than_workers_run_at_a_time(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with FunctionExecutor("local", max_workers=2) as executor:
        futures = [executor.submit(calls.wait_for, str(gate), it) for it in range(5)]
        for future in futures[:2]:
            while not future.running():
                time.sleep(0.01)

        states = [future.job.status.state for future in futures]
        gate.touch()

        assert states == [jpsi.JobState.ACTIVE] * 2 + [jpsi.JobState.NEW] * 3
        assert [future.result(60) for future in futures] == [*range(5)]


def test_the_functions_of_concurrent_futures_take_the_futures(executor: FunctionExecutor) -> None:
    futures = [executor.submit(calls.square, it) for it in range(3)]

    assert {it.result() for it in as_completed(futures, 60)} == {0, 1, 4}
    assert wait(futures).done == {*futures}


def test_asyncio_awaits_calls(executor: FunctionExecutor) -> None:
    async def main() -> int:
        return await asyncio.get_running_loop().run_in_executor(executor, calls.square, 12)

    assert asyncio.run(main()) == 144


def test_a_call_that_runs_can_be_cancelled(executor: FunctionExecutor, tmp_path: Path) -> None:
    future = executor.submit(calls.slow, str(tmp_path / "started"))
    while not (tmp_path / "started").exists():
        time.sleep(0.01)

    assert future.cancel()

    with pytest.raises(CancelledError):
        future.result()
    status = future.job.wait(60)
    assert status is not None
    assert status.state is jpsi.JobState.CANCELED
    assert not executor.submit(calls.square, 1).cancelled()


def test_a_job_that_is_cancelled_cancels_the_future(executor: FunctionExecutor, tmp_path: Path) -> None:
    future = executor.submit(calls.slow, str(tmp_path / "started"))
    while not (tmp_path / "started").exists():
        time.sleep(0.01)

    future.job.cancel()

    with pytest.raises(CancelledError):
        future.result(60)


def test_a_call_that_waits_is_taken_back_when_it_is_cancelled(tmp_path: Path) -> None:
    with FunctionExecutor("local", max_workers=1) as executor:
        first = executor.submit(calls.wait_for, str(tmp_path / "gate"), 1)
        second = executor.submit(calls.count, str(tmp_path / "ran"), 2)

        assert second.cancel()
        (tmp_path / "gate").touch()
        assert first.result(60) == 1

    assert second.job.status.state is jpsi.JobState.NEW
    assert not (tmp_path / "ran").exists()


def test_a_call_that_has_ended_cannot_be_cancelled(executor: FunctionExecutor) -> None:
    future = executor.submit(calls.square, 3)
    future.result(60)

    assert not future.cancel()
    assert future.result() == 9


def test_shutdown_waits_and_removes_the_files(tmp_path: Path) -> None:
    executor = FunctionExecutor("local")
    future = executor.submit(calls.square, 3)

    executor.shutdown()

    assert future.done()
    assert future.result() == 9
    assert list(_functions().iterdir()) == []
    with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
        executor.submit(calls.square, 3)
    with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
        executor.map(calls.square, [3])


def test_a_callback_of_the_last_future_may_shut_down() -> None:
    executor = FunctionExecutor("local")
    ended = threading.Event()

    def shut_down(_: object) -> None:
        executor.shutdown()
        ended.set()

    executor.submit(calls.square, 3).add_done_callback(shut_down)

    assert ended.wait(30)


def test_callbacks_may_shut_down_while_other_calls_run(tmp_path: Path) -> None:
    executor = FunctionExecutor("local", max_workers=3)
    ended, entered = [threading.Event(), threading.Event()], threading.Barrier(3)

    def shut_down(number: int, _: object) -> None:
        entered.wait(PATIENCE)
        executor.shutdown()
        ended[number].set()

    last = executor.submit(calls.wait_for, str(tmp_path / "gate"), 3)
    for number in range(2):
        executor.submit(calls.square, 3).add_done_callback(functools.partial(shut_down, number))
    entered.wait(PATIENCE)
    assert not last.done()
    (tmp_path / "gate").touch()

    assert all(it.wait(PATIENCE) for it in ended)
    assert last.result() == 3


def test_a_callback_of_a_refused_call_may_shut_down_while_others_wait() -> None:
    class Executor:
        """Refuses the first jobs, and lets the others end at once."""

        is_first = True

        def submit_many(self, jobs: Sequence[jpsi.Job]) -> None:
            if self.is_first:
                self.is_first = False
                assert added.wait(PATIENCE)
                raise jpsi.SubmitException("no")
            for job in jobs:
                job._reserve(self)
                job._bind("1", 1)
                job._publish(jpsi.JobStatus(jpsi.JobState.CANCELED))

        def _notify(self, *_: object, is_behind: bool) -> bool:
            return is_behind

    added, ended = threading.Event(), [threading.Event(), threading.Event()]
    stored = [StoredCall(Path("/nowhere"), number, attempt=0, items=1, job_id="") for number in range(3)]
    first, second, other = (Call(it, jpsi.Job(), "the function") for it in stored)
    queue = SubmitQueue(Executor(), None)  # type: ignore[arg-type]  as much as the queue uses
    for call in (first, second, other):
        call.futures = [CallFuture(call.job, lambda: None)]

    def shut_down(event: threading.Event, _: object) -> None:
        queue.wait()
        event.set()

    for call, event in zip((first, second), ended, strict=True):
        call.futures[0].add_done_callback(functools.partial(shut_down, event))
    queue.put([first, second])
    queue.put([other])
    added.set()

    assert all(it.wait(PATIENCE) for it in ended)
    assert other.futures[0].done()


def test_a_callback_of_a_cancelled_call_may_shut_down(executor: FunctionExecutor, tmp_path: Path) -> None:
    future = executor.submit(calls.slow, str(tmp_path / "started"))
    future.add_done_callback(lambda _: executor.shutdown())
    while not (tmp_path / "started").exists():
        time.sleep(0.01)

    assert future.cancel()

    assert future.job.status.state is jpsi.JobState.CANCELED


def test_shutdown_cancels_the_calls_that_have_not_started(tmp_path: Path) -> None:
    executor = FunctionExecutor("local", max_workers=1)
    futures = [executor.submit(calls.wait_for, str(tmp_path / "gate"), it) for it in range(3)]
    while not futures[0].running():
        time.sleep(0.01)

    futures[2].add_done_callback(lambda _: (tmp_path / "gate").touch())
    executor.shutdown(cancel_futures=True)

    assert [it.cancelled() for it in futures] == [False, True, True]
    assert futures[0].result() == 0


def test_calls_run_in_the_directory_of_the_caller_or_the_one_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    with FunctionExecutor("local") as executor, FunctionExecutor("local", directory=there) as other:
        assert executor.submit(calls.where).result(60) == str(here)
        assert other.submit(calls.where).result(60) == str(there)


@pytest.mark.parametrize("is_safe", ["", "1"])
def test_a_safe_path_stays_whole(is_safe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", is_safe)
    monkeypatch.setenv("PYTHONPATH", "/first:/second")
    with FunctionExecutor("local") as executor:
        path = executor.submit(lambda: __import__("sys").path).result(60)

    assert path[:2] == ["/first", "/second"]


def test_the_files_are_private(executor: FunctionExecutor, tmp_path: Path) -> None:
    executor.submit(calls.wait_for, str(tmp_path / "gate"), 1)

    found = [it for it in _functions().rglob("*") if not it.name.endswith(".new")]
    assert {it.name for it in found} >= {"worker.py", "client.json", "function", "arguments", "lock"}
    assert {stat.S_IMODE(it.stat().st_mode) for it in found if it.is_file()} == {0o600}
    assert {stat.S_IMODE(it.stat().st_mode) for it in found if it.is_dir()} == {0o700}
    (tmp_path / "gate").touch()


def test_the_job_shows_what_the_function_printed(executor: FunctionExecutor) -> None:
    future = executor.submit(print, "hello")
    future.result(60)

    output = future.job.output()
    assert output is not None
    part = output.read()
    assert part is not None
    assert part.data == b"hello\n"


def test_resources_and_the_spec_are_those_of_the_jobs(tmp_path: Path) -> None:
    given = jpsi.JobSpec(name="mine", environment={"COLOUR": "red"})
    given.resources = jpsi.ResourceSpecV1.uneven(process_count=1, processes_per_node=2)
    with FunctionExecutor("local", cores=1, memory="64MiB", walltime="5m", spec=given) as executor:
        future = executor.submit(lambda: __import__("os").environ["COLOUR"])
        assert future.result(60) == "red"

    spec = future.job.spec
    assert spec is not None
    assert (spec.name, spec.attributes.duration) == ("mine", jpsi.parse_duration("5m"))
    assert isinstance(spec.resources, jpsi.ResourceSpecV1)
    assert (spec.resources.cpu_cores_per_process, spec.resources.memory) == (1, 64 * 2**20)
    assert spec.resources.processes_per_node == 2
    assert (given.executable, given.resources.memory) == (None, None)


def test_a_job_of_several_processes_makes_each_call_once(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    spec = jpsi.JobSpec(resources=jpsi.ResourceSpecV1(process_count=3))
    with FunctionExecutor("local", spec=spec) as executor:
        assert executor.submit(calls.count, str(ran), 1).result(60) == 1
    assert ran.read_text() == "1\n"

    spec.launcher = "multiple"
    with pytest.raises(ValueError, match="launcher multiple would make each call in all 3 processes"):
        FunctionExecutor("local", spec=spec)


@pytest.mark.parametrize(("number", "copies"), [(errno.EMLINK, 2), (errno.EXDEV, 3), (errno.ENOTSUP, 3)])
def test_files_are_copied_where_they_cannot_be_linked(
    number: int, copies: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, full = os.link, []

    def refuse(source: Path, target: Path) -> None:
        inode = Path(source).stat().st_ino
        if not full:
            full.append(inode)
        if inode in full or number != errno.EMLINK:
            raise OSError(number, os.strerror(number))
        link(source, target)

    session = Session.create(tmp_path / "calls", {})
    monkeypatch.setattr(os, "link", in_this_thread(refuse, os.link))
    stored = [session.add_call(str(it), 1, b"function", b"arguments") for it in range(3)]

    assert {(it.folder / "function").read_bytes() for it in stored} == {b"function"}
    inodes = [(it.folder / "worker.py").stat().st_ino for it in stored]
    assert len({*inodes}) == copies
    session.remove()


def test_what_the_executor_refuses_is_raised_by_the_future() -> None:
    with FunctionExecutor("local", spec=jpsi.JobSpec(launcher="nonsense")) as executor:
        future: CallFuture[int] = executor.submit(calls.square, 3)

        with pytest.raises(jpsi.InvalidJobException, match="nonsense"):
            future.result(60)


def _spool() -> Path:
    (spool,) = _functions().parents[1].glob("local/*")
    return spool


def _functions() -> Path:
    return Path.home() / "state/jpsi/work/functions/local"

"""The fake batch system: its queue, its clock, and what happens to its jobs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from jpsi_engine.host.procfs import identify
from jpsi_testing.fake import FakeClock, FakeJob, FakeScheduler, FakeState, Outcome, limit
from jpsi_testing.fake.runs import start
from jpsi_testing.waiting import eventually


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def scheduler(clock: FakeClock) -> Iterator[FakeScheduler]:
    with FakeScheduler(clock, slots=2, outcome=Outcome(60)) as scheduler:
        yield scheduler


@pytest.fixture
def real() -> Iterator[FakeScheduler]:
    """Yield a scheduler that runs processes, on a clock that stands still."""
    with FakeScheduler(FakeClock(), slots=2) as scheduler:
        yield scheduler


def submit(scheduler: FakeScheduler, script: str = "", **fields: object) -> FakeJob:
    job = FakeJob(str(scheduler.next_number()), script=script, **fields)  # type: ignore[arg-type]
    return scheduler.submit(job)


def states_of(jobs: Iterable[FakeJob]) -> list[str]:
    return [job.state.value for job in jobs]


def states(scheduler: FakeScheduler) -> list[str]:
    return [job.state.value for job in scheduler.jobs]


def test_a_clock_does_not_run_backwards() -> None:
    with pytest.raises(ValueError, match="cannot go back by 1 s"):
        FakeClock().advance(-1)


def test_jobs_start_in_order_as_slots_become_free(scheduler: FakeScheduler, clock: FakeClock) -> None:
    first, second, third = (submit(scheduler) for _ in range(3))

    assert states(scheduler) == ["running", "running", "pending"]
    assert third.why == "resources"

    clock.advance(150)

    assert first.ended == second.ended == third.started
    assert third.ended == (third.started or 0) + 60
    assert states(scheduler) == ["completed"] * 3


def test_one_long_step_is_the_same_as_many_short_ones() -> None:
    def times(steps: list[float]) -> list[object]:
        clock = FakeClock(0)
        with FakeScheduler(clock, slots=1, outcome=Outcome(7), outcomes={"b": Outcome(30, 3)}) as scheduler:
            for name in "abc":
                submit(scheduler, name=name, time_limit=20)
            for step in steps:
                clock.advance(step)
            return [(job.started, job.ended, job.state, job.exit_code) for job in scheduler.jobs]

    assert times([100]) == times([1] * 100) == times([50, 50])


def test_a_large_job_is_not_overtaken(scheduler: FakeScheduler, clock: FakeClock) -> None:
    submit(scheduler)
    large = submit(scheduler, slots=2)
    small = submit(scheduler)

    assert small.state is FakeState.PENDING
    clock.advance(60)

    assert (large.state, small.state) == (FakeState.RUNNING, FakeState.PENDING)


@pytest.mark.parametrize(
    ("outcome", "state", "code", "number"),
    [
        (Outcome(1, 0), FakeState.COMPLETED, 0, None),
        (Outcome(1, 7), FakeState.FAILED, 7, None),
        (Outcome(1, -9), FakeState.FAILED, None, 9),
        (Outcome(11), FakeState.TIMEOUT, None, 15),
    ],
    ids=["ok", "code", "signal", "time limit"],
)
def test_outcomes_are_selected_by_name(
    scheduler: FakeScheduler,
    clock: FakeClock,
    outcome: Outcome,
    state: FakeState,
    code: int | None,
    number: int | None,
) -> None:
    scheduler.outcomes["x"] = outcome
    job = submit(scheduler, name="x", time_limit=10)

    clock.advance(12)

    assert (job.state, job.exit_code, job.signal) == (state, code, number)


def test_listings_lag_and_forget_but_accounting_remembers(clock: FakeClock) -> None:
    with FakeScheduler(clock, lag=2, keep=10, accounting_lag=5, outcome=Outcome(60)) as scheduler:
        job = submit(scheduler)
        states = []
        for step in (0, 2, 3, 55, 5, 5):
            clock.advance(step)
            states.append((states_of(scheduler.listed()), states_of(scheduler.accounted())))

        assert states == [
            ([], []),
            (["running"], []),
            (["running"], ["running"]),
            (["completed"], ["running"]),
            (["completed"], ["completed"]),
            ([], ["completed"]),
        ]
        scheduler.accounting = False
        assert scheduler.accounted() == []
        assert scheduler.job(job.native_id) is job


def test_the_accounting_lags_behind(clock: FakeClock) -> None:
    with FakeScheduler(clock, slots=1, accounting_lag=5, outcome=Outcome(10, 7)) as scheduler:
        submit(scheduler)
        second, third = submit(scheduler), submit(scheduler)
        clock.advance(6)
        assert states_of(scheduler.accounted()) == ["running", "pending", "pending"]

        clock.advance(4)
        scheduler.cancel(third.native_id)
        accounted = scheduler.accounted()
        assert states_of(accounted) == ["running", "pending", "pending"]
        assert [(it.started, it.ended, it.exit_code) for it in accounted[1:]] == [(None, None, None)] * 2
        assert (accounted[0].ended, accounted[0].exit_code) == (None, None)

        clock.advance(5)
        assert states_of(scheduler.accounted()) == ["failed", "running", "cancelled"]
        assert second in scheduler.accounted()


def test_a_held_job_waits_for_its_release(scheduler: FakeScheduler, clock: FakeClock) -> None:
    job = submit(scheduler, state=FakeState.HELD)
    clock.advance(1000)
    assert states(scheduler) == ["held"]

    assert scheduler.release(job.native_id)
    assert not scheduler.hold(job.native_id), "it runs"
    assert not scheduler.release("99")

    assert job.state is FakeState.RUNNING


def test_jobs_wait_for_their_time_and_their_dependencies(scheduler: FakeScheduler, clock: FakeClock) -> None:
    first = submit(scheduler)
    later = submit(scheduler, begin=clock() + 10)
    after = submit(scheduler, blocked=lambda: None if first.state.final else "dependency")
    assert (later.why, after.why) == ("begin", "dependency")

    clock.advance(70)

    assert (later.started, after.started) == (first.submitted + 10, first.ended)


def test_a_limit_bounds_the_jobs_that_run_at_a_time(scheduler: FakeScheduler, clock: FakeClock) -> None:
    waits = {"5": "first"}
    jobs = [FakeJob(number, blocked=lambda it=number: waits.get(it)) for number in "3456"]
    limit(jobs, 1, "limit")
    scheduler.submit_all(jobs)
    other = submit(scheduler)

    assert states_of([*jobs, other]) == ["running", *["pending"] * 3, "running"]
    assert [job.why for job in jobs[1:]] == ["limit", "first", "limit"]

    clock.advance(130)

    assert states_of(jobs) == ["completed", "completed", "pending", "running"]


def test_cancel_ends_unfinished_jobs(scheduler: FakeScheduler, clock: FakeClock) -> None:
    jobs = [submit(scheduler) for _ in range(3)]
    clock.advance(5)

    assert [scheduler.cancel(job.native_id) for job in jobs] == [True] * 3
    assert [job.ended for job in jobs] == [clock()] * 3
    assert states(scheduler) == ["cancelled"] * 3
    assert not scheduler.cancel(jobs[0].native_id)
    assert not scheduler.cancel("99")


def test_a_requeued_job_runs_again(scheduler: FakeScheduler, clock: FakeClock) -> None:
    starts = []
    job = submit(scheduler, starting=lambda job: starts.append(job.restarts))

    assert scheduler.requeue(job.native_id, delay=100)
    assert (job.state, job.why, job.restarts) == (FakeState.PENDING, "begin", 1)
    clock.advance(160)
    assert job.state is FakeState.COMPLETED
    assert scheduler.requeue(job.native_id), "also one that has ended"

    assert starts == [0, 1, 2]
    assert not scheduler.requeue("99")


@pytest.mark.parametrize("is_counted", [False, True], ids=["as if new", "put back"])
def test_a_controller_restored_from_an_old_state_reruns_a_job(
    scheduler: FakeScheduler, clock: FakeClock, is_counted: bool
) -> None:
    job = submit(scheduler)
    with pytest.raises(ValueError, match="has not ended"):
        scheduler.restore(job.native_id)
    clock.advance(1000)
    assert job.state.final

    assert scheduler.restore(job.native_id, is_counted=is_counted) is job

    assert (job.state, job.restarts) == (FakeState.RUNNING, is_counted)
    clock.advance(1000)
    assert job.state.final


@pytest.mark.parametrize(("requeue", "state"), [(False, FakeState.NODE_FAIL), (True, FakeState.RUNNING)])
def test_a_failed_node_ends_its_jobs(scheduler: FakeScheduler, requeue: bool, state: FakeState) -> None:
    running = [submit(scheduler), submit(scheduler)]
    waiting = submit(scheduler)

    assert scheduler.fail_node(requeue=requeue) == running

    assert [job.state for job in running] == [state] * 2
    assert waiting.state is (FakeState.PENDING if requeue else FakeState.RUNNING)


def test_the_system_may_end_a_job_as_it_likes(scheduler: FakeScheduler) -> None:
    job = submit(scheduler)

    scheduler.end_as(job.native_id, FakeState.OUT_OF_MEMORY)

    assert job.state is FakeState.OUT_OF_MEMORY


def test_a_vanished_job_is_listed_nowhere(scheduler: FakeScheduler) -> None:
    job = submit(scheduler)

    scheduler.vanish(job.native_id)

    assert scheduler.listed() == scheduler.accounted() == []
    assert scheduler.jobs == [job]
    with pytest.raises(KeyError):
        scheduler.job(job.native_id)
    with pytest.raises(KeyError):
        scheduler.vanish(job.native_id)


def test_an_id_can_be_used_once(scheduler: FakeScheduler) -> None:
    scheduler.submit(FakeJob("1"))

    with pytest.raises(ValueError, match="a job has this native id already"):
        scheduler.submit(FakeJob("1"))


def test_a_closed_scheduler_accepts_no_jobs(scheduler: FakeScheduler) -> None:
    scheduler.close()

    with pytest.raises(ValueError, match="is closed"):
        scheduler.submit(FakeJob("1"))


# Jobs that really run.


def ended(scheduler: FakeScheduler, job: FakeJob) -> FakeJob:
    assert scheduler.wait_for(lambda: job.state.final)
    return job


def test_a_script_runs_with_its_environment_directory_and_streams(
    real: FakeScheduler, tmp_path: Path
) -> None:
    script = "#!/bin/sh\npwd; echo $A; echo wrong >&2; exit 7\n"
    job = submit(
        real,
        script,
        directory=str(tmp_path),
        environment={"A": "b", "PATH": os.environ["PATH"]},
        stdout=str(tmp_path / "out"),
        stderr=str(tmp_path / "err"),
    )

    ended(real, job)

    assert (job.state, job.exit_code) == (FakeState.FAILED, 7)
    assert (tmp_path / "out").read_text() == f"{tmp_path}\nb\n"
    assert (tmp_path / "err").read_text() == "wrong\n"


@pytest.mark.parametrize("stderr", ["out", "../{folder}/out", "link"])
def test_streams_into_one_file_keep_all_that_is_written(
    real: FakeScheduler, tmp_path: Path, stderr: str
) -> None:
    (tmp_path / "link").symlink_to("out")
    script = "echo first; echo second >&2; echo third; ls /no/such 2>/dev/null || echo fourth >&2"
    streams = {"stdout": str(tmp_path / "out"), "stderr": stderr.format(folder=tmp_path.name)}

    job = submit(real, script, environment={"PATH": "/bin:/usr/bin"}, directory=str(tmp_path), **streams)
    ended(real, job)

    assert (tmp_path / "out").read_text() == "first\nsecond\nthird\nfourth\n"


def test_a_script_gets_new_files_for_each_start(real: FakeScheduler, tmp_path: Path) -> None:
    script = '#!/bin/sh\ncat "$NODES" "$OTHER"; echo changed >"$NODES"'
    files = {"NODES": "n1\nn2\n", "OTHER": "n3\n"}
    job = submit(real, script, files=files, environment={"PATH": "/bin"}, stdout=str(tmp_path / "out"))
    assert real.wait_for(lambda: job.state.final)
    assert (tmp_path / "out").read_text() == "n1\nn2\nn3\n"

    real.requeue(job.native_id)

    assert real.wait_for(lambda: job.state.final)
    assert (tmp_path / "out").read_text() == "n1\nn2\nn3\n"


def test_a_script_runs_with_its_interpreter(real: FakeScheduler, tmp_path: Path) -> None:
    job = submit(real, "#!/bin/cat -n\nx", stdout=str(tmp_path / "out"))

    ended(real, job)

    assert "2\tx" in (tmp_path / "out").read_text()


@pytest.mark.parametrize("fields", [{"directory": "/no/such"}, {"stdout": "/no/such/file"}])
def test_a_job_that_cannot_be_started_fails(real: FakeScheduler, fields: dict[str, str]) -> None:
    job = submit(real, "exit 0", **fields)

    assert job.state is FakeState.FAILED
    assert "No such file" in job.why
    assert job.exit_code is None


def test_a_signal_is_reported(real: FakeScheduler) -> None:
    job = ended(real, submit(real, "kill -SEGV $$"))

    assert (job.state, job.exit_code, job.signal) == (FakeState.FAILED, None, signal.SIGSEGV)


def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def read_line(path: Path) -> str:
    """Return the line that a job writes; the writer of the last one may not have closed the fifo yet."""
    while True:
        with path.open() as file:
            if line := file.readline():
                return line.strip()


def test_cancel_reaches_the_whole_session(real: FakeScheduler, tmp_path: Path) -> None:
    pipe = fifo(tmp_path)
    job = submit(real, f"sleep 1000 & echo $! > {pipe}; wait")
    child = identify(int(read_line(pipe)))
    assert child is not None

    real.cancel(job.native_id)

    assert ended(real, job).state is FakeState.CANCELLED
    # the end of a child is no event of the scheduler
    assert eventually(lambda: not child.is_alive())


def test_a_process_that_ignores_term_is_killed_at_its_limit(tmp_path: Path) -> None:
    pipe, clock = fifo(tmp_path), FakeClock()
    with FakeScheduler(clock, kill_delay=5) as scheduler:
        job = submit(
            scheduler, f"trap 'echo term > {pipe}' TERM; echo up > {pipe}; while :; do sleep 0.01; done"
        )
        read_line(pipe)

        scheduler.cancel(job.native_id)
        assert read_line(pipe) == "term"
        clock.advance(4.9)
        assert (job.state, job.ending) == (FakeState.RUNNING, FakeState.CANCELLED)
        clock.advance(0.1)

        assert ended(scheduler, job).signal == signal.SIGKILL


@pytest.mark.parametrize(
    ("end", "state"),
    [("cancel", FakeState.CANCELLED), ("limit", FakeState.TIMEOUT), ("requeue", FakeState.COMPLETED)],
)
def test_a_job_that_exits_0_on_term_keeps_its_ending(
    real: FakeScheduler, tmp_path: Path, end: str, state: FakeState
) -> None:
    pipe = fifo(tmp_path)
    once = f"[ -e {tmp_path}/2 ] && exit; : > {tmp_path}/2"
    script = f"{once}; trap 'exit 0' TERM; echo > {pipe}; while :; do sleep 0.01; done"
    job = submit(real, script, time_limit=60)
    read_line(pipe)

    if end == "cancel":
        real.cancel(job.native_id)
    elif end == "limit":
        real.clock.advance(60)  # type: ignore[attr-defined]  # it is a FakeClock
    else:
        real.requeue(job.native_id)

    assert ended(real, job).state is state
    assert (job.exit_code, job.restarts) == (0, end == "requeue")


@pytest.mark.parametrize("ends", [("requeue", "cancel"), ("cancel", "requeue")])
def test_a_cancelled_job_is_not_requeued(real: FakeScheduler, tmp_path: Path, ends: tuple[str, str]) -> None:
    pipe = fifo(tmp_path)
    job = submit(real, f"trap 'read x < {pipe}; exit 0' TERM; echo > {pipe}; while :; do sleep 0.01; done")
    read_line(pipe)

    for end in ends:
        getattr(real, end)(job.native_id)
    pipe.write_text("go on\n")

    assert ended(real, job).state is FakeState.CANCELLED


@pytest.mark.parametrize("kill", [True, False])
def test_the_processes_of_a_vanished_job_are_killed_or_run_on(
    real: FakeScheduler, tmp_path: Path, kill: bool
) -> None:
    pipe = fifo(tmp_path)
    job = submit(real, f"trap 'exit 3' TERM; echo $$ > {pipe}; cat {pipe}; echo done > {tmp_path}/done")
    pid = int(read_line(pipe))

    real.vanish(job.native_id, kill=kill)
    if not kill:
        pipe.write_text("go on")
    assert eventually(lambda: not Path(f"/proc/{pid}").exists())

    assert (tmp_path / "done").exists() is not kill


def test_no_process_of_a_killed_job_sees_the_end_of_another(
    real: FakeScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a runner, which would record that its program was killed."""
    pipe = fifo(tmp_path)
    job = submit(real, f"sleep 1000 & echo $! > {pipe}; wait; echo > {tmp_path}/seen; exec sleep 1000")
    child = identify(int(read_line(pipe)))
    assert child is not None
    leader, kill = os.getsid(child.pid), os.kill

    def kill_and_pause(pid: int, number: int) -> None:
        kill(pid, number)
        if (pid, number) == (child.pid, signal.SIGKILL):
            assert eventually(lambda: not child.is_alive())
            assert not eventually((tmp_path / "seen").exists, 0.2)

    monkeypatch.setattr(os, "kill", kill_and_pause)
    monkeypatch.setattr("jpsi_testing.fake.runs._members", lambda _: [child.pid, leader])

    real.vanish(job.native_id)

    assert eventually(lambda: not Path(f"/proc/{leader}").exists())


def test_processes_are_signalled_as_they_were_started(
    real: FakeScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner gets a signal before its program, also if the system has begun again with the lowest pids."""
    pipe = fifo(tmp_path)
    job = submit(real, f"echo $$ > {pipe}; exec sleep 1000")
    leader = int(read_line(pipe))
    signalled: list[int] = []
    with monkeypatch.context() as patch:
        pids = [leader + 1, leader, 2, leader + 2, 1]
        patch.setattr(os, "listdir", lambda _: ["self", *map(str, pids)])
        patch.setattr(os, "getsid", lambda _: leader)
        patch.setattr(os, "kill", lambda pid, _: signalled.append(pid))

        real.cancel(job.native_id)

    assert signalled == 2 * [leader, leader + 1, leader + 2, 1, 2]


def test_an_ended_job_is_not_signalled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may have its pid by then."""
    codes: list[int] = []
    script = start(FakeJob("1", script="exit 3"), tmp_path / "script", codes.append)
    script.join(120)
    assert codes == [3]

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", lambda _: pytest.fail("it looks for the processes of an ended job"))
        script.send(signal.SIGKILL)


def test_close_kills_running_jobs(tmp_path: Path) -> None:
    pipe = fifo(tmp_path)
    with FakeScheduler() as scheduler:
        submit(scheduler, f"trap '' TERM; echo $$ > {pipe}; sleep 1000; sleep 1000")
        pid = int(read_line(pipe))

    assert not Path(f"/proc/{pid}").exists()


def test_real_time_moves_jobs_too() -> None:
    with FakeScheduler(kill_delay=0, outcomes={"played": Outcome(0.01, 3)}) as scheduler:
        limited = submit(scheduler, "sleep 1000", time_limit=0.01, environment={"PATH": os.environ["PATH"]})
        simulated = submit(scheduler, name="played")

        assert ended(scheduler, limited).state is FakeState.TIMEOUT
        assert ended(scheduler, simulated).exit_code == 3


def test_wait_for_times_out(scheduler: FakeScheduler) -> None:
    assert not scheduler.wait_for(lambda: False, timeout=0.01)


def test_output_and_arguments_are_those_of_the_job(tmp_path: Path) -> None:
    """The directory of the program of the fake does not matter."""
    with FakeScheduler() as scheduler:
        job = FakeJob(
            "1", script='echo "$1|$2"', arguments=("a b", ""), directory=str(tmp_path), stdout="out"
        )
        scheduler.submit(job)
        assert scheduler.wait_for(lambda: job.state.final)

    assert (tmp_path / "out").read_text() == "a b|\n"


def test_simulated_jobs_need_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that no test closes must leave nothing behind."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    submit(FakeScheduler(FakeClock(), outcome=Outcome(60)))

    assert not list(tmp_path.iterdir())

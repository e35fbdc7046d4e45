"""Jobs that others wait for: one that left its exit marker has ended, even if the queue still lists it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pluggy
import pytest

from jpsi.contract.config import BatchConfig
from jpsi.contract.engine import EngineSetup, Submission
from jpsi.contract.hookspecs import PROJECT, ExecutorHooks, SubmitContext, hookimpl
from jpsi.contract.shell import ShellLine
from jpsi.layers import default_hooks
from jpsi.model.dependencies import Dependency, DependencyKind
from jpsi.model.errors import InvalidJobException, SubmitException
from jpsi.model.spec import JobAttributes, JobSpec
from jpsi.model.states import JobState, JobStatus, Reason
from jpsi_engine.batch import BatchEngine
from jpsi_engine.spool import record_end
from jpsi_engine.spool.spool import Intent, Spool
from jpsi_testing import FakeTransport, toy, toy_fake
from jpsi_testing.fake import FakeClock, FakeJob, FakeScheduler, FakeState, Outcome


class DependencyRecorder:
    """A layer that records the dependencies of the last rendered script."""

    after: tuple[Dependency, ...] = ()

    @hookimpl(wrapper=True)
    def render_script(self, context: SubmitContext) -> Iterator[None]:
        self.after = context.after
        return (yield)  # type: ignore[return-value]  # what pluggy makes of wrappers has no type


@pytest.fixture
def layer() -> DependencyRecorder:
    return DependencyRecorder()


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    """Yield a fake batch system whose jobs run for a minute on a clock that stands still."""
    with FakeScheduler(FakeClock(), slots=2, outcome=Outcome(60)) as scheduler:
        yield scheduler


@pytest.fixture
def engine(tmp_path: Path, layer: DependencyRecorder, scheduler: FakeScheduler) -> BatchEngine:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ExecutorHooks)
    for it in (default_hooks, toy, layer):
        manager.register(it)
    setup = EngineSetup(
        executor="toy",
        version="1",
        # answers are recent for longer than any test takes
        config=BatchConfig(work_directory=tmp_path, shortest_interval=timedelta(hours=1)),
        transport=FakeTransport(scheduler, toy_fake),
        publish=lambda job_id, status: None,
        process_engine=lambda setup: pytest.fail("a batch system needs no processes"),
    )
    return BatchEngine(setup, cast("ExecutorHooks", manager.hook))


def submit(engine: BatchEngine, job_id: str, **attributes: Any) -> str:
    spec = JobSpec("/bin/true", directory="/", attributes=JobAttributes(**attributes))
    return engine.submit(Submission(job_id=job_id, attempt=1, spec=spec, launch=[ShellLine('exec "$@"')]))


def end(engine: BatchEngine, job_id: str, code: int) -> None:
    """Let a job report its end, and the engine be done with it."""
    Path(engine._spool.events, f"{job_id}.1.active").touch()
    Path(engine._spool.events, f"{job_id}.1.exit.run.{code}").touch()
    monitor, _ = engine._open()
    job = monitor.get(job_id)
    assert job is not None
    monitor.follow([job], 0.0)
    monitor.collect_markers(0.0)
    assert monitor.get(job_id) is None


def test_a_job_that_has_ended_well_is_not_waited_for(engine: BatchEngine, layer: DependencyRecorder) -> None:
    native_id = submit(engine, "a1")
    end(engine, "a1", 0)

    submit(engine, "a2", after=[native_id])

    assert layer.after == ()


def test_a_job_that_has_failed_cannot_be_waited_for(engine: BatchEngine) -> None:
    native_id = submit(engine, "a1")
    end(engine, "a1", 3)

    with pytest.raises(InvalidJobException, match="FAILED"):
        submit(engine, "a2", after=[native_id])


def test_a_job_that_runs_is_waited_for(engine: BatchEngine, layer: DependencyRecorder) -> None:
    native_id = submit(engine, "a1")

    submit(engine, "a2", after=[native_id])

    assert layer.after == (Dependency(native_id),)


def test_a_job_that_another_process_follows_is_waited_for(
    engine: BatchEngine, layer: DependencyRecorder
) -> None:
    native_id = submit(engine, "a1")
    engine._reset_state()

    submit(engine, "a2", after=[native_id])

    assert layer.after == (Dependency(native_id),)


def test_a_living_job_is_waited_for_and_not_one_of_ours_that_had_its_native_id(
    engine: BatchEngine, scheduler: FakeScheduler, layer: DependencyRecorder
) -> None:
    native_id = submit(engine, "a1")
    end(engine, "a1", 0)
    scheduler.vanish(native_id)
    scheduler.submit(FakeJob(native_id, tag="another"))

    submit(engine, "a2", after=[native_id])

    assert layer.after == (Dependency(native_id),)


# --------------------------------------------------------------------------------------------- arrays


def submit_array(engine: BatchEngine, *job_ids: str) -> str:
    """Submit an array; return the native id of the whole array."""
    spec = JobSpec("/bin/true", directory="/")
    launch = [ShellLine('exec "$@"')]
    jobs = [Submission(job_id=it, attempt=1, spec=spec, launch=launch) for it in job_ids]
    native_ids: list[str] = []
    engine.submit_many(jobs, lambda outcomes: native_ids.extend(map(str, outcomes.values())))
    return native_ids[0].partition(".")[0]


def foreign_array(scheduler: FakeScheduler, *states: FakeState | None) -> str:
    """Add an array that jpsi did not submit; return its native id. The elements without a state run."""
    for index, state in enumerate(states, 1):
        scheduler.submit(FakeJob(f"1700.{index}"))
        if state is not None:
            scheduler.end_as(f"1700.{index}", state)
    return "1700"


def test_an_array_is_waited_for_by_its_own_native_id(engine: BatchEngine, layer: DependencyRecorder) -> None:
    array = submit_array(engine, "a1", "a2")
    end(engine, "a1", 0)

    submit(engine, "b", after=[array])

    assert layer.after == (Dependency(array),)


def test_an_array_has_completed_if_all_its_elements_have(
    engine: BatchEngine, scheduler: FakeScheduler, layer: DependencyRecorder
) -> None:
    array = give_again(engine, scheduler)

    submit(engine, "b", after=[array])

    assert layer.after == ()


def test_an_array_has_failed_if_one_of_its_elements_has(
    engine: BatchEngine, scheduler: FakeScheduler, layer: DependencyRecorder
) -> None:
    array = submit_array(engine, "a1", "a2")
    for job_id, index in (("a1", 1), ("a2", 2)):
        end(engine, job_id, 3 if index == 1 else 0)
        scheduler.vanish(f"{array}.{index}")

    with pytest.raises(InvalidJobException, match=f"{array}.*FAILED"):
        submit(engine, "b", after=[array])
    submit(engine, "b", after=[Dependency(array, DependencyKind.NOTOK)])

    assert layer.after == ()


def test_an_array_of_others_is_waited_for(
    engine: BatchEngine, scheduler: FakeScheduler, layer: DependencyRecorder
) -> None:
    array = foreign_array(scheduler, FakeState.COMPLETED, None)

    submit(engine, "a", after=[array])

    assert layer.after == (Dependency(array),)


@pytest.mark.parametrize("is_forgotten", [False, True])
@pytest.mark.parametrize("kind", DependencyKind)
def test_of_an_ended_array_of_others_nothing_is_decided(
    engine: BatchEngine, scheduler: FakeScheduler, kind: DependencyKind, is_forgotten: bool
) -> None:
    """The queue and the accounting may not have all of its elements."""
    array = foreign_array(scheduler, FakeState.COMPLETED, FakeState.FAILED)
    if is_forgotten:
        scheduler.keep = 10
        cast("FakeClock", scheduler.clock).advance(100)

    with pytest.raises(InvalidJobException, match=f"array {array}, of which .* so name the elements"):
        submit(engine, "a", after=[Dependency(array, kind)])


def give_again(engine: BatchEngine, scheduler: FakeScheduler, *states: FakeState | None) -> str:
    """Let an array of jpsi's complete, and others have its native id; return that."""
    array = submit_array(engine, "a1", "a2")
    for job_id, element in (("a1", f"{array}.1"), ("a2", f"{array}.2")):
        end(engine, job_id, 0)
        scheduler.vanish(element)
    for index, state in enumerate(states, 1):
        scheduler.submit(FakeJob(f"{array}.{index}", tag="another"))
        if state is not None:
            scheduler.end_as(f"{array}.{index}", state)
    return array


def test_a_living_array_is_waited_for_and_not_one_of_ours_that_had_its_native_id(
    engine: BatchEngine, scheduler: FakeScheduler, layer: DependencyRecorder
) -> None:
    array = give_again(engine, scheduler, FakeState.COMPLETED, FakeState.COMPLETED, None)

    submit(engine, "b", after=[array])

    assert layer.after == (Dependency(array),)


def test_an_array_of_others_that_failed_is_not_taken_for_one_of_ours_that_had_its_native_id(
    engine: BatchEngine, scheduler: FakeScheduler
) -> None:
    array = give_again(engine, scheduler, FakeState.FAILED, FakeState.FAILED)

    with pytest.raises(InvalidJobException, match="name the elements"):
        submit(engine, "b", after=[array])


def test_a_job_of_others_that_failed_is_not_taken_for_an_array_of_ours_that_had_its_native_id(
    engine: BatchEngine, scheduler: FakeScheduler
) -> None:
    array = give_again(engine, scheduler)
    scheduler.submit(FakeJob(array, tag="another"))
    scheduler.end_as(array, FakeState.FAILED)

    with pytest.raises(InvalidJobException, match="FAILED"):
        submit(engine, "b", after=[array])


# --------------------------------------------------------------------------------------- what it costs

COUNT = 40


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which reads of intents add the job."""
    read: list[str] = []
    last_intent = Spool.last_intent

    def noted(spool: Spool, job_id: str) -> Intent | None:
        read.append(job_id)
        return last_intent(spool, job_id)

    monkeypatch.setattr(Spool, "last_intent", noted)
    return read


def test_a_dependency_on_a_job_that_was_just_accepted_needs_no_query(
    engine: BatchEngine, scheduler: FakeScheduler, layer: DependencyRecorder, read: list[str]
) -> None:
    """Each waits for the one before."""
    native_id = submit(engine, "a0")
    for number in range(1, COUNT):
        before, native_id = native_id, submit(engine, f"a{number}", after=[native_id])
        assert layer.after == (Dependency(before),)

    assert scheduler.log.count("tstat") == 0
    assert read == []


def test_many_dependencies_on_old_jobs_take_one_query(
    engine: BatchEngine, scheduler: FakeScheduler, layer: DependencyRecorder, read: list[str]
) -> None:
    """Each for one of its own."""
    native_ids = [submit(engine, f"a{number}") for number in range(COUNT)]
    for job in engine._open()[0].all():
        job.is_followed, job.accepted_at = True, float("-inf")

    for number, native_id in enumerate(native_ids):
        submit(engine, f"b{number}", after=[native_id])
        assert layer.after == (Dependency(native_id),)

    assert scheduler.log.count("tstat") == 1
    assert read == []


def test_folder_of_a_job_of_another_process_is_looked_for_once(
    engine: BatchEngine, layer: DependencyRecorder, read: list[str]
) -> None:
    native_ids = [submit(engine, f"a{number}") for number in range(COUNT)]
    engine._reset_state()

    for number, native_id in enumerate(native_ids):
        submit(engine, f"b{number}", after=[native_id])
        assert layer.after == (Dependency(native_id),)

    assert len(read) <= 4 * COUNT, "each folder is read when it is new, and when it is queried"


def test_many_dependencies_on_a_forgotten_job_take_one_accounting_query(
    engine: BatchEngine, scheduler: FakeScheduler
) -> None:
    scheduler.keep = 10
    foreign_job = scheduler.submit(FakeJob("1700")).native_id
    cast("FakeClock", scheduler.clock).advance(100)

    for number in range(COUNT):
        submit(engine, f"a{number}", after=[foreign_job])

    queries = [call for call in scheduler.log.of("tstat") if "--finished" in call.invocation.argv]
    assert len(queries) == 1


@pytest.mark.parametrize("has_ended", [False, True])
def test_many_dependencies_on_one_array_take_one_query_of_its_elements(
    engine: BatchEngine, scheduler: FakeScheduler, has_ended: bool
) -> None:
    array = submit_array(engine, "a1", "a2")
    for job_id, index in (("a1", 1), ("a2", 2)) if has_ended else ():
        end(engine, job_id, 0)
        scheduler.vanish(f"{array}.{index}")

    for number in range(COUNT):
        submit(engine, f"b{number}", after=[array])

    assert scheduler.log.count("tstat") <= 6, "however many jobs wait for it"


def test_many_dependencies_on_an_ended_job_of_others_take_one_query_of_elements(
    engine: BatchEngine, scheduler: FakeScheduler
) -> None:
    scheduler.submit(FakeJob("1700"))
    scheduler.end_as("1700", FakeState.COMPLETED)

    for number in range(COUNT):
        submit(engine, f"a{number}", after=["1700"])

    assert scheduler.log.count("tstat") <= 2


def test_many_dependencies_on_one_ended_job_take_one_query_of_its_native_id(
    engine: BatchEngine, scheduler: FakeScheduler
) -> None:
    native_id = submit(engine, "a1")
    end(engine, "a1", 0)
    scheduler.vanish(native_id)

    for number in range(COUNT):
        submit(engine, f"b{number}", after=[native_id])

    assert scheduler.log.count("tstat") == 2, "by its tag, and by its native id"


def test_answer_that_does_not_know_a_job_is_not_believed_of_one_that_came_later(
    engine: BatchEngine, scheduler: FakeScheduler, layer: DependencyRecorder
) -> None:
    with pytest.raises(InvalidJobException, match="1700, which is not known"):
        submit(engine, "a1", after=["1700"])
    scheduler.submit(FakeJob("1700"))

    submit(engine, "a1", after=["1700"])

    assert layer.after == (Dependency("1700"),)


def test_a_job_that_this_client_cancelled_is_queried_again(
    engine: BatchEngine, scheduler: FakeScheduler
) -> None:
    native_id = submit(engine, "a1")
    engine.cancel("a1")

    with pytest.raises(InvalidJobException, match="CANCELED"):
        submit(engine, "a2", after=[native_id])


def test_an_unpublished_end_is_collected(engine: BatchEngine) -> None:
    """The engine does not poll the queue, as the job was accepted just now."""
    native_id = submit(engine, "a1")
    monitor, _ = engine._open()
    job = monitor.get("a1")
    assert job is not None
    monitor.follow([job], 0.0)
    Path(engine._spool.events, "a1.1.active").touch()
    Path(engine._spool.events, "a1.1.exit.run.3").touch()

    with pytest.raises(InvalidJobException, match="FAILED"):
        submit(engine, "a2", after=[native_id])

    assert monitor.get("a1") is None


@pytest.mark.parametrize("kind", DependencyKind)
@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_job_of_which_another_attempt_may_follow_has_not_ended(
    engine: BatchEngine, scheduler: FakeScheduler, kind: DependencyKind, is_recorded: bool
) -> None:
    native_id = submit(engine, "a1", retry={3: 1, "delay": 3600})
    # no thread of this client submits it again
    engine._reset_state()
    scheduler.end_as(native_id, FakeState.FAILED)
    spool = engine._spool
    Path(spool.folder("a1"), "a1.1.exit.run.3").touch()
    if is_recorded:
        status = JobStatus(JobState.FAILED, exit_code=3, reason=Reason.EXIT_CODE)
        assert record_end(spool, "a1", 1, status, None)["retry"]

    with pytest.raises(SubmitException, match="does not say at present") as e:
        submit(engine, "a2", after=[Dependency(native_id, kind)])

    assert e.value.transient


def test_the_last_end_of_a_job_with_retries_counts(engine: BatchEngine, layer: DependencyRecorder) -> None:
    native_id = submit(engine, "a1", retry={3: 1})
    engine._reset_state()
    status = JobStatus(JobState.FAILED, exit_code=4, reason=Reason.EXIT_CODE)
    record_end(engine._spool, "a1", 1, status, None)

    submit(engine, "a2", after=[Dependency(native_id, DependencyKind.NOTOK)])

    assert layer.after == ()


def test_a_job_with_retries_that_runs_is_waited_for(engine: BatchEngine, layer: DependencyRecorder) -> None:
    native_id = submit(engine, "a1", retry={3: 1})

    submit(engine, "a2", after=[native_id])

    assert layer.after == (Dependency(native_id),)


def test_another_thread_may_store_an_accounted_end_meanwhile(
    engine: BatchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = engine._dependency_states
    ended = (time.monotonic(), JobState.COMPLETED)

    class Shared(dict[str, tuple[float, JobState]]):
        """A dict to which another thread adds while it is read."""

        def items(self) -> Any:
            for item in super().items():
                yield item
                self[f"other.{len(self)}"] = ended

    states._accounted = Shared({"1": ended, "2": ended})
    monkeypatch.setattr(engine._backend, "query_accounting", lambda _: {})

    assert states._accounting_states({"1": None, "3": None}) == {"1": JobState.COMPLETED}

"""Executors of one user over one batch system: they ask together, and each publishes what it knows."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import attrs
import pytest

from jpsi.contract.command import Command, CommandResult
from jpsi.contract.config import BatchConfig
from jpsi.contract.engine import EngineSetup, Submission
from jpsi.contract.hookspecs import Capabilities, ExecutorHooks, hookimpl
from jpsi.contract.observation import Observation
from jpsi.contract.shell import ShellLine
from jpsi.layers import default_hooks
from jpsi.layers.layer import Layer, relay
from jpsi.model.errors import SubmitException
from jpsi.model.spec import JobSpec
from jpsi.model.states import JobState, JobStatus, Reason
from jpsi_engine.batch import BatchEngine
from jpsi_engine.monitor import job_monitor as module
from jpsi_engine.monitor.job_monitor import JobMonitor
from jpsi_engine.monitor.poll_loop import PollLoop
from jpsi_engine.monitor.publisher import Publisher
from jpsi_engine.scheduler.job_view import JobView
from jpsi_engine.scheduler.snapshot import Snapshot
from jpsi_engine.spool import encode_status
from jpsi_engine.spool.arrays import ArrayMember
from jpsi_engine.spool.layout import array_tag
from jpsi_engine.verdict.batch_verdict import Facts, judge
from jpsi_engine.verdict.marker_verdict import CANCEL, Stop
from jpsi_testing import FakeTransport, toy, toy_fake
from jpsi_testing.fake import FakeClock, FakeJob, FakeScheduler, FakeState, Outcome
from jpsi_testing.late_files import LateFiles

GRACE = 90.0
PATIENCE = 20.0


class ListsAll:
    """Lies over the toy: each question is about all jobs of the user."""

    @hookimpl
    def capabilities(self) -> Capabilities:
        return Capabilities(default_launcher="multiple", id_variable="TOY_JOB_ID", ids_per_query=None)


class OneByOne:
    """Lies over the toy: its accounting is asked about one name at a time."""

    @hookimpl
    def capabilities(self) -> Capabilities:
        return attrs.evolve(toy.capabilities(), ids_per_accounting=1)


class HearsOfWhom:
    """Lies over the toy: writes down which jobs an answer is read for."""

    def __init__(self) -> None:
        self.meant: list[Sequence[str] | None] = []

    @hookimpl
    def parse_status(self, native_ids: Sequence[str] | None) -> None:
        self.meant.append(native_ids)


@attrs.define(eq=False)
class Client:
    """One process of the user; its rounds take place when a test says so."""

    root: Path
    scheduler: FakeScheduler
    clock: FakeClock
    overrides: tuple[object, ...] = ()
    config: BatchConfig | None = None
    target: str = ""
    published: list[tuple[str, JobStatus]] = attrs.field(factory=list)
    #: Called before a status is taken down.
    on_publish: Callable[[], None] = lambda: None
    monitor: JobMonitor = attrs.field(init=False)
    engine: BatchEngine = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        layers = [Layer(f"layer {at}", it) for at, it in enumerate((default_hooks, toy, *self.overrides))]
        setup = EngineSetup(
            executor="toy",
            version="1",
            target=self.target,
            config=self.config
            or BatchConfig(work_directory=self.root, grace=timedelta(seconds=GRACE), network_files=True),
            transport=FakeTransport(self.scheduler, toy_fake),
            publish=self._publish,
            process_engine=lambda setup: pytest.fail("a batch system needs no processes"),
        )
        self.engine = BatchEngine(setup, cast("ExecutorHooks", relay(layers, (ExecutorHooks,))))
        self.monitor, _ = self.engine._open()

    def _publish(self, job_id: str, status: JobStatus) -> None:
        self.on_publish()
        self.published.append((job_id, status))

    def submit(self, *job_ids: str) -> list[JobView]:
        """Submit jobs and follow them."""
        for job_id in job_ids:
            spec = JobSpec("/bin/true", directory=self.root)
            self.engine.submit(
                Submission(job_id=job_id, attempt=1, spec=spec, launch=[ShellLine('exec "$@"')])
            )
        jobs = [self.job(job_id) for job_id in job_ids]
        for job in jobs:
            self.monitor.follow([job], self.clock())
        return jobs

    def job(self, job_id: str) -> JobView:
        job = self.monitor.get(job_id)
        assert job is not None
        return job

    def info(self, job: JobView) -> Observation | None:
        return self.monitor.info(job, self.clock, self.clock.advance)

    def ask(self) -> None:
        self.monitor.poll(self.clock)

    def leave(self, job_id: str, *markers: str) -> None:
        """Leave markers as the runner would."""
        for marker in markers:
            path = Path(self.engine._spool.events, f"{job_id}.1.{marker}")
            path.touch()
            os.utime(path, (self.clock(), self.clock()))

    def states(self, job_id: str) -> list[JobState]:
        return [status.state for name, status in self.published if name == job_id]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def scheduler(clock: FakeClock) -> Iterator[FakeScheduler]:
    """A batch system whose jobs are only played: they leave no markers of their own."""
    with FakeScheduler(clock, outcome=Outcome(seconds=60), slots=1) as scheduler:
        yield scheduler


@pytest.fixture
def client(tmp_path: Path, scheduler: FakeScheduler, clock: FakeClock, no_threads: None) -> Client:
    return Client(tmp_path, scheduler, clock)


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PollLoop, "start", lambda poll_loop: None)
    monkeypatch.setattr(BatchEngine, "_prune", lambda engine: None)


def another(client: Client, *overrides: object) -> Client:
    """Another process of the same user."""
    return Client(client.root, client.scheduler, client.clock, overrides or client.overrides)


def questions(client: Client) -> list[tuple[str, ...]]:
    calls = (call.invocation.argv for call in client.scheduler.log.of("tstat"))
    return [tuple(argv[1:]) for argv in calls if "--finished" not in argv]


# ---------------------------------------------------------------------------------------------- sharing


def test_two_processes_ask_once(client: Client) -> None:
    other = another(client)
    other.submit("b1")
    other.ask()
    client.submit("a1")
    client.clock.advance(2)

    client.ask()
    other.ask()

    assert questions(client) == [("1",), ("1", "2")]
    assert client.states("a1") == [JobState.QUEUED]
    assert other.states("b1") == [JobState.ACTIVE]


def test_answer_begun_before_a_submission_never_counts_as_absence(client: Client) -> None:
    """The one answer lists all jobs of the user, as they were before."""
    client = another(client, ListsAll())
    other = another(client)
    first = client.submit("a1")[0]
    other.submit("b1")
    other.clock.advance(1)
    other.ask()
    client.clock.advance(0.1)
    second = client.submit("a2")[0]
    client.clock.advance(0.5)

    client.ask()

    assert questions(client) == [("--all",)]
    assert (first.queued is not None, second.queued) == (True, None)
    assert second.absent_since is None
    client.clock.advance(GRACE)
    client.ask()
    assert JobState.FAILED not in client.states("a2")


def test_it_is_known_which_jobs_are_meant_where_all_are_listed(client: Client) -> None:
    """A plugin need not tell of every element of an array that nobody follows."""
    hears = HearsOfWhom()
    other = another(client, ListsAll(), hears)
    job = other.submit("b1")[0]

    other.ask()

    assert hears.meant == [[job.native_id]]
    assert job.queued is not None


def test_answer_of_another_process_from_before_the_exit_marker_tells_nothing_of_the_end(
    client: Client,
) -> None:
    other = another(client)
    job = client.submit("a1")[0]
    client.ask()
    other.engine.attach("b1", job.native_id)
    other.monitor.follow([other.job("b1")], other.clock())
    other.clock.advance(2)
    other.ask()
    client.clock.advance(0.1)
    client.leave("a1", "active", "signalled", "exit.run.0")
    client.monitor.collect_markers(client.clock())

    client.ask()

    assert job.queued is None
    assert not any(state.final for state in client.states("a1"))


def test_an_end_that_another_process_has_written_down_is_told_by_all(client: Client) -> None:
    (job,) = client.submit("a1")
    failed = JobStatus(JobState.FAILED, exit_code=0, reason=Reason.STAGING)
    client.engine._spool.finish("a1", 1, encode_status(failed))
    client.leave("a1", "active", "exit.run.0")

    client.monitor.collect_markers(client.clock())

    (told,) = [status for name, status in client.published if name == job.job_id and status.final]
    assert (told.state, told.reason) == (JobState.FAILED, Reason.STAGING)


def test_processes_with_other_configurations_that_ask_otherwise_do_not_share(client: Client) -> None:
    class Elsewhere:
        @hookimpl
        def query(self, native_ids: list[str] | None) -> object:
            command = toy.query(native_ids)
            return attrs.evolve(command, environment={"TOY_SERVER": "elsewhere"})

    other = another(client, Elsewhere())
    client.submit("a1")
    other.submit("b1")
    client.ask()
    client.clock.advance(2)

    other.ask()

    assert questions(client) == [("1",), ("2",)]


@pytest.mark.parametrize(
    ("name", "is_shared"), [("TOY_SERVER", False), ("TERM", True)], ids=["of the system", "of no concern"]
)
def test_variable_that_may_lead_to_another_system_keeps_processes_apart(
    client: Client, monkeypatch: pytest.MonkeyPatch, name: str, is_shared: bool
) -> None:
    other = another(client)
    client.submit("a1")
    other.submit("b1")
    client.ask()
    client.clock.advance(2)
    client.ask()
    client.clock.advance(2)

    monkeypatch.setenv(name, "elsewhere")
    other.ask()

    assert questions(client)[-1] == (("1", "2") if is_shared else ("2",))


def test_plugin_that_cannot_ask_for_all_jobs_asks_alone(client: Client) -> None:
    class Limited:
        @hookimpl
        def query(self, native_ids: list[str] | None) -> object:
            assert native_ids is not None
            return toy.query(native_ids)

    client = another(client, Limited())
    other = another(client)
    client.submit("a1")
    other.submit("b1")

    client.ask()
    other.ask()

    assert questions(client) == [("1",), ("2",)]
    assert (client.states("a1"), other.states("b1")) == ([JobState.ACTIVE], [JobState.QUEUED])


# ------------------------------------------------------------------------------------------------- info


@pytest.mark.clause("bulk-status", "python-polling-each")
def test_info_about_every_job_is_one_question(client: Client) -> None:
    jobs = client.submit(*(f"a{number}" for number in range(300)))

    told = [client.info(job) for job in jobs]

    assert all(it is not None for it in told)
    assert len(questions(client)) == 2, "200 ids at a time"
    assert client.states("a0") == [JobState.ACTIVE], "it counts as a round"
    assert client.states("a299") == [JobState.QUEUED]


def test_info_is_asked_for_again_after_the_shortest_interval(client: Client) -> None:
    job = client.submit("a1")[0]
    client.info(job)
    client.clock.advance(1.9)
    client.info(job)
    assert len(questions(client)) == 1

    client.clock.advance(0.2)
    client.info(job)

    assert len(questions(client)) == 2


def test_info_about_a_job_that_came_after_the_answer_is_asked_for(client: Client) -> None:
    client.info(client.submit("a1")[0])
    client.clock.advance(0.1)

    told = client.info(client.submit("a2")[0])

    assert told is not None
    assert questions(client) == [("1",), ("1", "2")]


def test_info_about_what_was_just_changed_is_new(client: Client) -> None:
    job = client.submit("a1", "a2")[1]
    client.info(job)
    client.clock.advance(0.1)
    client.scheduler.hold(job.native_id)
    client.monitor.note_change(job, client.clock())

    told = client.info(job)

    assert told is not None
    assert told.native_state == "HELD"


def test_job_that_is_changed_over_and_over_is_told_of_all_the_same(client: Client) -> None:
    job = client.submit("a1")[0]
    transport = client.engine._backend._transport
    client.clock.advance(2)
    run = transport.run

    def slow(command: Command, keep: int | None = None) -> CommandResult:
        result = run(command, keep)
        client.clock.advance(1)
        client.monitor.note_change(job, client.clock())
        return result

    transport.run = slow  # type: ignore[method-assign]  # a batch system that takes its time

    client.ask()

    assert client.states("a1") == [JobState.ACTIVE]


def test_info_takes_what_another_process_was_told(client: Client) -> None:
    other = another(client)
    jobs = client.submit("a1"), other.submit("b1")
    client.info(jobs[0][0])
    client.clock.advance(0.5)
    other.info(jobs[1][0])
    client.clock.advance(0.5)

    told = client.info(jobs[0][0])

    assert told is not None
    assert questions(client) == [("1",), ("1", "2")]


def test_question_that_info_asked_puts_off_the_next_one(client: Client) -> None:
    job = client.submit("a1")[0]
    client.clock.advance(1)

    client.info(job)

    due = client.monitor.next_poll_time()
    assert due is not None
    assert due >= client.clock() + 2


def test_info_without_an_answer_says_so_and_changes_nothing(client: Client) -> None:
    job = client.submit("a1")[0]
    client.scheduler.faults.down()

    with pytest.raises(SubmitException, match="cannot contact"):
        client.info(job)

    assert client.published == []


def test_info_about_a_job_that_the_system_does_not_mention_is_none(client: Client) -> None:
    client.engine.attach("a1", "999")
    client.monitor.follow([client.job("a1")], client.clock())

    assert client.info(client.job("a1")) is None


# ------------------------------------------------------------------------------------------- publishing


def test_statuses_are_published_under_no_lock(client: Client) -> None:
    """Whoever is told may wait for a thread that asks for the same job."""
    done: list[bool] = []

    def publish() -> None:
        if not done:
            thread = threading.Thread(target=lambda: client.monitor.follow([job], client.clock()))
            thread.start()
            thread.join(PATIENCE)
            done.append(not thread.is_alive())

    job = client.submit("a1")[0]
    client.on_publish = publish

    client.ask()

    assert done == [True]


# ------------------------------------------------------------------------------------- what is expected


def test_markers_are_expected_after_a_submission_and_while_a_job_runs(client: Client) -> None:
    client.submit("a1", "a2")
    assert client.monitor.expects_markers(client.clock())
    client.clock.advance(30)
    assert not client.monitor.expects_markers(client.clock()), "it waits, as far as is known"

    client.leave("a1", "active")
    client.monitor.collect_markers(client.clock())

    assert client.monitor.expects_markers(client.clock())
    client.leave("a1", "exit.run.0")
    client.monitor.collect_markers(client.clock())
    assert not client.monitor.expects_markers(client.clock()), "the other one waits"


def test_markers_are_expected_of_a_job_that_the_queue_calls_running(client: Client) -> None:
    client.submit("a1")
    client.clock.advance(30)
    client.ask()

    assert client.monitor.expects_markers(client.clock())


def test_no_markers_are_expected_of_a_foreign_job(client: Client) -> None:
    native_id = client.submit("a1")[0].native_id
    other = Client(client.root / "other", client.scheduler, client.clock)
    other.engine.attach("b1", native_id)
    other.monitor.follow([other.job("b1")], other.clock())
    other.ask()

    assert other.states("b1") == [JobState.ACTIVE]
    assert not other.monitor.expects_markers(other.clock())


@pytest.mark.parametrize("traces", [["active"], ["start"], []], ids=["marker", "start", "none"])
def test_what_became_of_an_array_tells_only_of_elements_that_never_began(
    client: Client, clock: FakeClock, traces: list[str]
) -> None:
    """The batch system has forgotten one that ran before the rest of its array was cancelled."""
    job = JobView("j", "j", 1, "1.1", place=ArrayMember("x", 1))
    client.monitor.add(job)
    client.monitor.follow([job], clock())
    if traces:
        client.engine._spool.adopt("j", 1, ArrayMember("x", 1))
    if "start" in traces:
        Path(client.engine._spool.folder("j"), "start.1.0").touch()
    client.leave("j", *(it for it in traces if it == "active"))
    client.monitor.collect_markers(clock())
    whole = Observation(state=JobState.CANCELED, native_state="CANCELLED", tag="jpsi-x-1")
    seen = {"1": whole, "1.1": whole}

    for _ in range(2):
        answer = Snapshot(begun=clock(), ended=clock(), queried=None, seen=seen)
        client.monitor._apply_snapshot(answer, [job], clock())
        clock.advance(GRACE + 1)

    assert (JobState.CANCELED in client.states("j")) == (not traces)


class SaysOfArrays:
    """Lies over the toy: what it says of arrays tells not which elements it is about."""

    def __init__(self, state: JobState) -> None:
        self.whole = Observation(state=state, native_state="WHOLE")
        #: Whether it says of elements, too, what became of their array.
        self.names_elements = state.final

    @hookimpl
    def parse_status(self, native_ids: Sequence[str]) -> dict[str, Observation]:
        elements = native_ids if self.names_elements else ()
        return dict.fromkeys(["1", *elements], self.whole)


@pytest.mark.parametrize("place", [ArrayMember("x", 1), None], ids=["own", "foreign"])
def test_elements_wait_with_an_array_that_does_not_say_which_of_them(
    client: Client, clock: FakeClock, place: ArrayMember | None
) -> None:
    other = another(client, SaysOfArrays(JobState.QUEUED))
    job = JobView("j", "j", 0 if place is None else 1, "1.1", place=place)
    other.monitor.add(job)
    other.monitor.follow([job], clock())

    for _ in range(3):
        other.ask()
        clock.advance(GRACE + 1)

    assert other.states("j") == [JobState.QUEUED]
    assert job.absent_since is None
    assert other.info(job) == Observation(state=JobState.QUEUED, native_state="WHOLE")
    tags = dict.fromkeys(["1.1", "1.2", "2"])
    assert other.monitor.query_states(tags, clock, clock.advance) == {
        "1.1": JobState.QUEUED,
        "1.2": JobState.QUEUED,
    }


def test_how_an_array_ended_says_nothing_of_foreign_elements(client: Client, clock: FakeClock) -> None:
    """One of them may have run, and been forgotten since."""
    other = another(client, SaysOfArrays(JobState.CANCELED))
    job = JobView("j", "j", 0, "1.1")
    other.monitor.add(job)
    other.monitor.follow([job], clock())

    other.ask()

    assert not any(state.final for state in other.states("j"))
    assert other.info(job) is None
    assert other.monitor.query_states({"1.1": None}, clock, clock.advance) == {}


def test_jobs_about_which_nothing_is_new_are_not_judged(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.scheduler.slots = 0
    client.submit("a1", "a2")
    client.ask()
    judged = list[str]()
    judge = Publisher.judge

    def counting(judging: Publisher, job: JobView, now: float) -> None:
        judged.append(job.job_id)
        judge(judging, job, now)

    monkeypatch.setattr(Publisher, "judge", counting)

    for _ in range(3):
        client.clock.advance(GRACE)
        client.ask()
    assert judged == []

    client.scheduler.cancel("1")
    client.clock.advance(GRACE)
    client.ask()
    assert judged == ["a1"]


def test_what_is_said_of_many_waiting_jobs_in_one_is_thought_of_once(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not at all if it is what was said before."""
    layer = SaysOfArrays(JobState.QUEUED)
    layer.names_elements = True
    other = another(client, layer)
    for index in range(1, 6):
        job = JobView(f"j{index}", f"j{index}", 1, f"1.{index}", place=ArrayMember("x", index))
        other.monitor.add(job)
        other.monitor.follow([job], clock())
    thought, observed = list[Facts](), list[str]()
    observe = JobView.observe

    def judged(facts: Facts) -> JobStatus | None:
        thought.append(facts)
        return judge(facts)

    def observing(job: JobView, seen: Observation | None, now: float) -> None:
        observed.append(job.job_id)
        observe(job, seen, now)

    monkeypatch.setattr("jpsi_engine.monitor.publisher.judge", judged)
    monkeypatch.setattr(JobView, "observe", observing)

    for _ in range(3):
        other.ask()
        clock.advance(GRACE)

    assert len(thought) == 1
    assert sorted(observed) == ["j1", "j2", "j3", "j4", "j5"]
    assert [other.states(f"j{index}") for index in range(1, 6)] == 5 * [[JobState.QUEUED]]


def test_the_accounting_is_asked_about_an_array_once(client: Client, clock: FakeClock) -> None:
    """However many of its elements are gone."""
    other = another(client, OneByOne())
    for index in range(1, 6):
        job = JobView(f"j{index}", f"j{index}", 1, f"1.{index}", place=ArrayMember("x", index))
        other.monitor.add(job)
        other.monitor.follow([job], clock())

    other.ask()

    calls = [call.invocation.argv for call in client.scheduler.log.of("tstat")]
    assert [argv[1:] for argv in calls if "--finished" in argv] == [("--finished", "1")]


def test_an_element_that_is_dropped_counts_as_cancelled_after_the_grace(
    client: Client, clock: FakeClock
) -> None:
    """Some systems forget one that was told to end before it began, and a marker may show late."""
    jobs = [JobView(f"j{it}", f"j{it}", 1, f"1.{it}", place=ArrayMember("x", it)) for it in (1, 2)]
    for job in jobs:
        client.monitor.add(job)
        client.monitor.follow([job], clock())
    client.monitor.record_stop(jobs[0], Stop(CANCEL, datetime.now(UTC)))
    seen = {"1.2": Observation(state=JobState.QUEUED, native_state="WAITING")}

    def hear() -> None:
        client.monitor._apply_snapshot(
            Snapshot(begun=clock(), ended=clock(), queried=None, seen=seen), jobs, clock()
        )

    hear()
    clock.advance(GRACE - 1)
    hear()
    assert client.states("j1") == []
    clock.advance(2)
    hear()
    assert client.states("j1") == [JobState.CANCELED]
    assert client.states("j2") == [JobState.QUEUED]


def test_that_an_element_is_dropped_is_known_by_others_that_nobody_follows(
    client: Client, clock: FakeClock
) -> None:
    client.scheduler.slots = 0
    client.scheduler.submit_all(FakeJob(f"1.{index}", array="1", index=index) for index in (1, 2, 3))
    job = JobView("j1", "j1", 1, "1.1", place=ArrayMember("x", 1))
    client.monitor.add(job)
    client.monitor.follow([job], clock())

    client.ask()
    assert not job.is_dropped
    client.scheduler.vanish("1.1")
    clock.advance(GRACE)
    client.ask()

    assert job.is_dropped


def test_of_an_array_that_was_submitted_twice_the_one_that_runs_counts(client: Client) -> None:
    """A submit command that tried again may have made two; the claim tells which of them runs."""
    elements = [{"id": "j1", "attempt": 1, "spec": {}}]
    arrays = client.engine._spool.arrays
    os.close(arrays.prepare("x", {"id": "x", "spec": {}}, elements, "", [""]))
    Path(arrays.folder("x"), "claim").write_text("2")
    job = JobView("j1", "j1", 1, "1.1", place=ArrayMember("x", 1))

    assert client.engine._native_ids.correct_ids([job]) == {"j1": "2.1"}


def test_elements_of_an_array_whose_native_id_is_lost_are_found_by_its_tag(client: Client) -> None:
    elements = [{"id": f"j{index}", "attempt": 1, "spec": {}} for index in (1, 2, 3)]
    arrays = client.engine._spool.arrays
    os.close(arrays.prepare("x", {"id": "x", "spec": {}}, elements, "", [""]))
    client.scheduler.slots = 0
    client.scheduler.submit_all(
        FakeJob(f"5.{index}", tag=array_tag("x"), array="5", index=index) for index in (1, 2, 3)
    )
    jobs = [JobView(f"j{it}", f"j{it}", 1, f"unnamed.j{it}", place=ArrayMember("x", it)) for it in (1, 3)]
    alone = JobView("k1", "k1", 1, "unnamed.k1")

    found = client.engine._native_ids.correct_ids([*jobs, alone])

    assert found == {"j1": "5.1", "j3": "5.3", "k1": "unnamed.k1"}


# ---------------------------------------------------------------------------------------------- requests


@pytest.mark.parametrize(
    ("is_cancelled", "end"), [(True, JobState.CANCELED), (False, JobState.COMPLETED)], ids=["is", "is not"]
)
def test_whether_an_end_after_a_request_came_of_it_is_the_batch_systems_to_say(
    client: Client, clock: FakeClock, is_cancelled: bool, end: JobState
) -> None:
    """The signal may reach the job before its runner, whose marker tells of none; all processes wait."""
    job = client.submit("a1")[0]
    other = another(client)
    other.engine.attach("b1", job.native_id)
    other.monitor.follow([other.job("b1")], clock())
    client.monitor.record_stop(job, Stop(CANCEL, datetime.fromtimestamp(clock(), UTC)))
    clock.advance(1)
    client.leave("a1", "active", "exit.run.0")

    other.monitor.collect_markers(clock())
    assert other.states("b1") == [JobState.ACTIVE]
    if is_cancelled:
        client.scheduler.cancel(job.native_id)
    else:
        client.scheduler.end_as(job.native_id, FakeState.COMPLETED)
    # what the other has taken to the folder of the job is seen with the first answer
    for process in (other, client, client):
        clock.advance(5)
        process.ask()

    assert (other.states("b1")[-1], client.states("a1")[-1]) == (end, end)


# ---------------------------------------------------------------------------------------------- silence


@pytest.mark.parametrize(
    ("target", "name"), [("", "toy"), ("cluster", "cluster"), ("ssh://big", "toy@ssh://big")]
)
def test_a_batch_system_that_does_not_answer_is_told_of_once_and_that_it_does_again(
    client: Client, caplog: pytest.LogCaptureFixture, target: str, name: str
) -> None:
    client = Client(client.root, client.scheduler, client.clock, target=target)
    client.submit("a1")
    client.ask()
    client.scheduler.faults.down()
    for _ in range(5):
        client.clock.advance(30)
        client.ask()
    during = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    caplog.clear()

    client.scheduler.faults.clear()
    for _ in range(2):
        client.clock.advance(30)
        client.ask()

    assert len(during) == 1
    assert during[0].startswith(f"{name} has not answered for 60 s: ")
    assert [it.getMessage() for it in caplog.records if it.levelname == "WARNING"] == [
        f"{name} answers again"
    ]


# ------------------------------------------------------------------------------- entries that show late


LATE = 60.0


@pytest.fixture
def late(client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> LateFiles:
    """Has what jobs make show a minute after they have made it."""
    files = LateFiles(client.root, LATE, clock, made=lambda it: it.st_mtime)
    files.install(monkeypatch.setattr)
    return files


def leave_elsewhere(client: Client, late: LateFiles, job_id: str, *markers: str) -> None:
    """Leave markers as a runner on another machine would."""
    for marker in markers:
        client.leave(job_id, marker)
        late.disown(Path(client.engine._spool.events, f"{job_id}.1.{marker}"))


def see_and_ask(client: Client, seconds: float) -> None:
    """Let so much time pass, with what is to be done each second."""
    for _ in range(int(seconds)):
        client.clock.advance(1)
        client.monitor.collect_markers(client.clock())
        client.ask()


@pytest.mark.parametrize("keep", [0.0, 300.0], ids=["forgotten at once", "still listed"])
def test_an_end_that_shows_late_is_waited_for(client: Client, late: LateFiles, keep: float) -> None:
    client.scheduler.keep, client.scheduler.accounting = keep, False
    client.submit("a1")
    client.ask()
    client.clock.advance(60)
    leave_elsewhere(client, late, "a1", "active", "exit.run.7")

    see_and_ask(client, LATE - 1)
    before = client.states("a1")
    see_and_ask(client, 2)

    assert not any(state.final for state in before)
    (told,) = [status for _, status in client.published if status.final]
    assert (told.state, told.exit_code, told.reason) == (JobState.FAILED, 7, Reason.EXIT_CODE)


def test_a_job_without_an_end_is_lost_when_its_end_would_have_shown_and_not_before(
    client: Client, late: LateFiles
) -> None:
    client.scheduler.keep, client.scheduler.accounting = 0.0, False
    client.submit("a1")
    client.ask()
    leave_elsewhere(client, late, "a1", "active")
    client.clock.advance(60)

    see_and_ask(client, LATE)
    before = client.states("a1")
    see_and_ask(client, 2 * GRACE)

    assert not any(state.final for state in before)
    (told,) = [status for _, status in client.published if status.final]
    assert (told.state, told.reason) == (JobState.FAILED, Reason.LOST)


def test_a_marker_that_another_machine_took_is_found_when_the_folder_shows_it(
    client: Client, late: LateFiles
) -> None:
    """Its old name is seen no more, and the new one not yet."""
    client.scheduler.keep, client.scheduler.accounting = 0.0, False
    client.submit("a1")
    client.ask()
    client.clock.advance(60)
    client.leave("a1", "active", "exit.run.7")
    folder = Path(client.engine._spool.folder("a1"))
    for path in Path(client.engine._spool.events).glob("a1.*"):
        moved = path.rename(folder / path.name)
        late.disown(moved)

    see_and_ask(client, LATE - 1)
    before = client.states("a1")
    see_and_ask(client, GRACE)

    assert not any(state.final for state in before)
    assert client.states("a1")[-1] is JobState.FAILED
    assert client.published[-1][1].exit_code == 7


# ------------------------------------------------------------------------- processes that ask once and end


def forgotten(client: Client) -> None:
    """Have the batch system forget a job that runs, of which only that is left."""
    client.scheduler.keep, client.scheduler.accounting = 0.0, False
    client.submit("a1")
    client.leave("a1", "active")
    client.clock.advance(61)


def look_once(client: Client, *overrides: object) -> JobStatus:
    """Have a new process look what became of the job, as `jpsi ls --refresh` does."""
    other = another(client, *overrides)
    recalled = other.engine.recall(["a1"])
    if recalled:
        job = other.job("a1")
        other.monitor.follow([job], client.clock())
        other.info(job)
    return other.published[-1][1]


def test_a_job_that_is_gone_is_lost_by_three_looks_of_processes_that_ask_once(client: Client) -> None:
    forgotten(client)

    told = []
    for _ in range(3):
        told.append(look_once(client))
        client.clock.advance(GRACE)

    assert [it.state for it in told] == [JobState.ACTIVE, JobState.ACTIVE, JobState.FAILED]
    assert told[-1].reason is Reason.LOST


def test_looks_that_follow_each_other_at_once_do_not_make_the_grace_shorter(client: Client) -> None:
    forgotten(client)

    told = []
    for _ in range(int(GRACE / 5)):
        told.append(look_once(client))
        client.clock.advance(5)

    assert {it.state for it in told} == {JobState.ACTIVE}


def leave_a_sign(client: Client) -> None:
    client.leave("a1", "signalled")


def end_a_boot(client: Client) -> None:
    (folder,) = Path(client.root).glob("**/asking/*/missing")
    folder.rename(folder.with_name("of another boot"))


def ask_another_system(client: Client) -> None:
    for path in Path(client.root).glob("**/missing/*.json"):
        path.write_text(path.read_text().replace('"of": ["', '"of": ["other '))


def garble(client: Client) -> None:
    for path in Path(client.root).glob("**/missing/*.json"):
        path.write_bytes(b'{"of": 5, "time": "\x00')


def exaggerate(client: Client) -> None:
    for path in Path(client.root).glob("**/missing/*.json"):
        path.write_text(path.read_text().replace('"absent": ', '"absent": 1e999, "unread": '))


@pytest.mark.parametrize(
    "between", [leave_a_sign, end_a_boot, ask_another_system, garble, exaggerate], ids=lambda it: it.__name__
)
def test_what_earlier_processes_saw_counts_only_as_long_as_it_is_of_this_job(
    client: Client, between: Callable[[Client], None]
) -> None:
    forgotten(client)
    for _ in range(2):
        look_once(client)
        client.clock.advance(GRACE)

    between(client)

    assert look_once(client).state is JobState.ACTIVE


class SaysThatItRuns:
    """Lies over the toy: the queue has the job."""

    @hookimpl
    def parse_status(self) -> dict[str, Observation]:
        return {"1": Observation(state=JobState.ACTIVE, native_state="running")}


def test_a_job_that_was_there_in_between_was_never_missing(client: Client) -> None:
    forgotten(client)
    for _ in range(2):
        look_once(client)
        client.clock.advance(GRACE)

    look_once(client, SaysThatItRuns())
    client.clock.advance(GRACE)

    assert [look_once(client).state for _ in range(2)] == [JobState.ACTIVE] * 2


def test_nothing_is_left_of_a_job_that_has_ended(client: Client) -> None:
    forgotten(client)
    for _ in range(2):
        look_once(client)
        client.clock.advance(GRACE)
    assert list(Path(client.root).glob("**/missing/*.json"))

    look_once(client)

    assert not list(Path(client.root).glob("**/missing/*.json"))


def test_of_many_jobs_that_are_missing_at_once_some_are_kept_for_later_processes(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands may end at once, each of which would take a file for a moment."""
    monkeypatch.setattr(module, "_MOST_STORED", 2)
    client.scheduler.slots, client.scheduler.accounting = 0, False
    jobs = {job.job_id: job for job in client.submit("a3", "a1", "a2")}
    for job_id in ("a1", "a2", "a3"):
        client.scheduler.vanish(jobs[job_id].native_id)
        client.clock.advance(5)
        client.ask()

    kept = {path.name for path in Path(client.root).glob("**/missing/*.json")}

    assert kept == {"a1.1.json", "a2.1.json"}, "those that are missing for the longest time"


def test_an_answer_that_several_processes_take_counts_once(client: Client) -> None:
    forgotten(client)
    look_once(client)
    client.clock.advance(GRACE)
    others = [another(client) for _ in range(3)]
    for other in others:
        other.engine.recall(["a1"])
        other.monitor.follow([other.job("a1")], client.clock())

    for other in others:
        other.info(other.job("a1"))
    client.clock.advance(GRACE)

    assert [other.published[-1][1].state for other in others] == [JobState.ACTIVE] * 3
    assert look_once(client).state is JobState.FAILED


# ------------------------------------------------------------------------------- polls while all jobs wait


@pytest.fixture
def full(client: Client, clock: FakeClock) -> Iterator[Client]:
    """A client of a batch system that starts no job."""
    with FakeScheduler(clock, slots=0) as scheduler:
        yield Client(client.root, scheduler, clock)


def poll_until(client: Client, end: float) -> int:
    """Make every poll that is due until a time of the clock; return the number of polls."""
    polls = 0
    while (due := client.monitor.next_poll_time()) is not None and due < end:
        client.clock.advance(max(0.0, due - client.clock()))
        client.ask()
        polls += 1
    return polls


def test_while_all_jobs_wait_an_hour_has_at_most_twelve_polls(full: Client) -> None:
    full.submit("a1", "a2")
    poll_until(full, full.clock() + 3600)

    assert poll_until(full, full.clock() + 3600) <= 12


def test_a_job_that_runs_is_polled_at_the_usual_interval(full: Client) -> None:
    full.submit("a1", "a2")
    poll_until(full, full.clock() + 3600)
    full.leave("a1", "active")
    full.monitor.collect_markers(full.clock())
    poll_until(full, full.clock() + 400)

    assert poll_until(full, full.clock() + 3600) >= 100


def test_a_waiting_job_that_left_the_queue_is_polled_about_at_the_usual_interval(full: Client) -> None:
    (job,) = full.submit("a1")
    poll_until(full, full.clock() + 3600)
    full.scheduler.vanish(job.native_id)
    poll_until(full, full.clock() + 331)

    assert job.absent_since is not None
    assert poll_until(full, full.clock() + 60) >= 1


def test_an_outage_is_noticed_at_the_usual_interval(full: Client, caplog: pytest.LogCaptureFixture) -> None:
    full.submit("a1")
    poll_until(full, full.clock() + 3600)
    full.scheduler.faults.down()

    poll_until(full, full.clock() + 330 + 3 * 33)

    assert "has not answered for" in caplog.text


def test_a_caller_that_waits_with_a_timeout_learns_of_an_end_from_outside(full: Client) -> None:
    (job,) = full.submit("a1")
    poll_until(full, full.clock() + 3600)
    full.scheduler.cancel(job.native_id)

    full.monitor.note_deadline(full.clock(), 60.0)
    poll_until(full, full.clock() + 60.0)

    assert full.states("a1")[-1] is JobState.CANCELED

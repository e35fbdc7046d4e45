"""Executors of one user on one batch system: they share polls, and each publishes statuses of its jobs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
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


class PollsAllJobs:
    """A layer over the toy: each poll is about all jobs of the user."""

    @hookimpl
    def capabilities(self) -> Capabilities:
        return Capabilities(default_launcher="multiple", id_variable="TOY_JOB_ID", ids_per_query=None)


class OneJobPerAccountingQuery:
    """A layer over the toy: an accounting query names one job at a time."""

    @hookimpl
    def capabilities(self) -> Capabilities:
        return attrs.evolve(toy.capabilities(), ids_per_accounting=1)


class ParsedIdsRecorder:
    """A layer over the toy: records the native ids for which the engine parses the output of a poll."""

    def __init__(self) -> None:
        self.native_ids: list[Sequence[str] | None] = []

    @hookimpl
    def parse_status(self, native_ids: Sequence[str] | None) -> None:
        self.native_ids.append(native_ids)


@attrs.define(eq=False)
class Client:
    """One process of the user, whose poll rounds a test runs."""

    root: Path
    scheduler: FakeScheduler
    clock: FakeClock
    overrides: tuple[object, ...] = ()
    config: BatchConfig | None = None
    target: str = ""
    published: list[tuple[str, JobStatus]] = attrs.field(factory=list)
    #: Called before a status is recorded.
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

    def poll(self) -> None:
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
    """Yield a fake batch system that simulates jobs: they leave no markers."""
    with FakeScheduler(clock, outcome=Outcome(seconds=60), slots=1) as scheduler:
        yield scheduler


@pytest.fixture
def client(tmp_path: Path, scheduler: FakeScheduler, clock: FakeClock, no_threads: None) -> Client:
    return Client(tmp_path, scheduler, clock)


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PollLoop, "start", lambda poll_loop: None)
    monkeypatch.setattr("jpsi_engine.batch.start_pruning", lambda *_: None)


def another_process(client: Client, *overrides: object) -> Client:
    """Return another process of the same user."""
    return Client(client.root, client.scheduler, client.clock, overrides or client.overrides)


def queries(client: Client) -> list[tuple[str, ...]]:
    calls = (call.invocation.argv for call in client.scheduler.log.of("tstat"))
    return [tuple(argv[1:]) for argv in calls if "--finished" not in argv]


# ---------------------------------------------------------------------------------------------- sharing


def test_two_processes_share_one_poll(client: Client) -> None:
    other = another_process(client)
    other.submit("b1")
    other.poll()
    client.submit("a1")
    client.clock.advance(2)

    client.poll()
    other.poll()

    assert queries(client) == [("1",), ("1", "2")]
    assert client.states("a1") == [JobState.QUEUED]
    assert other.states("b1") == [JobState.ACTIVE]


def test_a_snapshot_begun_before_a_submission_never_counts_as_absence(client: Client) -> None:
    """The snapshot lists all jobs of the user before the submission."""
    client = another_process(client, PollsAllJobs())
    other = another_process(client)
    first = client.submit("a1")[0]
    other.submit("b1")
    other.clock.advance(1)
    other.poll()
    client.clock.advance(0.1)
    second = client.submit("a2")[0]
    client.clock.advance(0.5)

    client.poll()

    assert queries(client) == [("--all",)]
    assert (first.queued is not None, second.queued) == (True, None)
    assert second.absent_since is None
    client.clock.advance(GRACE)
    client.poll()
    assert JobState.FAILED not in client.states("a2")


def test_parse_status_gets_the_followed_ids_if_a_poll_lists_all_jobs(client: Client) -> None:
    """A plugin need not report every element of an array that no client follows."""
    recorder = ParsedIdsRecorder()
    other = another_process(client, PollsAllJobs(), recorder)
    job = other.submit("b1")[0]

    other.poll()

    assert recorder.native_ids == [[job.native_id]]
    assert job.queued is not None


def test_a_snapshot_of_another_process_from_before_the_exit_marker_does_not_decide_the_end(
    client: Client,
) -> None:
    other = another_process(client)
    job = client.submit("a1")[0]
    client.poll()
    other.engine.attach("b1", job.native_id)
    other.monitor.follow([other.job("b1")], other.clock())
    other.clock.advance(2)
    other.poll()
    client.clock.advance(0.1)
    client.leave("a1", "active", "signalled", "exit.run.0")
    client.monitor.collect_markers(client.clock())

    client.poll()

    assert job.queued is None
    assert not any(state.final for state in client.states("a1"))


def test_every_process_publishes_an_end_that_another_process_recorded(client: Client) -> None:
    (job,) = client.submit("a1")
    failed = JobStatus(JobState.FAILED, exit_code=0, reason=Reason.STAGING)
    client.engine._spool.finish("a1", 1, encode_status(failed))
    client.leave("a1", "active", "exit.run.0")

    client.monitor.collect_markers(client.clock())

    (final,) = [status for name, status in client.published if name == job.job_id and status.final]
    assert (final.state, final.reason) == (JobState.FAILED, Reason.STAGING)


def test_processes_whose_configurations_change_the_query_share_no_polls(client: Client) -> None:
    class OtherServer:
        @hookimpl
        def query(self, native_ids: list[str] | None) -> object:
            command = toy.query(native_ids)
            return attrs.evolve(command, environment={"TOY_SERVER": "other"})

    other = another_process(client, OtherServer())
    client.submit("a1")
    other.submit("b1")
    client.poll()
    client.clock.advance(2)

    other.poll()

    assert queries(client) == [("1",), ("2",)]


@pytest.mark.parametrize(
    ("name", "is_shared"), [("TOY_SERVER", False), ("TERM", True)], ids=["of the system", "of no concern"]
)
def test_a_variable_that_may_select_another_system_prevents_sharing(
    client: Client, monkeypatch: pytest.MonkeyPatch, name: str, is_shared: bool
) -> None:
    other = another_process(client)
    client.submit("a1")
    other.submit("b1")
    client.poll()
    client.clock.advance(2)
    client.poll()
    client.clock.advance(2)

    monkeypatch.setenv(name, "other")
    other.poll()

    assert queries(client)[-1] == (("1", "2") if is_shared else ("2",))


def test_a_plugin_that_cannot_query_jobs_of_others_polls_alone(client: Client) -> None:
    class Limited:
        @hookimpl
        def query(self, native_ids: list[str] | None) -> object:
            assert native_ids is not None
            return toy.query(native_ids)

    client = another_process(client, Limited())
    other = another_process(client)
    client.submit("a1")
    other.submit("b1")

    client.poll()
    other.poll()

    assert queries(client) == [("1",), ("2",)]
    assert (client.states("a1"), other.states("b1")) == ([JobState.ACTIVE], [JobState.QUEUED])


# ------------------------------------------------------------------------------------------------- info


@pytest.mark.clause("bulk-status", "python-polling-each")
def test_info_about_every_job_takes_one_query(client: Client) -> None:
    jobs = client.submit(*(f"a{number}" for number in range(300)))

    infos = [client.info(job) for job in jobs]

    assert all(it is not None for it in infos)
    assert len(queries(client)) == 2, "200 ids at a time"
    assert client.states("a0") == [JobState.ACTIVE], "it counts as a round"
    assert client.states("a299") == [JobState.QUEUED]


def test_info_queries_again_after_the_shortest_interval(client: Client) -> None:
    job = client.submit("a1")[0]
    client.info(job)
    client.clock.advance(1.9)
    client.info(job)
    assert len(queries(client)) == 1

    client.clock.advance(0.2)
    client.info(job)

    assert len(queries(client)) == 2


def test_info_about_a_job_newer_than_the_snapshot_queries_again(client: Client) -> None:
    client.info(client.submit("a1")[0])
    client.clock.advance(0.1)

    info = client.info(client.submit("a2")[0])

    assert info is not None
    assert queries(client) == [("1",), ("1", "2")]


def test_info_after_a_change_is_fresh(client: Client) -> None:
    job = client.submit("a1", "a2")[1]
    client.info(job)
    client.clock.advance(0.1)
    client.scheduler.hold(job.native_id)
    client.monitor.note_change(job, client.clock())

    info = client.info(job)

    assert info is not None
    assert info.native_state == "HELD"


def test_a_job_that_changes_all_the_time_is_still_reported(client: Client) -> None:
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

    client.poll()

    assert client.states("a1") == [JobState.ACTIVE]


def test_info_uses_the_snapshot_of_another_process(client: Client) -> None:
    other = another_process(client)
    jobs = client.submit("a1"), other.submit("b1")
    client.info(jobs[0][0])
    client.clock.advance(0.5)
    other.info(jobs[1][0])
    client.clock.advance(0.5)

    info = client.info(jobs[0][0])

    assert info is not None
    assert queries(client) == [("1",), ("1", "2")]


def test_a_query_by_info_delays_the_next_poll(client: Client) -> None:
    job = client.submit("a1")[0]
    client.clock.advance(1)

    client.info(job)

    due = client.monitor.next_poll_time()
    assert due is not None
    assert due >= client.clock() + 2


def test_info_fails_in_an_outage_and_changes_nothing(client: Client) -> None:
    job = client.submit("a1")[0]
    client.scheduler.faults.down()

    with pytest.raises(SubmitException, match="cannot contact"):
        client.info(job)

    assert client.published == []


def test_info_about_a_job_that_the_system_does_not_report_is_none(client: Client) -> None:
    client.engine.attach("a1", "999")
    client.monitor.follow([client.job("a1")], client.clock())

    assert client.info(client.job("a1")) is None


# ------------------------------------------------------------------------------------------- publishing


def test_statuses_are_published_under_no_lock(client: Client) -> None:
    """A callback may wait for a thread that gets info about the same job."""
    done: list[bool] = []

    def publish() -> None:
        if not done:
            thread = threading.Thread(target=lambda: client.monitor.follow([job], client.clock()))
            thread.start()
            thread.join(PATIENCE)
            done.append(not thread.is_alive())

    job = client.submit("a1")[0]
    client.on_publish = publish

    client.poll()

    assert done == [True]


# -------------------------------------------------------------------------------------- expected markers


def test_markers_are_expected_after_a_submission_and_while_a_job_runs(client: Client) -> None:
    client.submit("a1", "a2")
    assert client.monitor.expects_markers(client.clock())
    client.clock.advance(30)
    assert not client.monitor.expects_markers(client.clock()), "its last known state is queued"

    client.leave("a1", "active")
    client.monitor.collect_markers(client.clock())

    assert client.monitor.expects_markers(client.clock())
    client.leave("a1", "exit.run.0")
    client.monitor.collect_markers(client.clock())
    assert not client.monitor.expects_markers(client.clock()), "the other one waits"


def test_markers_are_expected_of_a_job_that_the_queue_reports_as_running(client: Client) -> None:
    client.submit("a1")
    client.clock.advance(30)
    client.poll()

    assert client.monitor.expects_markers(client.clock())


def test_no_markers_are_expected_of_a_foreign_job(client: Client) -> None:
    native_id = client.submit("a1")[0].native_id
    other = Client(client.root / "other", client.scheduler, client.clock)
    other.engine.attach("b1", native_id)
    other.monitor.follow([other.job("b1")], other.clock())
    other.poll()

    assert other.states("b1") == [JobState.ACTIVE]
    assert not other.monitor.expects_markers(other.clock())


@pytest.mark.parametrize("traces", [["active"], ["start"], []], ids=["marker", "start", "none"])
def test_the_end_of_an_array_counts_only_for_elements_that_never_began(
    client: Client, clock: FakeClock, traces: list[str]
) -> None:
    """The batch system has forgotten an element that ran before the user cancelled the rest of the array."""
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
    observations = {"1": whole, "1.1": whole}

    for _ in range(2):
        snapshot = Snapshot(begun=clock(), ended=clock(), queried=None, seen=observations)
        client.monitor._apply_snapshot(snapshot, [job], clock())
        clock.advance(GRACE + 1)

    assert (JobState.CANCELED in client.states("j")) == (not traces)


class ArrayState:
    """A layer over the toy: reports the state of an array without naming its elements."""

    def __init__(self, state: JobState) -> None:
        self.whole = Observation(state=state, native_state="WHOLE")
        #: True if it reports the end of the array for each element, too.
        self.names_elements = state.final

    @hookimpl
    def parse_status(self, native_ids: Sequence[str]) -> dict[str, Observation]:
        elements = native_ids if self.names_elements else ()
        return dict.fromkeys(["1", *elements], self.whole)


class UnlistedElements:
    """A layer over the toy: names the elements of ended arrays only in answer to a query about one array."""

    @hookimpl
    def parse_status(self, native_ids: Sequence[str] | None) -> dict[str, Observation]:
        names = {"1": "x", "2": "y"}
        wholes = {
            array: Observation(state=JobState.CANCELED, native_state="CANCELLED", tag=f"jpsi-{name}-1")
            for array, name in names.items()
        }
        arrays = {it.partition(".")[0] for it in native_ids or names}
        if len(arrays) > 1:
            return wholes
        return {it: wholes[it.partition(".")[0]] for it in [*arrays, *(native_ids or ())]}


@pytest.mark.parametrize("has_begun", [False, True], ids=["never began", "has begun"])
def test_unlisted_elements_of_several_ended_arrays_ended_with_them(client: Client, has_begun: bool) -> None:
    other = another_process(client, UnlistedElements())
    jobs = [JobView(name, name, 1, f"{array}.1", place=ArrayMember(name, 1)) for name, array in ("x1", "y2")]
    for job in jobs:
        other.monitor.add(job)
    other.monitor.follow(jobs, other.clock())
    if has_begun:
        other.leave("y", "active")

    for _ in range(2):
        other.poll()
        other.clock.advance(GRACE + 1)

    assert JobState.CANCELED in other.states("x")
    assert (JobState.CANCELED in other.states("y")) == (not has_begun)


@pytest.mark.parametrize("place", [ArrayMember("x", 1), None], ids=["own", "foreign"])
def test_elements_are_queued_with_an_array_whose_report_names_no_elements(
    client: Client, clock: FakeClock, place: ArrayMember | None
) -> None:
    other = another_process(client, ArrayState(JobState.QUEUED))
    job = JobView("j", "j", 0 if place is None else 1, "1.1", place=place)
    other.monitor.add(job)
    other.monitor.follow([job], clock())

    for _ in range(3):
        other.poll()
        clock.advance(GRACE + 1)

    assert other.states("j") == [JobState.QUEUED]
    assert job.absent_since is None
    assert other.info(job) == Observation(state=JobState.QUEUED, native_state="WHOLE")
    tags = dict.fromkeys(["1.1", "1.2", "2"])
    assert other.monitor.query_states(tags, clock, clock.advance) == {
        "1.1": JobState.QUEUED,
        "1.2": JobState.QUEUED,
    }


def test_the_end_of_an_array_decides_nothing_for_foreign_elements(client: Client, clock: FakeClock) -> None:
    """The batch system may have forgotten one of them that ran."""
    other = another_process(client, ArrayState(JobState.CANCELED))
    job = JobView("j", "j", 0, "1.1")
    other.monitor.add(job)
    other.monitor.follow([job], clock())

    other.poll()

    assert not any(state.final for state in other.states("j"))
    assert other.info(job) is None
    assert other.monitor.query_states({"1.1": None}, clock, clock.advance) == {}


def test_jobs_without_new_evidence_are_not_judged(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.scheduler.slots = 0
    client.submit("a1", "a2")
    client.poll()
    judged = list[str]()
    judge = Publisher.judge

    def counting(publisher: Publisher, job: JobView, now: float) -> None:
        judged.append(job.job_id)
        judge(publisher, job, now)

    monkeypatch.setattr(Publisher, "judge", counting)

    for _ in range(3):
        client.clock.advance(GRACE)
        client.poll()
    assert judged == []

    client.scheduler.cancel("1")
    client.clock.advance(GRACE)
    client.poll()
    assert judged == ["a1"]


def test_one_report_about_many_queued_jobs_is_judged_once(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report that equals the previous one is not judged at all."""
    layer = ArrayState(JobState.QUEUED)
    layer.names_elements = True
    other = another_process(client, layer)
    for index in range(1, 6):
        job = JobView(f"j{index}", f"j{index}", 1, f"1.{index}", place=ArrayMember("x", index))
        other.monitor.add(job)
        other.monitor.follow([job], clock())
    judged_facts, observed = list[Facts](), list[str]()
    observe = JobView.observe

    def judged(facts: Facts) -> JobStatus | None:
        judged_facts.append(facts)
        return judge(facts)

    def observing(job: JobView, seen: Observation | None, now: float) -> None:
        observed.append(job.job_id)
        observe(job, seen, now)

    monkeypatch.setattr("jpsi_engine.monitor.publisher.judge", judged)
    monkeypatch.setattr(JobView, "observe", observing)

    for _ in range(3):
        other.poll()
        clock.advance(GRACE)

    assert len(judged_facts) == 1
    assert sorted(observed) == ["j1", "j2", "j3", "j4", "j5"]
    assert [other.states(f"j{index}") for index in range(1, 6)] == 5 * [[JobState.QUEUED]]


def test_accounting_is_queried_once_per_array(client: Client, clock: FakeClock) -> None:
    """The number of its elements that are gone does not matter."""
    other = another_process(client, OneJobPerAccountingQuery())
    for index in range(1, 6):
        job = JobView(f"j{index}", f"j{index}", 1, f"1.{index}", place=ArrayMember("x", index))
        other.monitor.add(job)
        other.monitor.follow([job], clock())

    other.poll()

    calls = [call.invocation.argv for call in client.scheduler.log.of("tstat")]
    assert [argv[1:] for argv in calls if "--finished" in argv] == [("--finished", "1")]


def test_an_element_that_vanished_after_a_cancellation_counts_as_cancelled_after_the_grace(
    client: Client, clock: FakeClock
) -> None:
    """Some systems forget an element that was cancelled before it began, and a marker may show late."""
    jobs = [JobView(f"j{it}", f"j{it}", 1, f"1.{it}", place=ArrayMember("x", it)) for it in (1, 2)]
    for job in jobs:
        client.monitor.add(job)
        client.monitor.follow([job], clock())
    client.monitor.record_stop(jobs[0], Stop(CANCEL, datetime.now(UTC)))
    observations = {"1.2": Observation(state=JobState.QUEUED, native_state="WAITING")}

    def apply_snapshot() -> None:
        client.monitor._apply_snapshot(
            Snapshot(begun=clock(), ended=clock(), queried=None, seen=observations), jobs, clock()
        )

    apply_snapshot()
    clock.advance(GRACE - 1)
    apply_snapshot()
    assert client.states("j1") == []
    clock.advance(2)
    apply_snapshot()
    assert client.states("j1") == [JobState.CANCELED]
    assert client.states("j2") == [JobState.QUEUED]


def test_other_elements_that_no_client_follows_prove_that_an_element_is_gone(
    client: Client, clock: FakeClock
) -> None:
    client.scheduler.slots = 0
    client.scheduler.submit_all(FakeJob(f"1.{index}", array="1", index=index) for index in (1, 2, 3))
    job = JobView("j1", "j1", 1, "1.1", place=ArrayMember("x", 1))
    client.monitor.add(job)
    client.monitor.follow([job], clock())

    client.poll()
    assert not job.is_dropped
    client.scheduler.vanish("1.1")
    clock.advance(GRACE)
    client.poll()

    assert job.is_dropped


def test_the_running_one_of_two_submissions_of_an_array_counts(client: Client) -> None:
    """A repeated submit command may have made two arrays; the claim names the one that runs."""
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
def test_the_batch_system_decides_if_a_request_ended_the_job(
    client: Client, clock: FakeClock, is_cancelled: bool, end: JobState
) -> None:
    """The signal may reach the job before its runner, whose marker then records none; all processes wait."""
    job = client.submit("a1")[0]
    other = another_process(client)
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
    # the first snapshot finds the marker that the other process moved to the folder of the job
    for process in (other, client, client):
        clock.advance(5)
        process.poll()

    assert (other.states("b1")[-1], client.states("a1")[-1]) == (end, end)


# ----------------------------------------------------------------------------------------------- outage


@pytest.mark.parametrize(
    ("target", "name"), [("", "toy"), ("cluster", "cluster"), ("ssh://big", "toy@ssh://big")]
)
def test_an_outage_and_its_end_are_each_logged_once(
    client: Client, caplog: pytest.LogCaptureFixture, target: str, name: str
) -> None:
    client = Client(client.root, client.scheduler, client.clock, target=target)
    client.submit("a1")
    client.poll()
    client.scheduler.faults.down()
    for _ in range(5):
        client.clock.advance(30)
        client.poll()
    during = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    caplog.clear()

    client.scheduler.faults.clear()
    for _ in range(2):
        client.clock.advance(30)
        client.poll()

    assert len(during) == 1
    assert during[0].startswith(f"{name} has not answered for 60 s: ")
    assert [it.getMessage() for it in caplog.records if it.levelname == "WARNING"] == [
        f"{name} answers again"
    ]


# ------------------------------------------------------------------------------- entries that show late


LATE = 60.0


@pytest.fixture
def late(client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> LateFiles:
    """Make files of jobs visible a minute after the jobs made them."""
    files = LateFiles(client.root, LATE, clock, made=lambda it: it.st_mtime)
    files.install(monkeypatch.setattr)
    return files


def leave_on_another_host(client: Client, late: LateFiles, job_id: str, *markers: str) -> None:
    """Leave markers as a runner on another host would."""
    for marker in markers:
        client.leave(job_id, marker)
        late.disown(Path(client.engine._spool.events, f"{job_id}.1.{marker}"))


def run_rounds(client: Client, seconds: float) -> None:
    """Let so much time pass, with a round each second."""
    for _ in range(int(seconds)):
        client.clock.advance(1)
        client.monitor.collect_markers(client.clock())
        client.poll()


@pytest.mark.parametrize("keep", [0.0, 300.0], ids=["forgotten at once", "still listed"])
def test_an_end_that_shows_late_is_waited_for(client: Client, late: LateFiles, keep: float) -> None:
    client.scheduler.keep, client.scheduler.accounting = keep, False
    client.submit("a1")
    client.poll()
    client.clock.advance(60)
    leave_on_another_host(client, late, "a1", "active", "exit.run.7")

    run_rounds(client, LATE - 1)
    before = client.states("a1")
    run_rounds(client, 2)

    assert not any(state.final for state in before)
    (final,) = [status for _, status in client.published if status.final]
    assert (final.state, final.exit_code, final.reason) == (JobState.FAILED, 7, Reason.EXIT_CODE)


def test_a_job_without_end_is_lost_only_after_its_end_would_have_shown(
    client: Client, late: LateFiles
) -> None:
    client.scheduler.keep, client.scheduler.accounting = 0.0, False
    client.submit("a1")
    client.poll()
    leave_on_another_host(client, late, "a1", "active")
    client.clock.advance(60)

    run_rounds(client, LATE)
    before = client.states("a1")
    run_rounds(client, 2 * GRACE)

    assert not any(state.final for state in before)
    (final,) = [status for _, status in client.published if status.final]
    assert (final.state, final.reason) == (JobState.FAILED, Reason.LOST)


def test_a_marker_that_another_host_moved_is_found_when_the_folder_shows_it(
    client: Client, late: LateFiles
) -> None:
    """Its old name is gone, and its new name does not show yet."""
    client.scheduler.keep, client.scheduler.accounting = 0.0, False
    client.submit("a1")
    client.poll()
    client.clock.advance(60)
    client.leave("a1", "active", "exit.run.7")
    folder = Path(client.engine._spool.folder("a1"))
    for path in Path(client.engine._spool.events).glob("a1.*"):
        moved = path.rename(folder / path.name)
        late.disown(moved)

    run_rounds(client, LATE - 1)
    before = client.states("a1")
    run_rounds(client, GRACE)

    assert not any(state.final for state in before)
    assert client.states("a1")[-1] is JobState.FAILED
    assert client.published[-1][1].exit_code == 7


# -------------------------------------------------------------------------- processes that poll once


def forget_job(client: Client) -> None:
    """Have the batch system forget a running job, of which only the marker `active` remains."""
    client.scheduler.keep, client.scheduler.accounting = 0.0, False
    client.submit("a1")
    client.leave("a1", "active")
    client.clock.advance(61)


def query_in_new_process(client: Client, *overrides: object) -> JobStatus:
    """Query the job from a new process, as `jpsi ls --refresh` does, and return its status."""
    other = another_process(client, *overrides)
    recalled = other.engine.recall(["a1"])
    if recalled:
        job = other.job("a1")
        other.monitor.follow([job], client.clock())
        other.info(job)
    return other.published[-1][1]


def test_three_processes_that_query_once_each_find_a_missing_job_lost(client: Client) -> None:
    forget_job(client)

    statuses = []
    for _ in range(3):
        statuses.append(query_in_new_process(client))
        client.clock.advance(GRACE)

    assert [it.state for it in statuses] == [JobState.ACTIVE, JobState.ACTIVE, JobState.FAILED]
    assert statuses[-1].reason is Reason.LOST


def test_queries_in_quick_succession_do_not_shorten_the_grace(client: Client) -> None:
    forget_job(client)

    statuses = []
    for _ in range(int(GRACE / 5)):
        statuses.append(query_in_new_process(client))
        client.clock.advance(5)

    assert {it.state for it in statuses} == {JobState.ACTIVE}


def leave_a_marker(client: Client) -> None:
    client.leave("a1", "signalled")


def change_boot_id(client: Client) -> None:
    (folder,) = Path(client.root).glob("**/shared_poll/*/missing")
    folder.rename(folder.with_name("of another boot"))


def change_system(client: Client) -> None:
    for path in Path(client.root).glob("**/missing/*.json"):
        path.write_text(path.read_text().replace('"of": ["', '"of": ["other '))


def garble_absences(client: Client) -> None:
    for path in Path(client.root).glob("**/missing/*.json"):
        path.write_bytes(b'{"of": 5, "time": "\x00')


def store_infinite_absence(client: Client) -> None:
    for path in Path(client.root).glob("**/missing/*.json"):
        path.write_text(path.read_text().replace('"absent": ', '"absent": 1e999, "unread": '))


@pytest.mark.parametrize(
    "between",
    [leave_a_marker, change_boot_id, change_system, garble_absences, store_infinite_absence],
    ids=lambda it: it.__name__,
)
def test_absences_of_earlier_processes_count_only_for_the_same_attempt_and_system(
    client: Client, between: Callable[[Client], None]
) -> None:
    forget_job(client)
    for _ in range(2):
        query_in_new_process(client)
        client.clock.advance(GRACE)

    between(client)

    assert query_in_new_process(client).state is JobState.ACTIVE


class ReportsRunning:
    """A layer over the toy: the queue reports the job as running."""

    @hookimpl
    def parse_status(self) -> dict[str, Observation]:
        return {"1": Observation(state=JobState.ACTIVE, native_state="running")}


def test_a_report_in_between_ends_an_absence(client: Client) -> None:
    forget_job(client)
    for _ in range(2):
        query_in_new_process(client)
        client.clock.advance(GRACE)

    query_in_new_process(client, ReportsRunning())
    client.clock.advance(GRACE)

    assert [query_in_new_process(client).state for _ in range(2)] == [JobState.ACTIVE] * 2


def test_the_absence_of_an_ended_job_is_removed(client: Client) -> None:
    forget_job(client)
    for _ in range(2):
        query_in_new_process(client)
        client.clock.advance(GRACE)
    assert list(Path(client.root).glob("**/missing/*.json"))

    query_in_new_process(client)

    assert not list(Path(client.root).glob("**/missing/*.json"))


def test_only_some_of_many_absences_are_stored_for_later_processes(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands may end at once, each of which would take a file for a moment."""
    monkeypatch.setattr(module, "_MOST_STORED", 2)
    client.scheduler.slots, client.scheduler.accounting = 0, False
    jobs = {job.job_id: job for job in client.submit("a3", "a1", "a2")}
    for job_id in ("a1", "a2", "a3"):
        client.scheduler.vanish(jobs[job_id].native_id)
        client.clock.advance(5)
        client.poll()

    kept = {path.name for path in Path(client.root).glob("**/missing/*.json")}

    assert kept == {"a1.1.json", "a2.1.json"}, "those that are missing for the longest time"


def test_a_snapshot_that_several_processes_use_counts_once(client: Client) -> None:
    forget_job(client)
    query_in_new_process(client)
    client.clock.advance(GRACE)
    others = [another_process(client) for _ in range(3)]
    for other in others:
        other.engine.recall(["a1"])
        other.monitor.follow([other.job("a1")], client.clock())

    for other in others:
        other.info(other.job("a1"))
    client.clock.advance(GRACE)

    assert [other.published[-1][1].state for other in others] == [JobState.ACTIVE] * 3
    assert query_in_new_process(client).state is JobState.FAILED


# ------------------------------------------------------------------------------- polls while all jobs wait


@pytest.fixture
def full(client: Client, clock: FakeClock) -> Iterator[Client]:
    """Yield a client of a batch system that starts no job."""
    with FakeScheduler(clock, slots=0) as scheduler:
        yield Client(client.root, scheduler, clock)


def poll_until(client: Client, end: float) -> int:
    """Make every poll that is due until a time of the clock; return the number of polls."""
    polls = 0
    while (due := client.monitor.next_poll_time()) is not None and due < end:
        client.clock.advance(max(0.0, due - client.clock()))
        client.poll()
        polls += 1
    return polls


def test_while_all_jobs_wait_an_hour_has_at_most_twelve_polls(full: Client) -> None:
    full.submit("a1", "a2")
    poll_until(full, full.clock() + 3600)

    assert poll_until(full, full.clock() + 3600) <= 12


def test_a_job_that_starts_brings_the_next_poll_forward(full: Client) -> None:
    full.submit("a1", "a2")
    poll_until(full, full.clock() + 3600)
    full.leave("a1", "active")
    full.monitor.collect_markers(full.clock())

    assert poll_until(full, full.clock() + 34) == 1


def test_a_job_that_runs_is_polled_at_the_usual_interval(full: Client) -> None:
    full.submit("a1", "a2")
    poll_until(full, full.clock() + 3600)
    full.leave("a1", "active")
    full.monitor.collect_markers(full.clock())
    poll_until(full, full.clock() + 400)

    assert poll_until(full, full.clock() + 3600) >= 100


def test_a_queued_job_that_left_the_queue_is_polled_at_the_usual_interval(full: Client) -> None:
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


def test_a_caller_with_a_timeout_gets_an_end_from_outside(full: Client) -> None:
    (job,) = full.submit("a1")
    poll_until(full, full.clock() + 3600)
    full.scheduler.cancel(job.native_id)

    full.monitor.note_deadline(full.clock(), 60.0)
    poll_until(full, full.clock() + 60.0)

    assert full.states("a1")[-1] is JobState.CANCELED


@pytest.mark.parametrize("seconds", [30.0, 300.0])
def test_jobs_cancelled_from_outside_are_final_within_three_seconds_and_two_polls(
    client: Client, clock: FakeClock, seconds: float
) -> None:
    """Those that run leave markers; of those that wait, only the queue tells."""
    names = [f"a{number}" for number in range(40)]
    running = names[:5]
    with FakeScheduler(clock, outcome=Outcome(seconds=3600), slots=len(running)) as scheduler:
        client = Client(client.root, scheduler, clock)
        jobs = client.submit(*names)
        for job_id in running:
            client.leave(job_id, "active")
        client.monitor.collect_markers(clock())
        poll_until(client, clock() + seconds)
        asked, begun = len(queries(client)), clock()

        scheduler.cancel_all([job.native_id for job in jobs])
        for marker in ("signalled", "exit.run.143"):
            for job_id in running:
                client.leave(job_id, marker)
            client.monitor.collect_markers(clock())
            clock.advance(0.1)
        poll_until(client, begun + 3)

    assert {job_id: client.states(job_id)[-1] for job_id in names} == dict.fromkeys(names, JobState.CANCELED)
    assert len(queries(client)) - asked <= 2


@pytest.mark.parametrize("happens", ["nothing", "a question", "an outage"])
def test_a_job_that_was_cancelled_while_it_waited_is_polled_often_for_ten_seconds(
    client: Client, clock: FakeClock, happens: str
) -> None:
    """It leaves no marker, as others do meanwhile, and some batch systems forget such a job."""
    running, waiting = client.submit("a1", "a2")
    client.leave("a1", "active")
    client.monitor.collect_markers(clock())
    poll_until(client, clock() + 60)
    clock.advance(1)
    client.monitor.record_stop(waiting, Stop(CANCEL, datetime.now(UTC)))
    client.monitor.note_change(waiting, clock())
    client.scheduler.vanish(waiting.native_id)

    def poll_beside_others(seconds: float) -> int:
        polls, end = 0, clock() + seconds
        while clock() < end:
            client.monitor._poll_interval.note_marker(clock())
            # as a submission does
            client.monitor._poll_interval.request_poll(clock())
            polls += poll_until(client, clock() + 1)
            clock.advance(max(0.0, 1 - clock() % 1))
        return polls

    assert client.monitor._poll_interval.shortest == 2
    polls = poll_beside_others(2)
    if happens == "a question":
        asked = len(queries(client))
        # no snapshot from before that answers it
        running.changed_at = clock()
        client.info(running)
        assert len(queries(client)) == asked + 1
    elif happens == "an outage":
        client.scheduler.faults.down()
        assert poll_beside_others(2) == 1
        client.scheduler.faults.clear()
    assert 4 <= polls + poll_beside_others(8) <= 6
    assert poll_beside_others(60) <= 7
    assert waiting.absent_since is not None


class TellsNotIfRun:
    """A layer over the toy: a poll does not tell if a job that has ended ran, as for elements of arrays."""

    @hookimpl(wrapper=True)
    def parse_status(self) -> Generator[None, Mapping[str, Observation], Mapping[str, Observation]]:
        seen = yield
        return {name: attrs.evolve(it, ran=None) for name, it in seen.items()}


def test_jobs_that_may_have_run_are_judged_after_the_grace_without_another_poll(
    client: Client, clock: FakeClock
) -> None:
    with FakeScheduler(clock, slots=0) as scheduler:
        config = BatchConfig(work_directory=client.root, network_files=False)
        client = Client(client.root, scheduler, clock, (TellsNotIfRun(),), config)
        jobs = client.submit("a1", "a2")
        clock.advance(60)
        scheduler.cancel_all([job.native_id for job in jobs])
        client.poll()
        # thousands of files would delay the ends
        assert not list(client.root.glob("**/missing/*.json"))
        asked, settles = len(queries(client)), client.monitor.next_settle_time()
        assert settles is not None
        assert JobState.CANCELED not in client.states("a1") + client.states("a2")

        clock.advance(settles - clock())
        client.monitor.settle(clock())

    assert client.states("a1")[-1] is client.states("a2")[-1] is JobState.CANCELED
    assert len(queries(client)) == asked
    assert client.monitor.next_settle_time() is None

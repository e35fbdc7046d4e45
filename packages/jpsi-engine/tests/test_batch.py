"""The batch engine over a fake batch system: nothing is lost, and nothing runs twice, whatever fails."""

from __future__ import annotations

import errno
import json
import logging
import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import attrs
import pytest

from jpsi.contract.command import Command, CommandResult
from jpsi.contract.config import BatchConfig
from jpsi.contract.engine import EngineSetup, InterruptedSubmission, Recovered, Submission
from jpsi.contract.hookspecs import Capabilities, ExecutorHooks, Site, hookimpl
from jpsi.contract.observation import NOT_OFFERED, NotOffered, Observation
from jpsi.contract.shell import Script, ShellLine
from jpsi.job import Job
from jpsi.layers import default_hooks
from jpsi.layers.layer import Layer, relay
from jpsi.model.dependencies import Dependency
from jpsi.model.errors import InvalidJobException, JpsiError, SubmitException
from jpsi.model.spec import JobAttributes, JobSpec
from jpsi.model.states import Evidence, JobState, JobStatus, Reason
from jpsi_engine.batch import BatchEngine
from jpsi_engine.monitor.poll_loop import PollLoop
from jpsi_engine.scheduler.job_view import JobView
from jpsi_engine.spool.arrays import ArrayFiles
from jpsi_engine.spool.claims import Claim
from jpsi_engine.spool.intents import JobIntent
from jpsi_engine.spool.job_records import JobRecords
from jpsi_engine.spool.requeue_codes import EVERY_FAILURE, read_requeue_codes
from jpsi_engine.spool.spool import Spool
from jpsi_engine.submission.handoff import Handoff
from jpsi_engine.submission.recovery import Recovery
from jpsi_engine.submission.run_host import RunHost, TakenError, UnsentError
from jpsi_engine.submission.submission import SubmissionPipeline
from jpsi_engine.verdict import CANCEL
from jpsi_testing import FakeTransport, toy, toy_fake
from jpsi_testing.fake import FakeClock, FakeJob, FakeScheduler, FakeState, Outcome

GRACE = 90.0


@attrs.define
class Bench:
    """A batch engine whose poll rounds a test runs."""

    root: Path
    scheduler: FakeScheduler
    clock: FakeClock
    #: Layers over the toy's hooks.
    overrides: list[object] = attrs.field(factory=list)
    published: list[tuple[str, JobStatus]] = attrs.field(factory=list)
    renamed: dict[str, str] = attrs.field(factory=dict)
    engine: BatchEngine = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.engine = self.process()

    def process(self) -> BatchEngine:
        """Return the engine of another process that uses the same spool."""
        layers = [Layer(f"layer {at}", it) for at, it in enumerate((default_hooks, toy, *self.overrides))]
        config = BatchConfig(
            work_directory=self.root,
            shortest_interval=timedelta(seconds=2),
            longest_interval=timedelta(seconds=30),
            grace=timedelta(seconds=GRACE),
            network_files=True,
        )
        setup = EngineSetup(
            executor="toy",
            version="1",
            config=config,
            transport=FakeTransport(self.scheduler, toy_fake),
            publish=lambda job_id, status: self.published.append((job_id, status)),
            renamed=self.renamed.__setitem__,
            process_engine=lambda setup: pytest.fail("a batch system needs no processes"),
        )
        return BatchEngine(setup, cast("ExecutorHooks", relay(layers, (ExecutorHooks,))))

    @property
    def spool(self) -> Spool:
        return self.engine._spool

    def submission(self, job_id: str = "a1", attempt: int = 1, **fields: Any) -> Submission:
        return Submission(
            job_id=job_id,
            attempt=attempt,
            spec=JobSpec("/bin/true", directory=self.root, **fields),
            launch=[ShellLine('exec "$@"')],
        )

    def submit(self, job_id: str = "a1", **fields: Any) -> str:
        """Submit a job and follow it."""
        native_id = self.engine.submit(self.submission(job_id, **fields))
        self.follow(job_id)
        return native_id

    def follow(self, job_id: str = "a1") -> None:
        monitor, _ = self.engine._open()
        job = monitor.get(job_id)
        assert job is not None
        monitor.follow([job], self.clock())

    def leave(self, *markers: str, job_id: str = "a1") -> None:
        """Leave markers as the runner would, in this order."""
        for marker in markers:
            path = Path(self.spool.events, f"{job_id}.1.{marker}")
            path.touch()
            self.clock.advance(0.001)
            os.utime(path, (self.clock(), self.clock()))

    def collect_markers(self) -> None:
        self.engine._open()[0].collect_markers(self.clock())

    def poll(self) -> None:
        self.engine._open()[0].poll(self.clock)

    def recover(self) -> list[Recovered]:
        self.engine = self.process()
        return list(self.engine.recover())

    def states(self, job_id: str = "a1") -> list[JobState]:
        return [status.state for name, status in self.published if name == job_id]

    def last(self, job_id: str = "a1") -> tuple[object, ...]:
        status = [status for name, status in self.published if name == job_id][-1]
        return status.state, status.exit_code, status.reason, status.evidence

    def calls(self, command: str) -> int:
        return sum(call.invocation.argv[0] == command for call in self.scheduler.log)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def scheduler(clock: FakeClock) -> Iterator[FakeScheduler]:
    """Yield a fake batch system that simulates jobs: they leave no markers."""
    with FakeScheduler(clock, outcome=Outcome(seconds=60), slots=1) as scheduler:
        yield scheduler


@pytest.fixture
def bench(
    tmp_path: Path, scheduler: FakeScheduler, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> Bench:
    # no threads: the test runs the rounds
    monkeypatch.setattr(PollLoop, "start", lambda poll_loop: None)
    monkeypatch.setattr("jpsi_engine.batch.start_pruning", lambda *_: None)
    return Bench(tmp_path, scheduler, clock)


def claim_of(bench: Bench, attempt: int = 1) -> str | None:
    claim = bench.spool.claim("a1", attempt)
    return None if claim is None else claim.text


# ------------------------------------------------------------------------------------------ following


def test_marker_of_a_clean_end_is_final_at_once_without_a_poll(bench: Bench) -> None:
    bench.submit()

    bench.leave("active", "exit.run.0")
    bench.collect_markers()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)
    assert bench.calls("tstat") == 0


@pytest.mark.clause("status-time", "status-skipped")
def test_a_job_first_observed_at_its_end_has_the_start_that_the_runner_recorded(bench: Bench) -> None:
    bench.submit()
    began = bench.clock()

    bench.leave("active")
    bench.clock.advance(5)
    bench.leave("exit.run.0")
    bench.collect_markers()

    assert [(it.state, round(it.time.timestamp() - began)) for _, it in bench.published] == [
        (JobState.ACTIVE, 0),
        (JobState.COMPLETED, 5),
    ]
    assert {it.metadata["time.source"] for _, it in bench.published} == {"marker"}


@pytest.mark.clause("state-mapping", "python-polling")
def test_the_queue_decides_the_state_if_there_is_no_marker(bench: Bench) -> None:
    bench.submit("a1")
    bench.submit("a2")

    bench.poll()

    assert (bench.states("a1"), bench.states("a2")) == ([JobState.ACTIVE], [JobState.QUEUED])
    assert bench.calls("tstat") == 1


def test_signalled_end_waits_for_the_state_of_the_queue(bench: Bench) -> None:
    native_id = bench.submit()
    bench.poll()
    bench.leave("active", "signalled", "exit.run.0")
    bench.collect_markers()
    assert not any(state.final for state in bench.states())

    bench.scheduler.cancel(native_id)
    bench.clock.advance(5)
    bench.poll()

    assert bench.last() == (JobState.CANCELED, 0, Reason.CANCELLED, Evidence.QUEUE)


def test_the_queue_is_polled_again_soon_while_it_says_that_an_ended_job_runs(bench: Bench) -> None:
    """Slurm calls a cancelled job COMPLETING until its node is clean."""
    bench.submit()
    bench.poll()
    bench.leave("active", "signalled", "exit.run.143")
    bench.collect_markers()
    bench.clock.advance(3)

    bench.poll()

    due = bench.engine._open()[0].next_poll_time()
    assert due is not None
    assert due - bench.clock() < 5
    assert not any(state.final for state in bench.states())


def test_a_snapshot_from_before_the_exit_marker_does_not_decide_the_end(bench: Bench) -> None:
    native_id = bench.submit()
    bench.scheduler.end_as(native_id, FakeState.TIMEOUT)
    bench.clock.advance(5)
    bench.poll()  # the marker does not show yet; the engine waits for it

    bench.leave("active", "exit.run.0")
    bench.collect_markers()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)


def test_time_limit_is_final_without_a_marker_after_the_grace(bench: Bench) -> None:
    native_id = bench.submit()
    bench.scheduler.end_as(native_id, FakeState.TIMEOUT)
    bench.clock.advance(5)
    bench.poll()
    assert not any(state.final for state in bench.states())

    bench.clock.advance(GRACE)
    bench.poll()

    state, _, reason, evidence = bench.last()
    assert (state, reason, evidence) == (JobState.FAILED, Reason.TIMEOUT, Evidence.QUEUE)


def test_requeued_job_ends_as_its_last_run(bench: Bench) -> None:
    native_id = bench.submit()
    bench.leave("active", "signalled", "exit.run.143")
    bench.collect_markers()
    bench.scheduler.requeue(native_id)
    bench.clock.advance(5)
    bench.poll()

    bench.leave("1.active", "1.exit.run.0")
    bench.collect_markers()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)
    assert JobState.QUEUED not in bench.states()


def test_vanished_job_is_lost_after_the_grace_and_never_completed(bench: Bench) -> None:
    native_id = bench.submit()
    bench.poll()
    bench.scheduler.vanish(native_id)

    bench.clock.advance(5)
    bench.poll()
    assert bench.states() == [JobState.ACTIVE]
    bench.clock.advance(GRACE)
    bench.poll()

    assert bench.last() == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)


@pytest.mark.parametrize("trace", ["marker", "start", "claim", None])
def test_accounting_is_queried_for_a_job_that_left_the_queue(bench: Bench, trace: str | None) -> None:
    """Without a trace of a run the code 0 proves nothing: PBS has it for processes that it did not find."""
    native_id = bench.submit()
    if trace == "marker":
        bench.leave("active")
    elif trace is not None:
        folder = Path(bench.spool.folder("a1"))
        (folder / {"start": "start.1.0", "claim": "claim.1"}[trace]).write_text(f"{native_id}\n")
    bench.scheduler.keep = 0.0
    bench.clock.advance(60)
    assert bench.scheduler.job(native_id).state is FakeState.COMPLETED

    bench.poll()
    bench.clock.advance(GRACE)
    bench.poll()

    lost = (JobState.FAILED, None, Reason.LOST, Evidence.ACCOUNTING)
    assert bench.last() == ((JobState.COMPLETED, 0, None, Evidence.ACCOUNTING) if trace else lost)


@pytest.mark.parametrize("fault", ["down", "hang", "cut", "fail", "lie"])
def test_a_failed_poll_changes_nothing(bench: Bench, fault: str) -> None:
    faults = bench.scheduler.faults
    bench.submit()
    bench.poll()
    known = bench.states()
    if fault == "down":
        faults.down()
    elif fault == "lie":
        faults.fail("tstat", None, returncode=0, stdout="maintenance today")
    else:
        getattr(faults, fault)("tstat", None)

    for _ in range(3):
        bench.clock.advance(20)
        bench.poll()

    assert not any(state.final for state in bench.states()[len(known) :])


def test_an_error_of_a_plugin_costs_one_poll(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        @hookimpl
        def parse_status(self) -> dict[str, Any]:
            return cast("dict[str, Any]", {}["no such key"])

    bench.overrides.append(Broken())
    bench.engine = bench.process()
    bench.submit()

    with caplog.at_level("INFO"):
        bench.poll()

    assert "the hook parse_status of layer 2 failed: KeyError" in caplog.text
    assert bench.states() == []


@pytest.mark.clause("state-unmapped")
def test_an_unknown_native_state_is_warned_about_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    native_id = bench.submit()
    answer = f"ID STATE CODE RESTARTS SUBMITTED TAG\n{native_id} DREAMING - 0 0 jpsi-a1-1\n1 lines\n"
    bench.scheduler.faults.fail("tstat", None, returncode=0, stdout=answer)

    bench.poll()
    bench.poll()

    assert caplog.text.count("DREAMING") == 1
    assert bench.states() == []


# ----------------------------------------------------------------------------------------- submission


@pytest.mark.clause("python-submit-script", "python-submit-command")
def test_the_submit_command_reads_directives_and_one_line_that_runs_the_script_of_the_job(
    bench: Bench,
) -> None:
    native_id = bench.submit("a1", pre_launch=Path("/x"), environment={"A": "#TOY seconds=1"})

    (call,) = [it.invocation for it in bench.scheduler.log if it.invocation.argv[0] == "tsubmit"]
    first, *directives, line = call.stdin.splitlines()
    run = bench.root / "toy/jobs/a1/run.1"
    assert native_id == bench.scheduler.jobs[0].native_id
    assert first == "#!/bin/sh"
    assert directives == ["#TOY tag=jpsi-a1-1", "#TOY seconds=600"]
    assert f"exec /bin/sh {run}" in line
    assert "/bin/true" in run.read_text()


def test_the_hook_submit_gets_the_path_of_the_script_of_the_job(bench: Bench) -> None:
    files = []

    class Keeps:
        @hookimpl
        def submit(self, script: Script) -> None:
            files.append(script.file)

    bench.overrides.append(Keeps())
    bench.engine = bench.process()
    bench.submit("a1")

    assert files == [str(bench.root / "toy/jobs/a1/run.1")]


@pytest.mark.clause("python-final-removed")
def test_a_final_job_is_not_polled(bench: Bench) -> None:
    ended, other = bench.submit("a1"), bench.submit("a2")
    bench.leave("active", "exit.run.0", job_id="a1")
    bench.collect_markers()
    begin = len(bench.scheduler.log)

    bench.poll()

    polled = [word for it in list(bench.scheduler.log)[begin:] for word in it.invocation.argv[1:]]
    assert bench.last("a1")[0] is JobState.COMPLETED
    assert bench.engine.native_ids() == [other]
    assert other in polled
    assert ended not in polled


@pytest.mark.clause("submit-which")
def test_a_refused_job_is_invalid_and_leaves_no_files(bench: Bench) -> None:
    with pytest.raises(InvalidJobException, match="no queue 'nowhere'"):
        bench.engine.submit(bench.submission(attributes=JobAttributes(queue_name="nowhere")))

    assert bench.spool.job_ids() == []


@pytest.mark.clause("submit-which")
def test_an_unreachable_system_is_a_transient_failure_and_leaves_no_files(bench: Bench) -> None:
    bench.scheduler.faults.down()

    with pytest.raises(SubmitException, match="cannot contact the toy server") as caught:
        bench.engine.submit(bench.submission())

    assert caught.value.transient
    assert bench.spool.job_ids() == []


@pytest.mark.parametrize("fault", ["accept_and_hang", "cut"])
def test_an_accepted_submission_whose_output_was_lost_is_found_by_its_tag(bench: Bench, fault: str) -> None:
    getattr(bench.scheduler.faults, fault)("tsubmit")

    native_id = bench.submit()

    assert [job.native_id for job in bench.scheduler.jobs] == [native_id]
    assert bench.recover()[0].native_id == native_id


@pytest.mark.parametrize("is_down", [False, True], ids=["not found", "cannot be looked for"])
def test_a_submission_without_trace_can_never_run(bench: Bench, is_down: bool) -> None:
    bench.scheduler.faults.hang("tsubmit")
    if is_down:
        bench.scheduler.faults.hang("tstat", None)

    with pytest.raises(SubmitException, match="which will not run") as caught:
        bench.engine.submit(bench.submission())

    assert caught.value.transient
    assert claim_of(bench) == "revoked"
    assert bench.recover() == []


def test_a_revoked_submission_that_starts_late_does_not_run(tmp_path: Path, bench: Bench) -> None:
    """The batch system accepted it, could not find it, and starts it during the next attempt."""
    proof = tmp_path / "proof"
    with FakeScheduler(slots=0) as scheduler:
        bench.scheduler = scheduler
        bench.engine = bench.process()
        scheduler.lag = 3600.0
        scheduler.faults.accept_and_hang("tsubmit")
        spec = JobSpec("/bin/sh", ["-c", f"echo ran >>{proof}"], directory=tmp_path)
        first = attrs.evolve(bench.submission(), spec=spec)
        bench.spool.open()
        with pytest.raises(SubmitException):
            bench.engine.submit(first)

        scheduler.slots = 2
        bench.engine.submit(attrs.evolve(first, attempt=2))

        assert scheduler.wait_for(lambda: all(job.state.final for job in scheduler.jobs))
        assert len(scheduler.jobs) == 2
    assert proof.read_text() == "ran\n"


def test_a_submission_without_output_that_already_runs_is_bound(tmp_path: Path, bench: Bench) -> None:
    """The plugin cannot find jobs by tag, but the claim has the native id."""

    class CannotFind:
        @hookimpl
        def find(self) -> NotOffered:
            claim = Path(bench.spool.folder("a1"), "claim.1")
            claim.write_text("17\n")
            return NOT_OFFERED

    bench.overrides.append(CannotFind())
    bench.engine = bench.process()
    bench.scheduler.faults.hang("tsubmit")

    assert bench.submit() == "17"


@pytest.mark.parametrize("has_begun", [False, True], ids=["job never ran", "job runs"])
def test_an_interrupt_during_the_handoff_is_raised(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, has_begun: bool
) -> None:
    run = FakeTransport.run

    def interrupted(self: FakeTransport, command: Command, *rest: Any) -> CommandResult:
        result = run(self, command, *rest)
        if command.argv[0] != "tsubmit":
            return result
        if has_begun:
            Path(bench.spool.folder("a1"), "claim.1").write_text("1\n")
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeTransport, "run", interrupted)

    with pytest.raises((KeyboardInterrupt, InterruptedSubmission)) as caught:
        bench.engine.submit(bench.submission())

    assert caught.type is (InterruptedSubmission if has_begun else KeyboardInterrupt)
    assert bench.engine.native_ids() == (["1"] if has_begun else [])
    assert claim_of(bench) == ("1" if has_begun else "revoked")


def test_an_interrupt_is_raised_if_the_outcome_of_the_submission_is_unknown(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C during a lost connection must end a loop that continues after errors."""

    def interrupted(*_: object) -> CommandResult:
        raise KeyboardInterrupt

    def unknown(*_: object) -> bool:
        msg = "no answer"
        raise SubmitException(msg)

    monkeypatch.setattr(FakeTransport, "run", interrupted)
    monkeypatch.setattr(JobIntent, "revoke", unknown)

    with pytest.raises(KeyboardInterrupt) as caught:
        bench.engine.submit(bench.submission())

    assert "may run or not" in caught.value.__notes__[0]


def test_output_without_native_id_is_an_error(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.scheduler.faults.fail("tsubmit", returncode=0, stdout="accepted as job none\n")
    caplog.set_level(logging.DEBUG)

    with pytest.raises(SubmitException, match="cannot parse"):
        bench.engine.submit(bench.submission())

    warnings = [it for it in caplog.records if it.levelno >= logging.WARNING]
    assert [it.getMessage() for it in warnings if "cannot parse" in it.getMessage()] == [
        "tsubmit printed output that the plugin cannot parse: 'accepted as job none\\n'"
    ]
    assert [it for it in warnings if it.exc_info] == []
    assert [it for it in caplog.records if it.levelno == logging.DEBUG and it.exc_info]


def test_job_that_is_not_safely_on_disk_is_not_submitted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Spool, "sync", staticmethod(full))
        with pytest.raises(SubmitException, match=r"could not be recorded in .*No space left") as caught:
            bench.submit()

    assert caught.value.transient
    assert "No space left" in str(caught.value.__cause__)
    assert (bench.scheduler.jobs, bench.spool.job_ids()) == ([], [])
    assert bench.submit() == "1"


@pytest.mark.parametrize(
    "cause", [UnsentError("the line is down", transient=True), TakenError("it is taken")]
)
def test_error_of_a_submission_that_reached_no_batch_system_has_its_cause(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, cause: UnsentError
) -> None:
    def unsent(*_: object) -> CommandResult:
        raise cause

    monkeypatch.setattr(RunHost, "run_submit", unsent)

    with pytest.raises(SubmitException, match=str(cause)) as caught:
        bench.engine.submit(bench.submission())

    assert caught.value.__cause__ is cause


def test_attempt_that_is_not_submitted_is_discarded_before_another_process_can_lock_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the other process could recover it as a job that was never submitted."""
    bench.spool.open()
    os.close(bench.spool.prepare("a1", 1, {}, ""))
    bench.spool.revoke("a1", 1)
    discard, is_locked = Spool.discard, list[bool]()

    def noted(spool: Spool, *arguments: Any) -> None:
        with spool.hold_lock("a1", 2, 0.0) as is_held:
            is_locked.append(not is_held)
        discard(spool, *arguments)

    def fail(*_: Any) -> None:
        msg = "out of memory"
        raise SubmitException(msg)

    monkeypatch.setattr(Spool, "discard", noted)
    monkeypatch.setattr(SubmissionPipeline, "_context", fail)

    with pytest.raises(SubmitException, match="out of memory"):
        bench.engine.submit(bench.submission(attempt=2))

    assert is_locked == [True]
    assert claim_of(bench, 2) == "revoked"
    with bench.spool.hold_lock("a1", 2, 0.0) as is_held:
        assert is_held


def test_submit_concurrency_bounds_the_handoffs(bench: Bench) -> None:
    assert bench.engine._pipeline._slots._value == BatchConfig().submit_concurrency  # type: ignore[attr-defined]  # what a semaphore has left


# ------------------------------------------------------------------------------------------- recovery


def test_recovered_job_is_followed_again(bench: Bench) -> None:
    native_id = bench.submit()

    (recovered,) = bench.recover()
    bench.follow()
    bench.leave("active", "exit.run.7")
    bench.collect_markers()

    assert (recovered.job_id, recovered.native_id) == ("a1", native_id)
    assert bench.last() == (JobState.FAILED, 7, Reason.EXIT_CODE, Evidence.MARKER)
    assert bench.recover() == []


def test_a_final_job_is_not_recovered_whatever_the_evidence(bench: Bench) -> None:
    native_id = bench.submit()
    bench.scheduler.vanish(native_id)
    bench.poll()
    bench.clock.advance(GRACE)
    bench.poll()

    assert bench.last()[2] is Reason.LOST
    assert bench.recover() == []


def test_recovery_publishes_an_end_from_before_the_client_started(bench: Bench) -> None:
    bench.submit()
    bench.leave("active", "exit.run.0")

    bench.recover()
    bench.follow()
    bench.collect_markers()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)


def killed_before(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, step: str, owner: type, *elements: str
) -> None:
    """Submit a job, or these jobs as an array, in a client that is killed at the beginning of this step."""

    class Killed(BaseException):
        pass

    def die(*_: Any, **__: Any) -> None:
        raise Killed

    def submit() -> None:
        if elements:
            bench.engine.submit_many([bench.submission(it) for it in elements], lambda _: None)
        else:
            bench.engine.submit(bench.submission())

    with monkeypatch.context() as patched:
        patched.setattr(owner, step, die)
        # a killed process runs none of these
        patched.setattr(Handoff, "withdraw", lambda *_: None)
        patched.setattr(Spool, "discard", lambda *_: None)
        patched.setattr(Spool, "give_up", lambda *_: None)
        with pytest.raises(Killed):
            submit()


def unnamed_array(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> str:
    """Submit e1 and e2 as an array, with a kill before the record of its native id; return its name."""
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline, "e1", "e2")
    (array,) = bench.spool.arrays.names()
    return array


def test_a_job_that_was_never_sent_is_recovered_as_new(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_before(bench, monkeypatch, "sync", Spool)

    (recovered,) = bench.recover()

    assert (recovered.job_id, recovered.attempt, recovered.native_id) == ("a1", 1, None)
    assert bench.engine.submit(bench.submission(attempt=2)) == "1"


def test_a_job_without_a_complete_intent_was_never_submitted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The submit command has been started by then."""
    killed_before(bench, monkeypatch, "write_attempt", Spool)

    assert bench.recover() == []
    assert not bench.scheduler.jobs


def test_a_job_whose_client_was_killed_before_it_got_the_id_is_found_by_its_tag(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)

    (recovered,) = bench.recover()

    assert recovered.native_id == "1"
    assert len(bench.scheduler.jobs) == 1


def test_a_job_that_shows_late_is_found_by_its_claim(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.scheduler.lag = 3600.0
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)
    Path(bench.spool.folder("a1"), "claim.1").write_text("1\n")

    (recovered,) = bench.recover()

    assert recovered.native_id == "1"


def test_a_job_recovered_as_new_can_never_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.scheduler.lag = 3600.0
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)

    (recovered,) = bench.recover()

    assert recovered.native_id is None
    assert claim_of(bench) == "revoked"


@pytest.mark.parametrize("look", ["recover", "recall"])
def test_job_whose_intent_cannot_be_decoded_is_neither_returned_nor_followed(
    bench: Bench, caplog: pytest.LogCaptureFixture, look: str
) -> None:
    for job_id in ("a1", "b1"):
        bench.submit(job_id)
    path = Path(bench.spool.folder("a1"), "intent.1.json")
    first, _, native_id = path.read_text().partition("\n")
    path.write_text(json.dumps({**json.loads(first), "time": "yesterday"}) + f"\n{native_id}")
    bench.engine = bench.process()

    found = bench.engine.recover() if look == "recover" else bench.engine.recall(["a1", "b1"])

    assert not isinstance(found, NotOffered)
    assert [it.job_id for it in found] == ["b1"]
    assert [job.job_id for job in bench.engine._open()[0].all()] == ["b1"]
    assert "job a1 is damaged and left alone" in caplog.text


def test_native_id_of_an_array_that_has_begun_is_recorded_if_it_is_found_by_its_tag(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = unnamed_array(bench, monkeypatch)
    bench.leave("active", job_id="e1")

    assert {it.job_id: it.native_id for it in bench.recover()} == {"e1": "1.1", "e2": "1.2"}
    assert bench.spool.arrays.read_native_id(array) == "1"


def test_native_id_of_an_array_is_not_recorded_while_another_process_submits_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = unnamed_array(bench, monkeypatch)
    bench.leave("active", job_id="e1")

    with bench.spool.arrays.hold_lock(array, 0.0) as is_held:
        assert is_held
        recovered = {it.job_id: it.native_id for it in bench.recover()}

    assert recovered == {"e1": "1.1", "e2": "1.2"}
    assert bench.spool.arrays.read_native_id(array) is None


@pytest.mark.parametrize("has_begun", [False, True], ids=["no element has begun", "an element has begun"])
def test_elements_of_an_array_whose_claim_cannot_be_read_are_followed_by_their_markers(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, has_begun: bool
) -> None:
    """Recovery needs no command of the batch system for it."""
    array = unnamed_array(bench, monkeypatch)
    Path(bench.spool.arrays.folder(array), "claim").write_text("not one word")
    if has_begun:
        bench.leave("active", job_id="e2")
    bench.scheduler.faults.down()

    recovered = {it.job_id: it.native_id for it in bench.recover()}
    bench.follow("e1")
    bench.leave("active", "exit.run.3", job_id="e1")
    bench.collect_markers()

    assert recovered == {"e1": "unnamed.e1", "e2": "unnamed.e2"}
    assert bench.last("e1") == (JobState.FAILED, 3, Reason.EXIT_CODE, Evidence.MARKER)


def test_system_that_does_not_answer_postpones_recovery(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine cannot know then if a job without an id runs, and does not guess."""
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)
    bench.scheduler.faults.down()

    with pytest.raises(SubmitException):
        bench.recover()
    bench.scheduler.faults.up()

    assert [recovered.native_id for recovered in bench.recover()] == ["1"]


def test_running_submissions_are_left_to_their_processes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Recovery waits for all of them at once, after all other jobs."""
    waits: list[tuple[str, float]] = []
    judging = Spool.hold_lock

    def noted(spool: Spool, job_id: str, attempt: int, patience_seconds: float) -> object:
        waits.append((job_id, patience_seconds))
        return judging(spool, job_id, attempt, 0.0)

    monkeypatch.setattr(Spool, "hold_lock", noted)
    bench.submit("b1")
    content = {"spec": {}, "time": "2026-01-01T00:00:00+00:00"}
    locks = [bench.spool.prepare(job_id, 1, content, "") for job_id in ("a1", "a2")]

    assert [recovered.job_id for recovered in bench.recover()] == ["b1"]
    bench.engine.track("b1")

    for lock in locks:
        os.close(lock)
    assert [timeout_seconds for _, timeout_seconds in waits[:2]] == [0.0, 0.0]
    assert all(0 < timeout_seconds <= 10 for _, timeout_seconds in waits[2:])
    assert "other processes, and left out until a later recover(): job a" in caplog.text
    assert {recovered.job_id: recovered.native_id for recovered in bench.engine.recover()} == {
        "a1": None,
        "a2": None,
    }


@pytest.mark.parametrize("is_shown", [True, False])
def test_recovery_holds_no_lock_of_an_attempt_that_it_has_settled(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, is_shown: bool
) -> None:
    """The runner of another job waits for its lock, which must not last as long as all revocations."""
    bench.scheduler.lag = 0.0 if is_shown else 3600.0
    monkeypatch.setattr(SubmissionPipeline, "_record_native_id", lambda *_: None)
    for job_id in ("a1", "a2", "a3"):
        bench.engine.submit(bench.submission(job_id))
    held: list[list[str]] = []
    resolve = Recovery._resolve

    def find(recovery: Recovery, lost: Any, native_id: str | None) -> str | None:
        others = [it for it in ("a1", "a2", "a3") if it != lost.id]
        held.append([it for it in others if _is_locked(bench.spool, it)])
        return resolve(recovery, lost, native_id)

    monkeypatch.setattr(Recovery, "_resolve", find)

    assert [it.native_id for it in bench.recover()] == (["1", "2", "3"] if is_shown else [None] * 3)

    # the engine searches once more, at once and under their locks, for those that the system does not show
    assert held == ([[], [], []] if is_shown else [["a2", "a3"], ["a3"], []])


def _is_locked(spool: Spool, job_id: str) -> bool:
    with spool.hold_lock(job_id, 1, 0.0) as is_free:
        return not is_free


def test_recovery_queries_all_lost_attempts_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SubmissionPipeline, "_record_native_id", lambda *_: None)
    for job_id in ("a1", "a2", "a3"):
        bench.engine.submit(bench.submission(job_id))
    before = bench.calls("tstat")

    bench.recover()

    assert bench.calls("tstat") == before + 1


def test_the_files_of_several_jobs_are_written_after_their_dependencies_are_known(bench: Bench) -> None:
    written: list[list[str]] = []

    def find(_: JobSpec) -> tuple[Dependency, ...]:
        written.append(bench.spool.job_ids())
        msg = "the server is down"
        raise SubmitException(msg)

    bench.engine._open()
    bench.engine._pipeline._open_dependencies_of = find

    with pytest.raises(SubmitException, match="the server is down"):
        bench.engine._pipeline.submit_jobs([bench.submission("a1"), bench.submission("a2")])

    assert written == [[]]


class RefusesCancel:
    """A layer that refuses every cancellation."""

    @hookimpl
    def parse_cancel(self, native_ids: Sequence[str]) -> dict[str, str]:
        return dict.fromkeys(native_ids, "the server is read-only")


def test_a_poll_that_cannot_start_does_not_hide_a_refusal(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: PollLoop) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    bench.overrides.append(RefusesCancel())
    bench.engine = bench.process()
    bench.submit("a1")
    monkeypatch.setattr(PollLoop, "start", refuse)

    with pytest.raises(SubmitException, match="the server is read-only"):
        bench.engine.cancel("a1")
    assert "jpsi could not start a thread" not in caplog.text


def test_a_request_succeeds_though_no_thread_can_be_started(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: PollLoop) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    bench.submit("a1")
    monkeypatch.setattr(PollLoop, "start", refuse)

    bench.engine.cancel("a1")

    assert "jpsi could not start a thread to follow jobs" in caplog.text


class BrokenEvents:
    """A layer whose hook for events is broken."""

    @hookimpl
    def watch(self) -> Command:
        msg = "no such option"
        raise KeyError(msg)


def test_a_broken_hook_for_events_costs_nothing_but_events(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        FakeTransport, "open", lambda *_: pytest.fail("no command was to be run"), raising=False
    )
    bench.overrides.append(BrokenEvents())
    bench.engine = bench.process()

    assert bench.submit() == "1"

    assert "toy: no events can be received, so jobs are polled" in caplog.text


def test_a_broken_probe_is_warned_about_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(RequeueCodesSite):
        @hookimpl
        def parse_probe(self) -> dict[str, Any]:
            msg = "codes"
            raise KeyError(msg)

    bench.overrides.append(Broken("tstat"))
    bench.engine = bench.process()

    for job_id in ("a1", "a2", "a3"):
        bench.submit(job_id)

    assert caplog.text.count("(probe) failed") == 1


# ------------------------------------------------------------------------------------------- requests


def test_cancel_of_a_waiting_job(bench: Bench) -> None:
    bench.submit("a1")
    bench.submit("a2")

    bench.engine.cancel("a2")
    bench.poll()

    assert bench.last("a2") == (JobState.CANCELED, None, Reason.CANCELLED, Evidence.QUEUE)


@pytest.mark.clause("state-canceled")
def test_a_job_is_not_canceled_before_it_has_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    native_id = bench.submit("a1")
    bench.leave("active")
    with monkeypatch.context() as patched:
        # a slow batch system
        patched.setattr(FakeScheduler, "cancel", lambda scheduler, it: it == native_id)
        patched.setattr(FakeScheduler, "cancel_all", lambda *_: None)
        bench.engine.cancel("a1")
        bench.collect_markers()
        bench.poll()
    before = bench.states("a1")

    bench.scheduler.cancel(native_id)
    bench.clock.advance(GRACE)
    bench.poll()

    assert set(before) == {JobState.ACTIVE}
    assert bench.states("a1")[-1] is JobState.CANCELED


def cancel_without_effect(bench: Bench) -> str:
    """Submit a job that waits, and cancel it, which the batch system accepts and forgets."""
    bench.scheduler.slots = 0
    native_id = bench.submit()
    bench.poll()
    bench.scheduler.ignored_cancels = 100
    bench.engine.cancel("a1")
    job = bench.engine._open()[0].get("a1")
    assert job is not None
    job.changed_at = bench.clock()
    return native_id


def test_a_cancel_without_effect_is_asked_for_again_ever_more_rarely(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    native_id = cancel_without_effect(bench)
    began, times = bench.clock(), []

    for _ in range(300):
        bench.clock.advance(1)
        before = bench.calls("tdel")
        bench.poll()
        times += [round(bench.clock() - began)] if bench.calls("tdel") > before else []

    assert times == [4, 12, 28, 60, 124]
    (stop,) = [bench.spool.read_stop("a1", 1)]
    assert stop is not None
    assert (stop.why, stop.repeats) == (CANCEL, 5)
    assert [text for text in caplog.messages if f"job a1 ({native_id}) still runs after its cancel" in text]


def test_a_job_that_got_the_signal_of_its_cancel_may_take_its_time(bench: Bench) -> None:
    cancel_without_effect(bench)
    bench.leave("active", "signalled")
    bench.collect_markers()

    bench.clock.advance(20)
    bench.poll()

    assert bench.calls("tdel") == 1


def test_a_running_job_gets_no_second_signal_before_the_marker_of_the_first_shows(
    bench: Bench,
) -> None:
    native_id = cancel_without_effect(bench)

    def polls(seconds: float) -> int:
        bench.clock.advance(seconds)
        bench.scheduler.job(native_id).state = FakeState.RUNNING
        bench.poll()
        return bench.calls("tdel")

    during = polls(GRACE - 1)
    polls(2)

    assert (during, bench.calls("tdel")) == (1, 2)


def test_a_running_job_that_was_attached_gets_no_second_signal(bench: Bench) -> None:
    native_id = cancel_without_effect(bench)
    job = bench.engine._open()[0].get("a1")
    assert job is not None
    job.attempt = 0

    bench.clock.advance(10 * GRACE)
    bench.scheduler.job(native_id).state = FakeState.RUNNING
    bench.poll()

    assert bench.calls("tdel") == 1


def test_one_poll_repeats_few_cancels_with_one_query_more(bench: Bench) -> None:
    cancel_without_effect(bench)
    for number in range(2, 51):
        bench.submit(f"a{number}")
        bench.engine.cancel(f"a{number}")
    monitor, _ = bench.engine._open()
    for job in monitor.all():
        job.changed_at = bench.clock()
    bench.poll()
    cancels, queries = bench.calls("tdel"), bench.calls("tstat")

    counts = []
    for _ in range(3):
        bench.clock.advance(5)
        bench.poll()
        counts.append(bench.calls("tdel") - cancels)

    assert (counts, bench.calls("tstat") - queries) == ([20, 40, 60], 6)
    assert {job.cancel_repeats for job in monitor.all()} == {1, 2}


def test_a_request_that_failed_costs_no_repeat(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    cancel_without_effect(bench)
    job = bench.engine._open()[0].get("a1")
    assert job is not None
    bench.clock.advance(5)

    def fail(*_: object) -> dict[str, str]:
        msg = "no answer"
        raise SubmitException(msg)

    with monkeypatch.context() as patch:
        patch.setattr(bench.engine._backend, "cancel", fail)
        bench.poll()
    after_failure = job.cancel_repeats
    bench.clock.advance(20)
    bench.poll()

    assert (after_failure, job.cancel_repeats) == (0, 1)


def test_a_process_that_recovers_a_job_asks_for_its_end_again(bench: Bench) -> None:
    native_id = cancel_without_effect(bench)
    bench.recover()
    bench.follow("a1")
    bench.scheduler.ignored_cancels = 0

    bench.poll()
    bench.clock.advance(5)
    bench.poll()

    assert bench.scheduler.job(native_id).state is FakeState.CANCELLED


def test_no_cancel_is_repeated_for_a_native_id_that_another_job_has(bench: Bench) -> None:
    native_id = cancel_without_effect(bench)
    bench.scheduler.ignored_cancels = 0
    bench.clock.advance(20)
    answer = bench.engine._backend.query_states([native_id])
    foreign_job = bench.scheduler.reuse_native_id(native_id)
    monitor, _ = bench.engine._open()
    job = monitor.get("a1")
    assert job is not None

    # the other job came between the poll and the request
    job.observe(answer[native_id], bench.clock())
    monitor._repeat_cancels([job], bench.clock)

    assert (foreign_job.state.final, bench.calls("tdel")) == (False, 1)


def test_own_cancel_is_remembered_when_the_system_forgets(bench: Bench) -> None:
    bench.submit("a1")
    native_id = bench.submit("a2")
    bench.engine.cancel("a2")
    bench.scheduler.vanish(native_id)

    bench.recover()
    bench.follow("a2")
    bench.poll()
    bench.clock.advance(GRACE)
    bench.poll()

    assert bench.last("a2") == (JobState.CANCELED, None, Reason.CANCELLED, Evidence.ABSENCE)


@pytest.mark.clause("cancel-asks")
def test_a_cancellation_that_does_not_reach_the_system_is_an_error(bench: Bench) -> None:
    bench.submit()
    bench.scheduler.faults.down()

    with pytest.raises(SubmitException, match="cannot contact the toy server"):
        bench.engine.cancel("a1")


def test_held_job_does_not_start_before_it_is_released(bench: Bench) -> None:
    bench.submit("a1")
    native_id = bench.submit("a2")

    bench.engine.hold("a2")
    assert bench.scheduler.job(native_id).state is FakeState.HELD
    info = bench.engine.info("a2")
    bench.engine.release("a2")

    assert info is not None
    assert info.native_state == "HELD"
    assert bench.scheduler.job(native_id).state is FakeState.PENDING


def test_job_that_runs_cannot_be_held(bench: Bench) -> None:
    """This holds even if the last snapshot had it queued and the batch system would accept the command."""
    bench.scheduler.slots = 0
    native_id = bench.submit("a1")
    bench.engine.info("a1")
    bench.scheduler.slots = 1
    bench.clock.advance(1)
    assert bench.scheduler.job(native_id).state is FakeState.RUNNING

    with pytest.raises(SubmitException, match=r"job a1 \(1\) runs, and only a job that waits can be held"):
        bench.engine.hold("a1")

    assert bench.calls("thold") == 0


# ------------------------------------------------------------------------------------------ attaching


@pytest.mark.clause("attach-callback", "attach-fails")
def test_an_unknown_native_id_fails_and_is_never_completed(bench: Bench) -> None:
    bench.engine.attach("a1", "999")
    bench.follow()

    bench.poll()
    bench.clock.advance(GRACE - 1)
    bench.poll()
    assert bench.published == []
    bench.clock.advance(2)
    bench.poll()

    assert len(bench.published) == 1
    assert bench.last() == (JobState.FAILED, None, Reason.ATTACH_UNVERIFIED, Evidence.ABSENCE)


class VisibleWithin:
    """A layer that declares how soon the toy reports every job."""

    SECONDS = 20.0

    @hookimpl
    def capabilities(self) -> Capabilities:
        """Return the capabilities of the toy with this bound."""
        return attrs.evolve(toy.capabilities(), visible_within=self.SECONDS)


@pytest.mark.clause("attach-fails")
def test_an_unknown_native_id_fails_as_soon_as_the_system_would_report_a_job(bench: Bench) -> None:
    bench.overrides.append(VisibleWithin())
    bench.engine = bench.process()
    monitor = bench.engine._open()[0]
    bench.engine.attach("a1", "999")
    bench.follow()
    began, polls = bench.clock(), 0

    while not bench.published:
        due = monitor.next_poll_time()
        assert due is not None
        bench.clock.advance(max(0.0, due - bench.clock()))
        bench.poll()
        polls += 1

    assert bench.last() == (JobState.FAILED, None, Reason.ATTACH_UNVERIFIED, Evidence.ABSENCE)
    assert VisibleWithin.SECONDS <= bench.clock() - began < VisibleWithin.SECONDS + 7
    assert polls < 15


@pytest.mark.parametrize("late", ["queue", "accounting"])
def test_a_job_that_does_not_show_yet_is_not_unknown(bench: Bench, late: str) -> None:
    """The job was submitted, or ended, a moment before a client attaches to it."""
    bench.overrides.append(VisibleWithin())
    bench.engine = bench.process()
    native_id = bench.scheduler.submit(FakeJob("17")).native_id
    if late == "queue":
        bench.scheduler.lag, bench.scheduler.accounting_lag = VisibleWithin.SECONDS - 2, 1000
    else:
        bench.scheduler.keep, bench.scheduler.accounting_lag = 0.0, VisibleWithin.SECONDS - 2
        bench.clock.advance(1)
        assert bench.scheduler.end_as(native_id, FakeState.TIMEOUT)
    bench.engine.attach("a1", native_id)
    bench.follow()

    for _ in range(int(VisibleWithin.SECONDS)):
        bench.poll()
        bench.clock.advance(1)

    assert [it.reason for _, it in bench.published if it.final] == (
        [] if late == "queue" else [Reason.TIMEOUT]
    )
    assert bench.published


def test_an_id_without_accounting_query_is_not_unknown(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(_: object) -> None:
        msg = "the accounting is away"
        raise SubmitException(msg, transient=True)

    bench.overrides.append(VisibleWithin())
    bench.engine = bench.process()
    monkeypatch.setattr(bench.engine._backend, "query_accounting", silent)
    bench.engine.attach("a1", "999")
    bench.follow()

    for _ in range(10):
        bench.poll()
        bench.clock.advance(GRACE)

    assert bench.published == []


def test_a_foreign_job_that_is_reported_again_is_not_missing(bench: Bench) -> None:
    job = Job()
    native_id = bench.submit("b1")
    bench.engine.attach("a1", native_id)
    tracked = bench.engine._open()[0].get("a1")
    assert tracked is not None
    tracked.attempt = 0
    bench.follow()

    messages = []
    for lag in (0, 50.0, 0):
        bench.scheduler.lag = lag
        bench.clock.advance(2)
        bench.poll()
        job._publish([status for job_id, status in bench.published if job_id == "a1"][-1])
        messages.append(job.status.message is None)

    assert messages == [True, False, True]


@pytest.mark.clause("attach-returns")
def test_a_foreign_job_is_followed_by_the_reports_of_the_system(bench: Bench) -> None:
    native_id = bench.submit()
    other = Bench(bench.root / "other", bench.scheduler, bench.clock)
    other.engine.attach("a2", native_id)
    other.follow("a2")
    other.poll()
    other.clock.advance(60)
    other.poll()

    assert other.states("a2") == [JobState.ACTIVE, JobState.COMPLETED]


def test_own_job_is_attached_with_its_markers(bench: Bench) -> None:
    native_id = bench.submit("a1")
    bench.leave("active", "exit.run.7")
    bench.engine = bench.process()

    bench.engine.attach("b1", native_id)
    bench.follow("b1")
    bench.collect_markers()

    assert bench.last("b1") == (JobState.FAILED, 7, Reason.EXIT_CODE, Evidence.MARKER)


@pytest.mark.parametrize("many", [False, True], ids=["attach", "attach_many"])
def test_attach_takes_the_running_job_and_not_an_older_own_job_with_its_native_id(
    bench: Bench, many: bool
) -> None:
    """A batch system reuses native ids after a reinstallation or a wraparound."""
    native_id = bench.submit("a1")
    bench.leave("active", "exit.run.0")
    with FakeScheduler(bench.clock, outcome=Outcome(seconds=60), slots=1) as bench.scheduler:
        bench.engine = bench.process()
        bench.scheduler.submit(FakeJob(native_id, tag="another"))

        if many:
            bench.engine.attach_many({"b1": native_id})
        else:
            bench.engine.attach("b1", native_id)
        bench.follow("b1")
        bench.poll()

    assert bench.last("b1")[0] is JobState.ACTIVE


@pytest.mark.parametrize("fails", [False, True], ids=["forgotten", "does not answer"])
def test_attach_takes_an_ended_own_job_if_no_other_is_known(bench: Bench, fails: bool) -> None:
    native_id = bench.submit("a1")
    bench.leave("active", "exit.run.0")
    bench.scheduler.vanish(native_id)
    if fails:
        bench.scheduler.faults.fail("tstat")
    bench.engine = bench.process()

    bench.engine.attach("b1", native_id)
    bench.follow("b1")

    assert bench.last("b1") == (JobState.COMPLETED, 0, None, Evidence.MARKER)


# ------------------------------------------------------------------------------ several clients of a job


def test_a_job_is_not_lost_before_its_remote_markers_were_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client on another host may have moved its markers, and the connection may be down."""
    native_id = bench.submit()
    bench.leave("active")
    bench.scheduler.vanish(native_id)
    monkeypatch.setattr(bench.engine._native_ids, "_refresh", lambda _: False)

    for _ in range(3):
        bench.poll()
        bench.clock.advance(GRACE)

    assert bench.states() == [JobState.ACTIVE]

    def refresh(_: object) -> bool:
        bench.leave("exit.run.0")
        return True

    monkeypatch.setattr(bench.engine._native_ids, "_refresh", refresh)
    bench.poll()
    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)


def test_a_later_attempt_of_another_host_is_recovered(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client on this host found the job as one that was never sent."""
    killed_before(bench, monkeypatch, "sync", Spool)
    bench.recover()
    bench.engine = bench.process()

    def refresh(*_: object) -> bool:
        os.close(bench.spool.prepare("a1", 2, {**intent.content, "attempt": 2}, ""))
        Path(bench.spool.folder("a1"), "claim.2").write_text("17")
        return True

    intent = bench.spool.last_intent("a1")
    assert intent is not None
    monkeypatch.setattr(RunHost, "refresh", refresh)

    assert [(it.attempt, it.native_id) for it in bench.engine.recover()] == [(2, "17")]


def test_a_marker_that_another_process_moved_is_found_when_it_is_announced(bench: Bench) -> None:
    bench.submit()
    bench.leave("active", "exit.run.0")
    bench.spool.collect(["a1"])

    bench.engine._open()[0].collect_markers(bench.clock(), {"a1.1.exit.run.0", "stranger", "b9.1.active"})

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)


def test_a_marker_that_another_process_moved_is_found_when_the_job_left_the_queue(bench: Bench) -> None:
    """Network file systems announce no files."""
    bench.submit()
    bench.leave("active", "exit.run.7")
    bench.spool.collect(["a1"])
    bench.clock.advance(60)

    bench.poll()

    assert bench.last() == (JobState.FAILED, 7, Reason.EXIT_CODE, Evidence.MARKER)


def test_child_of_a_fork_leaves_the_jobs_of_its_parent_alone(bench: Bench) -> None:
    bench.submit("a1")
    monitor, _ = bench.engine._open()

    # a lock that a thread of the parent holds stays locked in the child
    with monitor._lock, bench.engine._lock:
        pid = os.fork()
        if pid == 0:
            bench.engine.submit(bench.submission("a2"))
            os._exit(0 if len(bench.engine.native_ids()) == 1 else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert bench.engine.native_ids() == ["1"]


# --------------------------------------------------------------------------------------------- races


def test_recovery_waits_for_a_submission_and_uses_its_native_id(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id is recorded while another process waits for the lock; the job does not show yet."""
    bench.scheduler.lag = 3600.0
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)
    judging = Spool.hold_lock

    def noted_meanwhile(spool: Spool, job_id: str, attempt: int, timeout_seconds: float) -> Any:
        with Path(spool.folder("a1"), "intent.1.json").open("a") as file:
            file.write("\n1")
        return judging(spool, job_id, attempt, timeout_seconds)

    monkeypatch.setattr(Spool, "hold_lock", noted_meanwhile)

    (recovered,) = bench.recover()

    assert recovered.native_id == "1"
    assert claim_of(bench) is None


@pytest.mark.parametrize("left", ["events/a1.1.exit.run.0", "jobs/a1/start.1.0", "jobs/a1/claim.1"])
def test_a_job_that_begins_while_recovery_takes_its_lock_is_not_revoked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    """The batch system does not show it yet. A runner that finds the disk full leaves no claim."""
    bench.scheduler.lag = 3600.0
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)
    hold_lock = Spool.hold_lock

    def begun_meanwhile(spool: Spool, job_id: str, attempt: int, timeout_seconds: float) -> Any:
        Path(spool.root, left).write_text("1\n")
        return hold_lock(spool, job_id, attempt, timeout_seconds)

    monkeypatch.setattr(Spool, "hold_lock", begun_meanwhile)

    (recovered,) = bench.recover()

    assert recovered.native_id == ("1" if "claim" in left else "unnamed.a1")
    assert claim_of(bench) != "revoked"


def test_an_array_that_begins_while_recovery_takes_its_lock_is_not_revoked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.scheduler.lag = 3600.0
    array = unnamed_array(bench, monkeypatch)
    hold_lock = ArrayFiles.hold_lock

    def begun_meanwhile(files: ArrayFiles, array: str, timeout_seconds: float) -> Any:
        Path(bench.spool.events, "e1.1.exit.run.0").touch()
        return hold_lock(files, array, timeout_seconds)

    monkeypatch.setattr(ArrayFiles, "hold_lock", begun_meanwhile)

    recovered = {it.job_id: it.native_id for it in bench.recover()}

    assert recovered == {"e1": "unnamed.e1", "e2": "unnamed.e2"}
    assert not bench.spool.arrays.is_revoked(array)


@pytest.mark.parametrize(
    "is_reported", [True, False], ids=["reported by the queue", "forgotten by the queue"]
)
def test_a_submitter_publishes_an_end_whose_marker_another_process_moved_before_it_followed_the_job(
    bench: Bench, is_reported: bool
) -> None:
    own = bench.engine
    native_id = own.submit(bench.submission())
    bench.recover()
    bench.follow()
    bench.leave("active", "exit.run.3")
    bench.collect_markers()
    assert bench.last()[:2] == (JobState.FAILED, 3)
    bench.published.clear()
    if is_reported:
        bench.scheduler.end_as(native_id, FakeState.FAILED)
    else:
        bench.scheduler.vanish(native_id)

    bench.engine = own
    bench.follow()
    bench.poll()

    assert bench.last() == (JobState.FAILED, 3, Reason.EXIT_CODE, Evidence.MARKER)


def test_recovery_that_fails_half_way_loses_no_job(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.submit("b2")
    bench.scheduler.lag = 3600.0
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)
    bench.engine = bench.process()
    with monkeypatch.context() as patched:
        patched.setattr(Recovery, "_resolve", lambda *_: (_ for _ in ()).throw(SubmitException("down")))
        with pytest.raises(SubmitException):
            bench.engine.recover()

    assert sorted(job.job_id for job in bench.engine.recover()) == ["a1", "b2"]


def test_the_handoff_waits_for_an_incomplete_claim(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.scheduler.lag = 3600.0
    bench.scheduler.faults.accept_and_hang("tsubmit")
    revoke = Spool.revoke

    def claimed_meanwhile(spool: Spool, job_id: str, attempt: int) -> bool:
        path = Path(spool.folder(job_id), f"claim.{attempt}")
        path.touch()
        threading.Timer(0.05, path.write_text, ["1\n"]).start()
        return revoke(spool, job_id, attempt)

    monkeypatch.setattr(Spool, "revoke", claimed_meanwhile)

    assert bench.submit() == "1"


def test_the_handoff_waits_for_a_claim_that_does_not_show_yet(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On NFS a read may not find a claim that a runner on another host made."""
    bench.scheduler.lag = 3600.0
    bench.scheduler.faults.accept_and_hang("tsubmit")
    monkeypatch.setattr(Spool, "revoke", lambda *_: False)
    reads = iter([None, None, Claim("1", 0)])
    monkeypatch.setattr(Spool, "claim", lambda *_: next(reads))

    assert bench.submit() == "1"


def test_claim_that_never_shows_leaves_the_submission_unclear(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.scheduler.lag = 3600.0
    bench.scheduler.faults.accept_and_hang("tsubmit")
    bench.engine._open()
    bench.engine._handoff.grace_seconds = 0.0

    with monkeypatch.context() as patched:
        patched.setattr(Spool, "revoke", lambda *_: False)
        patched.setattr(Spool, "claim", lambda *_: None)
        with pytest.raises(SubmitException, match="may run or not") as caught:
            bench.engine.submit(bench.submission())
        assert caught.value.transient
        with pytest.raises(SubmitException):
            bench.engine.submit(bench.submission(attempt=2))
        assert bench.engine.recover() == []

    assert len(bench.scheduler.log.of("tsubmit")) == 1


def test_an_attempt_that_could_not_be_revoked_is_revoked_before_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.scheduler.lag = 3600.0
    bench.scheduler.faults.accept_and_hang("tsubmit")

    def full(*_: Any) -> bool:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Spool, "revoke", full)
        with pytest.raises(SubmitException, match="may run or not") as caught:
            bench.engine.submit(bench.submission())
    assert caught.value.transient
    bench.engine.submit(bench.submission(attempt=2))

    assert (claim_of(bench), claim_of(bench, 2)) == ("revoked", None)


def test_an_earlier_attempt_that_runs_prevents_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)
    Path(bench.spool.folder("a1"), "claim.1").write_text("1\n")

    with pytest.raises(SubmitException, match="attempt 1 of job a1 runs already"):
        bench.engine.submit(bench.submission(attempt=2))


def test_an_earlier_attempt_without_intent_can_never_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)
    Path(bench.spool.folder("a1"), "intent.1.json").unlink()

    bench.engine.submit(bench.submission(attempt=2))

    assert claim_of(bench) == "revoked"


def test_reason_of_a_refusal_is_kept_for_later_attempts(bench: Bench) -> None:
    bench.scheduler.faults.hang("tsubmit")
    with pytest.raises(SubmitException, match="which will not run"):
        bench.engine.submit(bench.submission())

    with pytest.raises(InvalidJobException, match="no queue 'nowhere'"):
        bench.engine.submit(bench.submission(attempt=2, attributes=JobAttributes(queue_name="nowhere")))

    (written,) = JobRecords(bench.spool.root, lambda *_: [], are_processes=False).read()
    assert (written.attempt, written.is_revoked) == (2, True)
    assert written.unsent_reason is not None
    assert "no queue 'nowhere'" in written.unsent_reason


def test_a_job_whose_submission_failed_twice_is_not_recovered(bench: Bench) -> None:
    bench.scheduler.faults.down()
    for attempt in (1, 2):
        with pytest.raises(SubmitException):
            bench.engine.submit(bench.submission(attempt=attempt))
    bench.scheduler.faults.up()

    assert bench.recover() == []


def test_a_job_whose_folder_cannot_be_read_at_first_is_still_followed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.engine.submit(bench.submission())

    def scarce(*_: Any) -> None:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(Spool, "read_final", scarce)
        bench.engine.track("a1")
    bench.leave("active", "exit.run.0")
    bench.collect_markers()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)


def test_accounting_that_lags_is_queried_again(bench: Bench) -> None:
    native_id = bench.submit()
    bench.leave("active", "exit.run.137")
    bench.collect_markers()
    bench.scheduler.vanish(native_id)
    running = {native_id: Observation(state=JobState.ACTIVE, native_state="RUNNING")}
    ended = {native_id: Observation(state=JobState.FAILED, native_state="OOM", reason=Reason.OUT_OF_MEMORY)}
    answers = iter([running, running, ended])
    bench.engine._backend.query_accounting = lambda ids: next(answers)  # type: ignore[method-assign]

    for _ in range(3):
        bench.clock.advance(5)
        bench.poll()

    assert bench.last() == (JobState.FAILED, 137, Reason.OUT_OF_MEMORY, Evidence.ACCOUNTING)


def test_the_last_run_decides_though_another_process_moved_its_markers(bench: Bench) -> None:
    native_id = bench.submit()
    bench.leave("active", "signalled", "exit.run.143")
    bench.collect_markers()
    bench.scheduler.requeue(native_id)
    bench.poll()
    bench.leave("1.active", "1.exit.run.0")
    bench.spool.collect(["a1"])
    bench.clock.advance(60)

    bench.poll()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)


class RequeueCodesSite:
    """A layer of a site that declares the exit codes that requeue a job."""

    def __init__(self, command: str) -> None:
        self._command = Command([command, "--all"])

    @hookimpl
    def probe(self) -> Command:
        return self._command

    @hookimpl
    def parse_probe(self, result: CommandResult) -> dict[str, Any]:
        result.checked()
        return {"codes": {99}}

    @hookimpl
    def capabilities(self, site: Site) -> Capabilities:
        codes = frozenset(site.offers.get("codes", ()))
        return Capabilities(default_launcher="multiple", id_variable="TOY_JOB_ID", requeue_exit_codes=codes)


def test_failure_is_not_final_before_the_requeue_codes_are_known(bench: Bench) -> None:
    bench.overrides.append(RequeueCodesSite("tstat"))
    bench.engine = bench.process()
    # it does not answer during the submission
    bench.scheduler.faults.fail("tstat")
    bench.submit()
    bench.leave("active", "exit.run.99")
    bench.collect_markers()
    bench.poll()
    assert not any(state.final for state in bench.states())

    bench.leave("1.active", "1.exit.run.7")
    bench.collect_markers()

    assert bench.last() == (JobState.FAILED, 7, Reason.EXIT_CODE, Evidence.MARKER)
    assert bench.recover() == []


def test_the_requeue_codes_are_on_disk_before_the_first_job_is_sent(bench: Bench) -> None:
    """A client that is killed at once probes no more; its runners need the codes to know the final end."""
    bench.overrides.append(RequeueCodesSite("tstat"))
    bench.engine = bench.process()
    codes = list[object]()
    bench.scheduler.outcomes = {}
    submit = bench.scheduler.submit_all
    bench.scheduler.submit_all = lambda jobs: (
        codes.append(read_requeue_codes(bench.spool.root)),
        submit(jobs),
    )  # type: ignore[assignment, method-assign]

    bench.submit("a1")
    bench.submit("a2")

    assert codes == [{99}, {99}]
    assert bench.calls("tstat") == 1


def test_a_job_is_submitted_though_the_probe_of_the_requeue_codes_fails(bench: Bench) -> None:
    bench.overrides.append(RequeueCodesSite("no-such-command"))
    bench.engine = bench.process()

    assert bench.submit() == "1"


def test_the_requeue_codes_are_probed_once_and_kept_for_other_clients(bench: Bench) -> None:
    bench.overrides.append(RequeueCodesSite("tstat"))
    bench.engine = bench.process()
    bench.submit()

    bench.engine.record_site_policy()
    assert read_requeue_codes(bench.spool.root) == {99}

    bench.overrides[-1] = RequeueCodesSite("no-such-command")
    bench.process().record_site_policy()
    assert read_requeue_codes(bench.spool.root) == {99}


def test_a_failed_probe_of_the_requeue_codes_changes_nothing(bench: Bench) -> None:
    bench.overrides.append(RequeueCodesSite("no-such-command"))

    bench.process().record_site_policy()

    assert read_requeue_codes(bench.spool.root) == EVERY_FAILURE


def test_a_failed_probe_does_not_prevent_a_poll(bench: Bench) -> None:
    bench.overrides.append(RequeueCodesSite("no-such-command"))
    bench.engine = bench.process()
    bench.submit()

    bench.poll()

    assert bench.states() == [JobState.ACTIVE]


def test_the_running_one_of_two_jobs_of_a_retrying_submit_command_counts(bench: Bench) -> None:
    """The system has two jobs; one claims, and the other, whose id the command printed, exits at once."""
    bench.scheduler.slots = 2
    native_id = bench.submit()
    bench.leave("active")
    Path(bench.spool.folder("a1"), "claim.1").write_text("777\n")
    bench.scheduler.vanish(native_id)

    bench.poll()
    bench.clock.advance(5)
    bench.poll()
    bench.leave("exit.run.0")
    bench.collect_markers()

    tracked = [call.invocation.argv for call in bench.scheduler.log if call.invocation.argv[0] == "tstat"]
    assert ("tstat", "777") in tracked
    assert bench.renamed == {"a1": "777"}
    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)


class MarkersDuringFind:
    """A layer that collects markers while the batch system searches for tags."""

    def __init__(self) -> None:
        self.bench: Bench | None = None
        self.is_free: list[bool] = []

    @hookimpl(wrapper=True)
    def parse_find(self) -> Iterator[None]:
        if self.bench is not None:
            self.bench.collect_markers()
            self.is_free.append(JobState.COMPLETED in self.bench.states("b1"))
        return (yield)


def test_statuses_are_published_while_jobs_without_native_id_are_searched(
    tmp_path: Path, bench: Bench
) -> None:
    layer = MarkersDuringFind()
    bench = Bench(tmp_path, bench.scheduler, bench.clock, overrides=[layer])
    bench.submit("b1")
    native_ids = [bench.submit(f"a{number}") for number in range(3)]
    monitor, _ = bench.engine._open()
    for job in monitor.all():
        job.native_id = f"unnamed.{job.job_id}" if job.job_id != "b1" else job.native_id
    bench.leave("active", "exit.run.0", job_id="b1")
    layer.bench = bench

    bench.poll()

    assert layer.is_free == [True], "one command finds them all"
    assert bench.renamed == {f"a{number}": native_id for number, native_id in enumerate(native_ids)}


@pytest.mark.parametrize("native_id", ["", " ", "--user=me", "a b", "a\nb", "x" * 300])
def test_attach_refuses_text_that_is_no_native_id(bench: Bench, native_id: str) -> None:
    bench.engine.attach("a1", native_id)
    bench.engine.track("a1")

    assert bench.last() == (JobState.FAILED, None, Reason.ATTACH_UNVERIFIED, Evidence.ABSENCE)
    assert "cannot be the native id" in (bench.published[0][1].message or "")
    assert bench.engine._open()[0].all() == []


def test_a_child_of_a_fork_cannot_cancel_a_job_of_its_parent(bench: Bench) -> None:
    bench.submit()
    bench.engine._reset_state()  # as it happens in the child

    with pytest.raises(SubmitException, match="is followed by another process"):
        bench.engine.cancel("a1")


# ------------------------------------------------------------------------------------ regressions


def test_a_removed_directory_of_markers_is_made_again_and_costs_no_end(bench: Bench) -> None:
    native_id = bench.submit()
    bench.poll()
    Path(bench.spool.events).rmdir()

    bench.scheduler.end_as(native_id, FakeState.TIMEOUT)
    bench.clock.advance(5)
    bench.poll()
    bench.clock.advance(GRACE)
    bench.poll()

    assert bench.last() == (JobState.FAILED, 143, Reason.TIMEOUT, Evidence.QUEUE)
    assert Path(bench.spool.events).is_dir()


def test_accounting_after_an_outage_gets_time_to_record_all_ends(bench: Bench) -> None:
    """The first record after the outage precedes the record of the job's end."""
    native_id = bench.submit()
    bench.leave("active")
    bench.poll()
    bench.scheduler.vanish(native_id)
    down = SubmitException("down", transient=True)
    ended = {
        native_id: Observation(state=JobState.COMPLETED, native_state="DONE", tag="jpsi-a1-1", exit_code=0)
    }
    answers = iter([down, down, {}, ended])

    def finished(_: object) -> dict[str, Observation]:
        answer = next(answers)
        if isinstance(answer, SubmitException):
            raise answer
        return answer

    bench.engine._backend.query_accounting = finished  # type: ignore[assignment]
    for _ in range(5):
        bench.clock.advance(GRACE)
        bench.poll()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.ACCOUNTING)


@attrs.define
class Accounting:
    """A layer over the toy: an accounting query names one job, and a test sets its results."""

    results: dict[str, Observation | NotOffered | SubmitException] = attrs.field(factory=dict)
    queried: list[str] = attrs.field(factory=list)
    command: str = "tstat"

    @hookimpl
    def capabilities(self) -> Capabilities:
        return Capabilities(default_launcher="multiple", id_variable="TOY_JOB_ID", ids_per_accounting=1)

    @hookimpl
    def query_finished(self) -> Command:
        return Command([self.command, "--all"])

    @hookimpl
    def parse_finished(self, native_ids: list[str]) -> dict[str, Observation] | NotOffered:
        (native_id,) = native_ids
        self.queried.append(native_id)
        answer = self.results.get(native_id)
        if isinstance(answer, SubmitException):
            raise answer
        if isinstance(answer, NotOffered):
            return answer
        return {} if answer is None else {native_id: answer}


@pytest.fixture
def accounting(bench: Bench) -> Accounting:
    accounting = Accounting()
    bench.overrides.append(accounting)
    bench.engine = bench.process()
    return accounting


_DONE = Observation(state=JobState.COMPLETED, native_state="DONE", tag="jpsi-a2-1", exit_code=0)


def test_accounting_that_fails_for_one_job_decides_the_ends_of_others(
    bench: Bench, accounting: Accounting
) -> None:
    odd, good = bench.submit("a1"), bench.submit("a2")
    bench.leave("active", job_id="a2")
    accounting.results = {odd: SubmitException("odd", transient=True), good: _DONE}
    bench.scheduler.vanish(odd)
    bench.scheduler.vanish(good)

    for _ in range(4):
        bench.clock.advance(GRACE)
        bench.poll()

    assert bench.states("a1") == []
    assert bench.last("a2") == (JobState.COMPLETED, 0, None, Evidence.ACCOUNTING)


@pytest.mark.parametrize("command", ["tstat", "is-not-there"])
def test_a_job_is_lost_if_accounting_fails(
    bench: Bench, accounting: Accounting, caplog: pytest.LogCaptureFixture, command: str
) -> None:
    native_id = bench.submit()
    accounting.results[native_id] = NOT_OFFERED
    accounting.command = command
    bench.scheduler.vanish(native_id)

    for _ in range(3):
        bench.clock.advance(GRACE)
        bench.poll()

    assert bench.last() == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)
    assert caplog.text.count("toy has no accounting to query") == 1


def test_the_accounting_record_of_an_older_job_with_the_same_native_id_is_ignored(
    bench: Bench, accounting: Accounting
) -> None:
    native_id = bench.submit()
    bench.leave("active")
    bench.collect_markers()
    bench.scheduler.vanish(native_id)
    now = datetime.fromtimestamp(bench.clock(), UTC)
    accounting.results[native_id] = attrs.evolve(_DONE, time=now - timedelta(days=30))

    for _ in range(2):
        bench.clock.advance(GRACE)
        bench.poll()

    assert bench.last() == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)


def test_an_accounting_record_of_an_end_before_the_job_was_queued_is_not_its_own() -> None:
    then = datetime(2026, 1, 1, tzinfo=UTC)
    job = JobView("a1", "a1", 0, "17")
    job.observe(Observation(state=JobState.QUEUED, native_state="qw", time=then), 0)
    job.observe(None, 1)

    job.apply_accounting({"17": attrs.evolve(_DONE, time=then - timedelta(days=1))}, 1)
    before = job.accounted
    job.apply_accounting({"17": attrs.evolve(_DONE, time=then + timedelta(seconds=1))}, 1)

    assert before is None
    assert job.accounted is not None


def test_a_job_with_an_exit_marker_needs_no_accounting_query(bench: Bench, accounting: Accounting) -> None:
    native_id = bench.submit()
    bench.scheduler.vanish(native_id)
    bench.leave("active", "exit.run.3")

    bench.clock.advance(5)
    bench.poll()

    assert bench.last() == (JobState.FAILED, 3, Reason.EXIT_CODE, Evidence.MARKER)
    assert accounting.queried == []


def test_accounting_queries_are_bounded_per_round_and_cover_every_job(
    bench: Bench, accounting: Accounting
) -> None:
    """No job is lost by an outdated record."""
    native_ids = [bench.submit(f"a{number}") for number in range(50)]
    for native_id in native_ids:
        bench.scheduler.vanish(native_id)

    counts = []
    for _ in range(3):
        before = len(accounting.queried)
        bench.clock.advance(GRACE)
        bench.poll()
        counts.append(len(accounting.queried) - before)

    assert counts == [20, 20, 20]
    assert set(accounting.queried) == set(native_ids)
    lost = {name for name, status in bench.published if status.reason is Reason.LOST}
    assert len(lost) == 10


def test_the_end_of_a_job_that_could_leave_no_marker_names_that_reason(bench: Bench) -> None:
    native_id = bench.submit()
    Path(bench.spool.folder("a1"), "start.1.0").touch()
    bench.poll()
    bench.scheduler.vanish(native_id)
    bench.clock.advance(5)
    bench.poll()
    bench.clock.advance(GRACE)
    bench.poll()

    (status,) = [status for _, status in bench.published if status.state is JobState.FAILED]
    assert status.reason is Reason.LOST
    assert status.message is not None
    assert status.message.endswith(f"left no exit marker in {bench.spool.events}")


def test_probed_exit_codes_count_though_the_queue_does_not_answer(bench: Bench) -> None:
    bench.overrides.append(RequeueCodesSite("tstat"))
    bench.engine = bench.process()
    # it does not answer during the submission
    bench.scheduler.faults.fail("tstat")
    bench.submit()
    bench.leave("active", "exit.run.7")
    bench.collect_markers()
    assert not any(state.final for state in bench.states())

    down = SubmitException("down", transient=True)

    def states(_: object) -> dict[str, Observation]:
        raise down

    bench.engine._backend.query_states = states  # type: ignore[assignment]
    bench.poll()

    assert bench.last() == (JobState.FAILED, 7, Reason.EXIT_CODE, Evidence.MARKER)


def test_error_of_a_transport_is_no_proof_that_nothing_was_submitted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = FakeTransport.run

    def reset(self: FakeTransport, command: Command, *arguments: Any) -> CommandResult:
        result = run(self, command, *arguments)
        if command.argv[0] == "tsubmit":
            raise ConnectionResetError
        return result

    with monkeypatch.context() as patched:
        patched.setattr(FakeTransport, "run", reset)
        with pytest.raises(ConnectionResetError):
            bench.submit()

    assert bench.spool.claim("a1", 1) is not None, "what may have been submitted can run no more"


def test_a_malformed_file_of_one_job_costs_no_other_its_end(bench: Bench) -> None:
    bench.submit("a1")
    bench.submit("b1")
    bench.engine = bench.process()
    Path(bench.spool.folder("a1"), "stop.1.json").write_text("{}")
    bench.engine.recover()
    bench.follow("a1")
    bench.follow("b1")

    bench.leave("active", "exit.run.0", job_id="b1")
    bench.collect_markers()

    assert bench.last("b1") == (JobState.COMPLETED, 0, None, Evidence.MARKER)


def test_folder_of_one_job_that_cannot_be_read_costs_no_other_its_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [bench.submit(name) for name in ("a1", "b1")]
    bench.poll()
    for native_id in ids:
        bench.scheduler.end_as(native_id, FakeState.TIMEOUT)
    bench.clock.advance(5)
    consumed = Spool.consumed

    def unreadable(self: Spool, job_id: str) -> list[Any]:
        if job_id == "a1":
            raise PermissionError(errno.EACCES, "denied")
        return consumed(self, job_id)

    monkeypatch.setattr(Spool, "consumed", unreadable)
    for _ in range(2):
        bench.poll()
        bench.clock.advance(GRACE)
    bench.poll()

    assert bench.last("b1") == (JobState.FAILED, 143, Reason.TIMEOUT, Evidence.QUEUE)
    assert not any(state.final for state in bench.states("a1"))


def test_an_end_with_details_that_json_cannot_encode_is_published(bench: Bench) -> None:
    native_id = bench.submit()
    odd = Observation(
        state=JobState.FAILED,
        native_state="OOM",
        tag="jpsi-a1-1",
        reason=Reason.OUT_OF_MEMORY,
        details={"toy.what": object()},
    )
    bench.engine._backend.query_states = lambda ids: {native_id: odd}  # type: ignore[assignment]
    bench.poll()
    bench.clock.advance(GRACE)
    bench.poll()

    assert bench.last() == (JobState.FAILED, None, Reason.OUT_OF_MEMORY, Evidence.QUEUE)


def run_line(bench: Bench) -> str:
    """Return the one line besides directives in the script for the batch system."""
    return bench.engine._handoff._run_line(JobIntent(bench.spool, "a1", 1), JobSpec())


def test_script_that_is_empty_or_gone_ends_in_no_success(bench: Bench) -> None:
    line = run_line(bench)
    folder = Path(bench.spool.folder("a1"))
    folder.mkdir(parents=True)

    codes = [subprocess.run(["/bin/sh", "-c", line], check=False).returncode]
    (folder / "run.1").touch()
    codes.append(subprocess.run(["/bin/sh", "-c", line], check=False).returncode)
    (folder / "run.1").write_text("exit 7\n")
    codes.append(subprocess.run(["/bin/sh", "-c", line], check=False).returncode)

    assert codes == [125, 125, 7]
    assert line.endswith("exit 125"), "by which a submit command may know a script that is whole"


def test_a_missing_shell_is_named_in_the_error(bench: Bench) -> None:
    backend = bench.engine._backend
    backend.config = attrs.evolve(backend.config, shell="/no/such/'shell of ours' -l")
    bench.submit()

    code = subprocess.run(["/bin/sh", "-c", run_line(bench)], check=False).returncode
    bench.collect_markers()

    assert code == 125
    assert bench.last() == (JobState.FAILED, 125, Reason.SETUP, Evidence.MARKER)
    assert "the configured shell does not exist" in (bench.published[-1][1].message or "")


def test_the_queue_lists_jobs_that_have_not_ended_and_no_arrays_besides_their_elements(
    bench: Bench,
) -> None:
    states = {
        "7": JobState.QUEUED,
        "7.1": JobState.QUEUED,
        "7.2": JobState.COMPLETED,
        "8": JobState.ACTIVE,
        "9": None,
    }

    class Layer:
        @hookimpl
        def parse_status(self) -> dict[str, Observation]:
            return {name: Observation(state=state, native_state="") for name, state in states.items()}

    bench.overrides.append(Layer())

    assert set(bench.process()._backend.query_all()) == {"7.1", "8", "9"}


# --------------------------------------------------------------------------------------- native ids


def test_a_job_whose_native_id_was_reused_is_lost_whatever_the_state_of_the_other_job(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    native_id = bench.submit()
    bench.poll()
    bench.clock.advance(5)
    bench.scheduler.reuse_native_id(native_id)
    for _ in range(3):
        bench.clock.advance(GRACE)
        bench.poll()
    assert bench.scheduler.job(native_id).state is FakeState.COMPLETED

    assert bench.last() == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)
    assert bench.states() == [JobState.ACTIVE, JobState.FAILED]
    assert caplog.text.count(f"has given its native id {native_id} to another job") == 1


def test_the_accounting_record_of_another_job_is_ignored(bench: Bench) -> None:
    native_id = bench.submit()
    bench.scheduler.reuse_native_id(native_id)
    bench.scheduler.keep = 0.0

    for _ in range(4):
        bench.clock.advance(GRACE)
        bench.poll()

    assert bench.last() == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)


def test_info_does_not_report_another_job_with_the_native_id(bench: Bench) -> None:
    native_id = bench.submit()
    bench.scheduler.reuse_native_id(native_id)

    assert bench.engine.info("a1") is None


@pytest.mark.parametrize("request_", ["cancel", "hold", "release", "cancel_many"])
def test_no_request_goes_to_another_job_with_the_native_id(bench: Bench, request_: str) -> None:
    native_id = bench.submit()
    foreign_job = bench.scheduler.reuse_native_id(native_id)
    before = foreign_job.state

    if request_ == "cancel_many":
        other = bench.submit("a2")
        refused = bench.engine.cancel_many(["a1", "a2"])
        assert bench.scheduler.job(other).state is FakeState.CANCELLED
        assert refused.keys() == {"a1"}
        error: JpsiError = refused["a1"]
    else:
        with pytest.raises(SubmitException) as caught:
            getattr(bench.engine, request_)("a1")
        error = caught.value

    assert f"its native id {native_id} is now another job's" in str(error)
    assert foreign_job.state is before
    assert bench.spool.read_stop("a1", 1) is None, "no cancellation is recorded"
    assert not any(bench.calls(command) for command in ("thold", "trelease"))
    assert bench.calls("tdel") == (request_ == "cancel_many")


def test_no_request_goes_to_a_job_without_the_tag_after_the_own_job_has_begun(bench: Bench) -> None:
    """A killed controller may reuse the native id within a second."""
    native_id = bench.submit()
    bench.poll()
    bench.leave("active")
    bench.collect_markers()
    job = bench.scheduler.job(native_id)
    job.tag = ""

    with pytest.raises(SubmitException, match="without the tag jpsi-a1-1: a user has removed the tag"):
        bench.engine.cancel("a1")
    bench.clock.advance(GRACE)
    bench.poll()

    assert bench.calls("tdel") == 0
    assert set(bench.states()) == {JobState.ACTIVE}


@pytest.mark.parametrize(
    "exit_", [["signalled", "exit.run.143"], ["exit.run.7"]], ids=["signalled", "by itself"]
)
def test_an_ended_job_does_not_wait_for_a_job_with_its_native_id_and_without_the_tag(
    bench: Bench, exit_: list[str]
) -> None:
    native_id = bench.submit()
    bench.poll()
    bench.leave("active", *exit_)
    bench.collect_markers()
    bench.scheduler.job(native_id).tag = ""
    for _ in range(4):
        bench.clock.advance(GRACE)
        bench.poll()

    assert bench.last()[:2] == (JobState.FAILED, int(exit_[-1].rpartition(".")[2]))


def test_no_request_is_sent_while_the_owner_of_the_native_id_is_unknown(bench: Bench) -> None:
    bench.submit()
    bench.scheduler.faults.fail("tstat", None, returncode=0, stdout="garbage\n")

    with pytest.raises(SubmitException, match="did not answer to its end"):
        bench.engine.cancel("a1")

    assert bench.calls("tdel") == 0
    assert bench.spool.read_stop("a1", 1) is not None, "the cancellation is recorded"


def test_a_job_that_depends_on_one_with_a_reused_native_id_is_not_submitted(bench: Bench) -> None:
    native_id = bench.submit()
    bench.scheduler.reuse_native_id(native_id)
    tracked = bench.engine._open()[0].get("a1")
    assert tracked is not None
    # longer ago than the output of its submit command counts
    tracked.accepted_at -= 3
    after = [Dependency(native_id)]

    with pytest.raises(SubmitException, match="does not say at present whether"):
        bench.submit("b1", attributes=JobAttributes(after=after))

    assert [job.tag for job in bench.scheduler.jobs if job.tag.startswith("jpsi-b1")] == []


def test_one_snapshot_without_a_job_does_not_prove_its_absence_however_old_it_is(bench: Bench) -> None:
    bench.scheduler.accounting = False
    native_id = bench.submit()
    bench.poll()
    states, one = bench.engine._backend.query_states, iter([{}])
    bench.engine._backend.query_states = lambda ids: next(one, None) or states(ids)  # type: ignore[assignment]

    bench.poll()
    bench.clock.advance(GRACE * 10)
    bench.collect_markers()
    monitor, _ = bench.engine._open()
    monitor._judge_all(monitor.all(), bench.clock())

    assert bench.states() == [JobState.ACTIVE]
    assert bench.scheduler.job(native_id) is not None


def test_a_job_is_queried_alone_before_it_is_lost(bench: Bench) -> None:
    """A query of many jobs may leave out one; here it always does."""
    bench.scheduler.accounting = False
    bench.scheduler.outcome = Outcome(seconds=1e6)
    missed, listed = bench.submit("a1"), bench.submit("a2")
    states = bench.engine._backend.query_states

    def forgetful(native_ids: list[str]) -> dict[str, Observation]:
        found = states(native_ids)
        return found if len(native_ids) == 1 else {it: found[it] for it in found if it != missed}

    bench.engine._backend.query_states = forgetful  # type: ignore[assignment]
    for _ in range(5):
        bench.clock.advance(GRACE)
        bench.poll()
    assert set(bench.states("a1")) == {JobState.ACTIVE}
    assert bench.states("a2") == [JobState.QUEUED]
    assert listed != missed

    bench.scheduler.vanish(missed)
    for _ in range(3):
        bench.clock.advance(GRACE)
        bench.poll()
    assert bench.last("a1") == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)


def test_elements_of_one_array_are_confirmed_lost_by_one_query(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query names the array, whichever of its elements it is about."""
    bench.scheduler.accounting = False
    bench.scheduler.outcome = Outcome(seconds=1e6)
    elements = [f"e{number}" for number in range(60)]
    bench.engine.submit_many([bench.submission(it) for it in elements], lambda _: None)
    for it in elements:
        bench.follow(it)
    for job in list(bench.scheduler.jobs):
        bench.scheduler.vanish(job.native_id)
    bench.poll()
    bench.clock.advance(GRACE)
    queries: list[Sequence[str]] = []
    states = bench.engine._backend.query_states

    def counting(native_ids: Sequence[str]) -> dict[str, Observation]:
        queries.append(native_ids)
        return states(native_ids)

    monkeypatch.setattr(bench.engine._backend, "query_states", counting)

    bench.poll()

    assert {bench.last(it)[2] for it in elements} == {Reason.LOST}
    assert len(queries) == 2


def test_a_job_is_not_lost_while_the_query_of_it_alone_fails(bench: Bench) -> None:
    bench.scheduler.accounting = False
    native_id = bench.submit()
    bench.submit("a2")
    bench.scheduler.vanish(native_id)
    states = bench.engine._backend.query_states
    is_down = True

    def down(native_ids: list[str]) -> dict[str, Observation]:
        if is_down and len(native_ids) == 1:
            msg = "down"
            raise SubmitException(msg, transient=True)
        return states(native_ids)

    bench.engine._backend.query_states = down  # type: ignore[assignment]
    for _ in range(4):
        bench.clock.advance(GRACE)
        bench.poll()
    assert bench.states() == []
    is_down = False
    bench.clock.advance(GRACE)
    bench.poll()

    assert bench.last() == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)


@pytest.mark.parametrize("state", [JobState.ACTIVE, JobState.QUEUED])
def test_an_accounting_record_without_end_proves_life_for_an_hour(
    bench: Bench, accounting: Accounting, state: JobState
) -> None:
    """An older record is of an accounting that missed the end."""
    native_id = bench.submit()
    accounting.results = {native_id: Observation(state=state, native_state="WORD", tag="jpsi-a1-1")}
    bench.scheduler.vanish(native_id)

    for _ in range(3600 // int(GRACE)):
        bench.poll()
        bench.clock.advance(GRACE)
    assert bench.states() == []
    for _ in range(3):
        bench.poll()
        bench.clock.advance(GRACE)

    assert bench.last() == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)


def test_a_native_id_that_the_system_denies_fails_within_the_first_polls(bench: Bench) -> None:
    bench.engine.attach("a1", "999")
    bench.follow()
    denied = {"999": Observation.denied("no such job")}
    bench.engine._backend.query_states = lambda ids: denied  # type: ignore[assignment]
    bench.engine._backend.query_accounting = lambda ids: {}  # type: ignore[assignment]

    bench.poll()
    bench.clock.advance(2)
    bench.poll()

    assert bench.last() == (JobState.FAILED, None, Reason.ATTACH_UNVERIFIED, Evidence.ABSENCE)


def test_a_native_id_is_denied_as_fast_while_another_process_follows_jobs(bench: Bench) -> None:
    """Many systems leave an unknown id out of an answer about several jobs, and deny it only by itself."""
    bench.submit("b1")
    bench.poll()
    bench.engine = bench.process()
    bench.engine.attach("a1", "999")
    bench.follow()
    denied = {"999": Observation.denied("no such job")}
    bench.engine._backend.query_states = lambda ids: denied if len(ids) == 1 else {}  # type: ignore[assignment]
    bench.engine._backend.query_accounting = lambda ids: {}  # type: ignore[assignment]

    for _ in range(2):
        bench.clock.advance(2)
        bench.poll()

    assert bench.last() == (JobState.FAILED, None, Reason.ATTACH_UNVERIFIED, Evidence.ABSENCE)

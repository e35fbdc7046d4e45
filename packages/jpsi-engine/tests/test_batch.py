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
from jpsi.contract.shell import ShellLine
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
from jpsi_engine.spool.intents import JobIntent
from jpsi_engine.spool.job_records import JobRecords
from jpsi_engine.spool.requeue_codes import EVERY_FAILURE, read_requeue_codes
from jpsi_engine.spool.spool import Claim, Intent, Spool
from jpsi_engine.submission.handoff import Handoff
from jpsi_engine.submission.recovery import Recovery
from jpsi_engine.submission.run_host import RunHost, TakenError, UnsentError
from jpsi_engine.submission.submission import SubmissionPipeline
from jpsi_testing import FakeTransport, toy, toy_fake
from jpsi_testing.fake import FakeClock, FakeJob, FakeScheduler, FakeState, Outcome

GRACE = 90.0


@attrs.define
class Bench:
    """An engine whose rounds take place when a test says so."""

    root: Path
    scheduler: FakeScheduler
    clock: FakeClock
    #: Hooks that lie over the toy's.
    overrides: list[object] = attrs.field(factory=list)
    published: list[tuple[str, JobStatus]] = attrs.field(factory=list)
    renamed: dict[str, str] = attrs.field(factory=dict)
    engine: BatchEngine = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.engine = self.process()

    def process(self) -> BatchEngine:
        """An engine as another process has it that works in the same directory."""
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

    def see(self) -> None:
        self.engine._open()[0].collect_markers(self.clock())

    def ask(self) -> None:
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
    """A batch system whose jobs are only played: they leave no markers of their own."""
    with FakeScheduler(clock, outcome=Outcome(seconds=60), slots=1) as scheduler:
        yield scheduler


@pytest.fixture
def bench(
    tmp_path: Path, scheduler: FakeScheduler, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> Bench:
    # no threads: rounds take place when a test says so
    monkeypatch.setattr(PollLoop, "start", lambda poll_loop: None)
    monkeypatch.setattr(BatchEngine, "_prune", lambda engine: None)
    return Bench(tmp_path, scheduler, clock)


def claim_of(bench: Bench, attempt: int = 1) -> str | None:
    claim = bench.spool.claim("a1", attempt)
    return None if claim is None else claim.text


# ------------------------------------------------------------------------------------------ following


def test_marker_of_a_clean_end_is_final_at_once_and_nothing_is_asked(bench: Bench) -> None:
    bench.submit()

    bench.leave("active", "exit.run.0")
    bench.see()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)
    assert bench.calls("tstat") == 0


@pytest.mark.clause("status-time", "status-skipped")
def test_of_a_job_that_is_seen_only_at_its_end_the_runner_tells_when_it_began(bench: Bench) -> None:
    bench.submit()
    began = bench.clock()

    bench.leave("active")
    bench.clock.advance(5)
    bench.leave("exit.run.0")
    bench.see()

    assert [(it.state, round(it.time.timestamp() - began)) for _, it in bench.published] == [
        (JobState.ACTIVE, 0),
        (JobState.COMPLETED, 5),
    ]
    assert {it.metadata["time.source"] for _, it in bench.published} == {"marker"}


@pytest.mark.clause("state-mapping", "python-polling")
def test_queue_tells_the_state_where_there_is_no_marker(bench: Bench) -> None:
    bench.submit("a1")
    bench.submit("a2")

    bench.ask()

    assert (bench.states("a1"), bench.states("a2")) == ([JobState.ACTIVE], [JobState.QUEUED])
    assert bench.calls("tstat") == 1


def test_signalled_end_waits_for_the_word_of_the_queue(bench: Bench) -> None:
    native_id = bench.submit()
    bench.ask()
    bench.leave("active", "signalled", "exit.run.0")
    bench.see()
    assert not any(state.final for state in bench.states())

    bench.scheduler.cancel(native_id)
    bench.clock.advance(5)
    bench.ask()

    assert bench.last() == (JobState.CANCELED, 0, Reason.CANCELLED, Evidence.QUEUE)


def test_answer_from_before_the_exit_marker_tells_nothing_of_the_end(bench: Bench) -> None:
    native_id = bench.submit()
    bench.scheduler.end_as(native_id, FakeState.TIMEOUT)
    bench.clock.advance(5)
    bench.ask()  # the marker has not shown yet, and is waited for

    bench.leave("active", "exit.run.0")
    bench.see()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)


def test_time_limit_is_told_without_a_marker_after_the_grace(bench: Bench) -> None:
    native_id = bench.submit()
    bench.scheduler.end_as(native_id, FakeState.TIMEOUT)
    bench.clock.advance(5)
    bench.ask()
    assert not any(state.final for state in bench.states())

    bench.clock.advance(GRACE)
    bench.ask()

    state, _, reason, evidence = bench.last()
    assert (state, reason, evidence) == (JobState.FAILED, Reason.TIMEOUT, Evidence.QUEUE)


def test_requeued_job_ends_as_its_last_run(bench: Bench) -> None:
    native_id = bench.submit()
    bench.leave("active", "signalled", "exit.run.143")
    bench.see()
    bench.scheduler.requeue(native_id)
    bench.clock.advance(5)
    bench.ask()

    bench.leave("1.active", "1.exit.run.0")
    bench.see()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)
    assert JobState.QUEUED not in bench.states()


def test_vanished_job_is_lost_after_the_grace_and_never_completed(bench: Bench) -> None:
    native_id = bench.submit()
    bench.ask()
    bench.scheduler.vanish(native_id)

    bench.clock.advance(5)
    bench.ask()
    assert bench.states() == [JobState.ACTIVE]
    bench.clock.advance(GRACE)
    bench.ask()

    assert bench.last() == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)


def test_job_that_left_the_queue_is_looked_up_in_the_accounting(bench: Bench) -> None:
    native_id = bench.submit()
    bench.scheduler.keep = 0.0
    bench.clock.advance(60)
    assert bench.scheduler.job(native_id).state is FakeState.COMPLETED

    bench.ask()
    bench.clock.advance(GRACE)
    bench.ask()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.ACCOUNTING)


@pytest.mark.parametrize("fault", ["down", "hang", "cut", "fail", "lie"])
def test_question_that_is_not_answered_changes_nothing(bench: Bench, fault: str) -> None:
    faults = bench.scheduler.faults
    bench.submit()
    bench.ask()
    known = bench.states()
    if fault == "down":
        faults.down()
    elif fault == "lie":
        faults.fail("tstat", None, returncode=0, stdout="maintenance today")
    else:
        getattr(faults, fault)("tstat", None)

    for _ in range(3):
        bench.clock.advance(20)
        bench.ask()

    assert not any(state.final for state in bench.states()[len(known) :])


def test_mistake_of_a_plugin_costs_one_question(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        @hookimpl
        def parse_status(self) -> dict[str, Any]:
            return cast("dict[str, Any]", {}["no such key"])

    bench.overrides.append(Broken())
    bench.engine = bench.process()
    bench.submit()

    with caplog.at_level("INFO"):
        bench.ask()

    assert "the hook parse_status of layer 2 failed: KeyError" in caplog.text
    assert bench.states() == []


@pytest.mark.clause("state-unmapped")
def test_word_that_nobody_knows_is_warned_of_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    native_id = bench.submit()
    answer = f"ID STATE CODE RESTARTS SUBMITTED TAG\n{native_id} DREAMING - 0 0 jpsi-a1-1\n1 lines\n"
    bench.scheduler.faults.fail("tstat", None, returncode=0, stdout=answer)

    bench.ask()
    bench.ask()

    assert caplog.text.count("DREAMING") == 1
    assert bench.states() == []


# ----------------------------------------------------------------------------------------- submission


@pytest.mark.clause("python-submit-script", "python-submit-command")
def test_the_submit_command_reads_directives_and_one_line_that_runs_what_is_in_the_work_directory(
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


@pytest.mark.clause("python-final-removed")
def test_the_system_is_not_asked_about_a_job_that_is_final(bench: Bench) -> None:
    ended, other = bench.submit("a1"), bench.submit("a2")
    bench.leave("active", "exit.run.0", job_id="a1")
    bench.see()
    begin = len(bench.scheduler.log)

    bench.ask()

    asked = [word for it in list(bench.scheduler.log)[begin:] for word in it.invocation.argv[1:]]
    assert bench.last("a1")[0] is JobState.COMPLETED
    assert bench.engine.native_ids() == [other]
    assert other in asked
    assert ended not in asked


@pytest.mark.clause("submit-which")
def test_refused_job_is_invalid_and_nothing_is_left(bench: Bench) -> None:
    with pytest.raises(InvalidJobException, match="no queue 'nowhere'"):
        bench.engine.submit(bench.submission(attributes=JobAttributes(queue_name="nowhere")))

    assert bench.spool.job_ids() == []


@pytest.mark.clause("submit-which")
def test_unreachable_system_is_a_transient_failure_and_nothing_is_left(bench: Bench) -> None:
    bench.scheduler.faults.down()

    with pytest.raises(SubmitException, match="cannot contact the toy server") as caught:
        bench.engine.submit(bench.submission())

    assert caught.value.transient
    assert bench.spool.job_ids() == []


@pytest.mark.parametrize("fault", ["accept_and_hang", "cut"])
def test_accepted_submission_without_an_answer_is_found_by_its_tag(bench: Bench, fault: str) -> None:
    getattr(bench.scheduler.faults, fault)("tsubmit")

    native_id = bench.submit()

    assert [job.native_id for job in bench.scheduler.jobs] == [native_id]
    assert bench.recover()[0].native_id == native_id


@pytest.mark.parametrize("is_down", [False, True], ids=["not found", "cannot be looked for"])
def test_submission_of_which_nothing_is_found_can_never_run(bench: Bench, is_down: bool) -> None:
    bench.scheduler.faults.hang("tsubmit")
    if is_down:
        bench.scheduler.faults.hang("tstat", None)

    with pytest.raises(SubmitException, match="which will not run") as caught:
        bench.engine.submit(bench.submission())

    assert caught.value.transient
    assert claim_of(bench) == "revoked"
    assert bench.recover() == []


def test_ghost_of_a_submission_that_was_given_up_does_not_run(tmp_path: Path, bench: Bench) -> None:
    """It was accepted, could not be found, and starts when the next attempt is on its way."""
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


def test_submission_without_an_answer_that_already_runs_is_bound(tmp_path: Path, bench: Bench) -> None:
    """It cannot be looked for, but its claim tells."""

    class Blind:
        @hookimpl
        def find(self) -> NotOffered:
            claim = Path(bench.spool.folder("a1"), "claim.1")
            claim.write_text("17\n")
            return NOT_OFFERED

    bench.overrides.append(Blind())
    bench.engine = bench.process()
    bench.scheduler.faults.hang("tsubmit")

    assert bench.submit() == "17"


@pytest.mark.parametrize("has_begun", [False, True], ids=["job never ran", "job runs"])
def test_interrupt_while_a_job_is_sent_is_raised(
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


def test_interrupt_is_raised_where_nobody_can_tell_what_became_of_the_job(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by Ctrl-C while a line is cut: a loop that goes on after errors ends."""

    def interrupted(*_: object) -> CommandResult:
        raise KeyboardInterrupt

    def unknown(*_: object) -> bool:
        msg = "nobody can tell now"
        raise SubmitException(msg)

    monkeypatch.setattr(FakeTransport, "run", interrupted)
    monkeypatch.setattr(JobIntent, "revoke", unknown)

    with pytest.raises(KeyboardInterrupt) as caught:
        bench.engine.submit(bench.submission())

    assert "may run or not" in caught.value.__notes__[0]


def test_native_id_that_is_none_is_no_answer(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.scheduler.faults.fail("tsubmit", returncode=0, stdout="accepted as job none\n")
    caplog.set_level(logging.DEBUG)

    with pytest.raises(SubmitException, match="cannot parse"):
        bench.engine.submit(bench.submission())

    told = [it for it in caplog.records if it.levelno >= logging.WARNING]
    assert [it.getMessage() for it in told if "cannot parse" in it.getMessage()] == [
        "tsubmit printed output that the plugin cannot parse: 'accepted as job none\\n'"
    ]
    assert [it for it in told if it.exc_info] == []
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
    second = Intent("a1", 2, {}, None)
    discard, is_locked = Spool.discard, list[bool]()

    def noted(spool: Spool, *arguments: Any) -> None:
        with spool.hold_lock(second, 0.0) as is_held:
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
    with bench.spool.hold_lock(second, 0.0) as is_held:
        assert is_held


def test_at_most_so_many_submissions_are_sent_at_a_time(bench: Bench) -> None:
    assert bench.engine._pipeline._slots._value == BatchConfig().submit_concurrency  # type: ignore[attr-defined]  # what a semaphore has left


# ------------------------------------------------------------------------------------------- recovery


def test_recovered_job_is_followed_again(bench: Bench) -> None:
    native_id = bench.submit()

    (recovered,) = bench.recover()
    bench.follow()
    bench.leave("active", "exit.run.7")
    bench.see()

    assert (recovered.job_id, recovered.native_id) == ("a1", native_id)
    assert bench.last() == (JobState.FAILED, 7, Reason.EXIT_CODE, Evidence.MARKER)
    assert bench.recover() == []


def test_final_job_is_not_recovered_whatever_told_its_end(bench: Bench) -> None:
    native_id = bench.submit()
    bench.scheduler.vanish(native_id)
    bench.ask()
    bench.clock.advance(GRACE)
    bench.ask()

    assert bench.last()[2] is Reason.LOST
    assert bench.recover() == []


def test_end_that_came_while_nobody_looked_is_told_on_recovery(bench: Bench) -> None:
    bench.submit()
    bench.leave("active", "exit.run.0")

    bench.recover()
    bench.follow()
    bench.see()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)


def killed_before(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, step: str, whose: type, *elements: str
) -> None:
    """Submit a job, or these jobs as an array, and die at the beginning of this step."""

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
        patched.setattr(whose, step, die)
        # what a killed process cannot do any more
        patched.setattr(Handoff, "withdraw", lambda *_: None)
        patched.setattr(Spool, "discard", lambda *_: None)
        patched.setattr(Spool, "give_up", lambda *_: None)
        with pytest.raises(Killed):
            submit()


def unnamed_array(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> str:
    """Submit e1 and e2 as an array, and die before its native id is recorded; return its name."""
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline, "e1", "e2")
    (array,) = bench.spool.arrays.names()
    return array


def test_job_that_was_never_sent_comes_back_new(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_before(bench, monkeypatch, "sync", Spool)

    (recovered,) = bench.recover()

    assert (recovered.job_id, recovered.attempt, recovered.native_id) == ("a1", 1, None)
    assert bench.engine.submit(bench.submission(attempt=2)) == "1"


def test_job_that_was_not_yet_written_down_was_never_submitted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The submit command has been started by then."""
    killed_before(bench, monkeypatch, "write_attempt", Spool)

    assert bench.recover() == []
    assert not bench.scheduler.jobs


def test_job_whose_submitter_died_before_it_knew_the_id_is_found_by_its_tag(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)

    (recovered,) = bench.recover()

    assert recovered.native_id == "1"
    assert len(bench.scheduler.jobs) == 1


def test_job_that_shows_late_is_known_by_its_claim(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.scheduler.lag = 3600.0
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)
    Path(bench.spool.folder("a1"), "claim.1").write_text("1\n")

    (recovered,) = bench.recover()

    assert recovered.native_id == "1"


def test_job_that_neither_shows_nor_runs_can_never_run_after_it_was_called_new(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    """The batch system is not needed for that."""
    array = unnamed_array(bench, monkeypatch)
    Path(bench.spool.arrays.folder(array), "claim").write_text("not one word")
    if has_begun:
        bench.leave("active", job_id="e2")
    bench.scheduler.faults.down()

    recovered = {it.job_id: it.native_id for it in bench.recover()}
    bench.follow("e1")
    bench.leave("active", "exit.run.3", job_id="e1")
    bench.see()

    assert recovered == {"e1": "unnamed.e1", "e2": "unnamed.e2"}
    assert bench.last("e1") == (JobState.FAILED, 3, Reason.EXIT_CODE, Evidence.MARKER)


def test_system_that_does_not_answer_postpones_recovery(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a job without an id runs cannot be told then, and is not guessed."""
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)
    bench.scheduler.faults.down()

    with pytest.raises(SubmitException):
        bench.recover()
    bench.scheduler.faults.up()

    assert [recovered.native_id for recovered in bench.recover()] == ["1"]


def test_submissions_under_way_are_left_to_their_processes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They are waited for together, and after all others."""
    waits: list[tuple[str, float]] = []
    judging = Spool.hold_lock

    def noted(spool: Spool, intent: Intent, patience_seconds: float) -> object:
        waits.append((intent.job_id, patience_seconds))
        return judging(spool, intent, 0.0)

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
    """The runner of another job waits for its lock, which must not last as long as all withdrawals."""
    bench.scheduler.lag = 0.0 if is_shown else 3600.0
    monkeypatch.setattr(SubmissionPipeline, "_record_native_id", lambda *_: None)
    for job_id in ("a1", "a2", "a3"):
        bench.engine.submit(bench.submission(job_id))
    held: list[list[str]] = []
    resolve = Recovery._resolve

    def look(recovery: Recovery, lost: Any, native_id: str | None) -> str | None:
        others = [it for it in ("a1", "a2", "a3") if it != lost.id]
        held.append([it for it in others if _is_locked(bench.spool, it)])
        return resolve(recovery, lost, native_id)

    monkeypatch.setattr(Recovery, "_resolve", look)

    assert [it.native_id for it in bench.recover()] == (["1", "2", "3"] if is_shown else [None] * 3)

    # those that the system does not show are looked for once more, together, under their locks
    assert held == ([[], [], []] if is_shown else [["a2", "a3"], ["a3"], []])


def _is_locked(spool: Spool, job_id: str) -> bool:
    intent = spool.intent(job_id, 1)
    assert intent is not None
    with spool.hold_lock(intent, 0.0) as is_free:
        return not is_free


def test_recovery_asks_about_all_lost_attempts_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SubmissionPipeline, "_record_native_id", lambda *_: None)
    for job_id in ("a1", "a2", "a3"):
        bench.engine.submit(bench.submission(job_id))
    before = bench.calls("tstat")

    bench.recover()

    assert bench.calls("tstat") == before + 1


def test_the_files_of_several_jobs_are_written_once_their_dependencies_are_known(bench: Bench) -> None:
    written: list[list[str]] = []

    def look(_: JobSpec) -> tuple[Dependency, ...]:
        written.append(bench.spool.job_ids())
        msg = "the server is down"
        raise SubmitException(msg)

    bench.engine._open()
    bench.engine._pipeline._open_dependencies_of = look

    with pytest.raises(SubmitException, match="the server is down"):
        bench.engine._pipeline.submit_jobs([bench.submission("a1"), bench.submission("a2")])

    assert written == [[]]


class Refusing:
    """It refuses to cancel any job."""

    @hookimpl
    def parse_cancel(self, native_ids: Sequence[str]) -> dict[str, str]:
        return dict.fromkeys(native_ids, "the server is read-only")


def test_a_poll_that_cannot_start_does_not_hide_a_refusal(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: PollLoop) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    bench.overrides.append(Refusing())
    bench.engine = bench.process()
    bench.submit("a1")
    monkeypatch.setattr(PollLoop, "start", refuse)

    with pytest.raises(SubmitException, match="the server is read-only"):
        bench.engine.cancel("a1")
    assert "no thread could be started" not in caplog.text


def test_a_request_succeeds_though_no_thread_can_be_started(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: PollLoop) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    bench.submit("a1")
    monkeypatch.setattr(PollLoop, "start", refuse)

    bench.engine.cancel("a1")

    assert "no thread could be started to follow jobs" in caplog.text


class Announcing:
    """Its hook for events is broken."""

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
    bench.overrides.append(Announcing())
    bench.engine = bench.process()

    assert bench.submit() == "1"

    assert "toy: no events can be received, so jobs are polled" in caplog.text


def test_a_broken_probe_is_warned_of_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Probing):
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
    bench.ask()

    assert bench.last("a2") == (JobState.CANCELED, None, Reason.CANCELLED, Evidence.QUEUE)


@pytest.mark.clause("state-canceled")
def test_a_job_that_was_told_to_end_is_not_cancelled_before_it_has_ended(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    native_id = bench.submit("a1")
    bench.leave("active")
    with monkeypatch.context() as patched:
        # a batch system that takes its time
        patched.setattr(FakeScheduler, "cancel", lambda scheduler, it: it == native_id)
        patched.setattr(FakeScheduler, "cancel_all", lambda *_: None)
        bench.engine.cancel("a1")
        bench.see()
        bench.ask()
    before = bench.states("a1")

    bench.scheduler.cancel(native_id)
    bench.clock.advance(GRACE)
    bench.ask()

    assert set(before) == {JobState.ACTIVE}
    assert bench.states("a1")[-1] is JobState.CANCELED


def test_own_cancel_is_remembered_when_the_system_forgets(bench: Bench) -> None:
    bench.submit("a1")
    native_id = bench.submit("a2")
    bench.engine.cancel("a2")
    bench.scheduler.vanish(native_id)

    bench.recover()
    bench.follow("a2")
    bench.ask()
    bench.clock.advance(GRACE)
    bench.ask()

    assert bench.last("a2") == (JobState.CANCELED, None, Reason.CANCELLED, Evidence.ABSENCE)


@pytest.mark.clause("cancel-asks")
def test_cancel_that_does_not_reach_the_system_is_told(bench: Bench) -> None:
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
    """Even if the batch system said only just now that it waits, and would not mind."""
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
def test_unknown_native_id_is_told_and_never_completed(bench: Bench) -> None:
    bench.engine.attach("a1", "999")
    bench.follow()

    bench.ask()
    bench.clock.advance(GRACE - 1)
    bench.ask()
    assert bench.published == []
    bench.clock.advance(2)
    bench.ask()

    assert len(bench.published) == 1
    assert bench.last() == (JobState.FAILED, None, Reason.ATTACH_UNVERIFIED, Evidence.ABSENCE)


class Visible:
    """A layer that says how soon the toy tells of every job."""

    SECONDS = 20.0

    @hookimpl
    def capabilities(self) -> Capabilities:
        """The toy's."""
        return attrs.evolve(toy.capabilities(), visible_within=self.SECONDS)


@pytest.mark.clause("attach-fails")
def test_unknown_native_id_is_told_as_soon_as_the_system_would_have_told_of_a_job(bench: Bench) -> None:
    bench.overrides.append(Visible())
    bench.engine = bench.process()
    monitor = bench.engine._open()[0]
    bench.engine.attach("a1", "999")
    bench.follow()
    began, asked = bench.clock(), 0

    while not bench.published:
        due = monitor.next_poll_time()
        assert due is not None
        bench.clock.advance(max(0.0, due - bench.clock()))
        bench.ask()
        asked += 1

    assert bench.last() == (JobState.FAILED, None, Reason.ATTACH_UNVERIFIED, Evidence.ABSENCE)
    assert Visible.SECONDS <= bench.clock() - began < Visible.SECONDS + 7
    assert asked < 15


@pytest.mark.parametrize("late", ["queue", "accounting"])
def test_a_job_that_does_not_show_yet_is_not_taken_for_none(bench: Bench, late: str) -> None:
    """It was submitted, or has ended, a moment before somebody attaches to it."""
    bench.overrides.append(Visible())
    bench.engine = bench.process()
    native_id = bench.scheduler.submit(FakeJob("17")).native_id
    if late == "queue":
        bench.scheduler.lag, bench.scheduler.accounting_lag = Visible.SECONDS - 2, 1000
    else:
        bench.scheduler.keep, bench.scheduler.accounting_lag = 0.0, Visible.SECONDS - 2
        bench.clock.advance(1)
        assert bench.scheduler.end_as(native_id, FakeState.TIMEOUT)
    bench.engine.attach("a1", native_id)
    bench.follow()

    for _ in range(int(Visible.SECONDS)):
        bench.ask()
        bench.clock.advance(1)

    assert [it.reason for _, it in bench.published if it.final] == (
        [] if late == "queue" else [Reason.TIMEOUT]
    )
    assert bench.published


def test_id_that_the_accounting_was_not_asked_about_is_not_taken_for_none(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_: object) -> None:
        msg = "the accounting is away"
        raise SubmitException(msg, transient=True)

    bench.overrides.append(Visible())
    bench.engine = bench.process()
    monkeypatch.setattr(bench.engine._backend, "query_accounting", silent)
    bench.engine.attach("a1", "999")
    bench.follow()

    for _ in range(10):
        bench.ask()
        bench.clock.advance(GRACE)

    assert bench.published == []


def test_foreign_job_that_is_mentioned_again_is_not_said_to_be_missing(bench: Bench) -> None:
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
        bench.ask()
        job._publish([status for job_id, status in bench.published if job_id == "a1"][-1])
        messages.append(job.status.message is None)

    assert messages == [True, False, True]


@pytest.mark.clause("attach-returns")
def test_foreign_job_is_followed_by_what_the_system_says(bench: Bench) -> None:
    native_id = bench.submit()
    other = Bench(bench.root / "other", bench.scheduler, bench.clock)
    other.engine.attach("a2", native_id)
    other.follow("a2")
    other.ask()
    other.clock.advance(60)
    other.ask()

    assert other.states("a2") == [JobState.ACTIVE, JobState.COMPLETED]


def test_own_job_is_attached_with_its_markers(bench: Bench) -> None:
    native_id = bench.submit("a1")
    bench.leave("active", "exit.run.7")
    bench.engine = bench.process()

    bench.engine.attach("b1", native_id)
    bench.follow("b1")
    bench.see()

    assert bench.last("b1") == (JobState.FAILED, 7, Reason.EXIT_CODE, Evidence.MARKER)


@pytest.mark.parametrize("many", [False, True], ids=["attach", "attach_many"])
def test_living_job_is_attached_to_and_not_one_of_ours_that_had_its_native_id(
    bench: Bench, many: bool
) -> None:
    """A batch system that was set up anew, or whose ids go round, gives them again."""
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
        bench.ask()

    assert bench.last("b1")[0] is JobState.ACTIVE


@pytest.mark.parametrize("fails", [False, True], ids=["forgotten", "does not answer"])
def test_job_of_ours_that_has_ended_is_attached_to_where_no_other_is_known(bench: Bench, fails: bool) -> None:
    native_id = bench.submit("a1")
    bench.leave("active", "exit.run.0")
    bench.scheduler.vanish(native_id)
    if fails:
        bench.scheduler.faults.fail("tstat")
    bench.engine = bench.process()

    bench.engine.attach("b1", native_id)
    bench.follow("b1")

    assert bench.last("b1") == (JobState.COMPLETED, 0, None, Evidence.MARKER)


# ------------------------------------------------------------------------------- several who follow it


def test_job_is_not_lost_before_it_was_looked_for_what_it_has_left_elsewhere(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where another machine has taken its markers, and the line is down."""
    native_id = bench.submit()
    bench.leave("active")
    bench.scheduler.vanish(native_id)
    monkeypatch.setattr(bench.engine._native_ids, "_refresh", lambda _: False)

    for _ in range(3):
        bench.ask()
        bench.clock.advance(GRACE)

    assert bench.states() == [JobState.ACTIVE]

    def brings(_: object) -> bool:
        bench.leave("exit.run.0")
        return True

    monkeypatch.setattr(bench.engine._native_ids, "_refresh", brings)
    bench.ask()
    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)


def test_attempt_that_another_machine_has_made_since_is_the_one_that_is_recovered(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was found here as a job that was never sent."""
    killed_before(bench, monkeypatch, "sync", Spool)
    bench.recover()
    bench.engine = bench.process()

    def brings(*_: object) -> bool:
        os.close(bench.spool.prepare("a1", 2, {**intent.content, "attempt": 2}, ""))
        Path(bench.spool.folder("a1"), "claim.2").write_text("17")
        return True

    intent = bench.spool.last_intent("a1")
    assert intent is not None
    monkeypatch.setattr(RunHost, "refresh", brings)

    assert [(it.attempt, it.native_id) for it in bench.engine.recover()] == [(2, "17")]


def test_marker_that_another_process_took_is_seen_when_it_is_announced(bench: Bench) -> None:
    bench.submit()
    bench.leave("active", "exit.run.0")
    bench.spool.collect(["a1"])

    bench.engine._open()[0].collect_markers(bench.clock(), {"a1.1.exit.run.0", "stranger", "b9.1.active"})

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)


def test_marker_that_another_process_took_is_looked_for_when_the_queue_says_so(bench: Bench) -> None:
    """Where nothing is announced, as on a network file system."""
    bench.submit()
    bench.leave("active", "exit.run.7")
    bench.spool.collect(["a1"])
    bench.clock.advance(60)

    bench.ask()

    assert bench.last() == (JobState.FAILED, 7, Reason.EXIT_CODE, Evidence.MARKER)


def test_child_of_a_fork_leaves_the_jobs_of_its_parent_alone(bench: Bench) -> None:
    bench.submit("a1")
    monitor, _ = bench.engine._open()

    # a lock that a thread of the parent holds is held for ever in the child
    with monitor._lock, bench.engine._lock:
        pid = os.fork()
        if pid == 0:
            bench.engine.submit(bench.submission("a2"))
            os._exit(0 if len(bench.engine.native_ids()) == 1 else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert bench.engine.native_ids() == ["1"]


# ------------------------------------------------------------------------------------- narrow instants


def test_recovery_waits_for_a_submission_and_takes_its_word(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id is noted while another process waits for the lock; the job does not show yet."""
    bench.scheduler.lag = 3600.0
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)
    judging = Spool.hold_lock

    def noted_meanwhile(spool: Spool, intent: Intent, timeout_seconds: float) -> Any:
        with Path(spool.folder("a1"), "intent.1.json").open("a") as file:
            file.write("\n1")
        return judging(spool, intent, timeout_seconds)

    monkeypatch.setattr(Spool, "hold_lock", noted_meanwhile)

    (recovered,) = bench.recover()

    assert recovered.native_id == "1"
    assert claim_of(bench) is None


@pytest.mark.parametrize("left", ["events/a1.1.exit.run.0", "jobs/a1/start.1.0", "jobs/a1/claim.1"])
def test_job_that_begins_while_recovery_takes_its_lock_is_not_withdrawn(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    """The batch system does not show it yet. A runner that finds the disk full leaves no claim."""
    bench.scheduler.lag = 3600.0
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)
    hold_lock = Spool.hold_lock

    def begun_meanwhile(spool: Spool, intent: Intent, timeout_seconds: float) -> Any:
        Path(spool.root, left).write_text("1\n")
        return hold_lock(spool, intent, timeout_seconds)

    monkeypatch.setattr(Spool, "hold_lock", begun_meanwhile)

    (recovered,) = bench.recover()

    assert recovered.native_id == ("1" if "claim" in left else "unnamed.a1")
    assert claim_of(bench) != "revoked"


def test_array_that_begins_while_recovery_takes_its_lock_is_not_withdrawn(
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


@pytest.mark.parametrize("is_told", [True, False], ids=["the queue tells", "the queue has forgotten it"])
def test_a_submitter_hears_of_an_end_that_another_process_took_before_it_followed_the_job(
    bench: Bench, is_told: bool
) -> None:
    own = bench.engine
    native_id = own.submit(bench.submission())
    bench.recover()
    bench.follow()
    bench.leave("active", "exit.run.3")
    bench.see()
    assert bench.last()[:2] == (JobState.FAILED, 3)
    bench.published.clear()
    if is_told:
        bench.scheduler.end_as(native_id, FakeState.FAILED)
    else:
        bench.scheduler.vanish(native_id)

    bench.engine = own
    bench.follow()
    bench.ask()

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


def test_claim_that_is_being_written_is_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_claim_that_does_not_show_yet_is_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on NFS: a runner elsewhere has made it, and reading it says that there is none."""
    bench.scheduler.lag = 3600.0
    bench.scheduler.faults.accept_and_hang("tsubmit")
    monkeypatch.setattr(Spool, "revoke", lambda *_: False)
    seen = iter([None, None, Claim("1", 0)])
    monkeypatch.setattr(Spool, "claim", lambda *_: next(seen))

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


def test_attempt_that_could_not_be_withdrawn_is_withdrawn_before_the_next(
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


def test_earlier_attempt_that_runs_keeps_the_next_from_being_made(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_before(bench, monkeypatch, "_record_native_id", SubmissionPipeline)
    Path(bench.spool.folder("a1"), "claim.1").write_text("1\n")

    with pytest.raises(SubmitException, match="attempt 1 of job a1 runs already"):
        bench.engine.submit(bench.submission(attempt=2))


def test_earlier_attempt_whose_intent_is_lost_can_run_no_more(
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


def test_job_that_failed_to_be_submitted_twice_is_nothing_to_recover(bench: Bench) -> None:
    bench.scheduler.faults.down()
    for attempt in (1, 2):
        with pytest.raises(SubmitException):
            bench.engine.submit(bench.submission(attempt=attempt))
    bench.scheduler.faults.up()

    assert bench.recover() == []


def test_job_whose_folder_cannot_be_read_at_first_is_followed_all_the_same(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.engine.submit(bench.submission())

    def scarce(*_: Any) -> None:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(Spool, "read_final", scarce)
        bench.engine.track("a1")
    bench.leave("active", "exit.run.0")
    bench.see()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)


def test_accounting_that_lags_is_asked_again(bench: Bench) -> None:
    native_id = bench.submit()
    bench.leave("active", "exit.run.137")
    bench.see()
    bench.scheduler.vanish(native_id)
    running = {native_id: Observation(state=JobState.ACTIVE, native_state="RUNNING")}
    ended = {native_id: Observation(state=JobState.FAILED, native_state="OOM", reason=Reason.OUT_OF_MEMORY)}
    answers = iter([running, running, ended])
    bench.engine._backend.query_accounting = lambda ids: next(answers)  # type: ignore[method-assign]

    for _ in range(3):
        bench.clock.advance(5)
        bench.ask()

    assert bench.last() == (JobState.FAILED, 137, Reason.OUT_OF_MEMORY, Evidence.ACCOUNTING)


def test_last_run_that_another_process_took_decides(bench: Bench) -> None:
    native_id = bench.submit()
    bench.leave("active", "signalled", "exit.run.143")
    bench.see()
    bench.scheduler.requeue(native_id)
    bench.ask()
    bench.leave("1.active", "1.exit.run.0")
    bench.spool.collect(["a1"])
    bench.clock.advance(60)

    bench.ask()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)


class Probing:
    """A site that says by which exit code a job asks to be run again."""

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
    bench.overrides.append(Probing("tstat"))
    bench.engine = bench.process()
    # it does not answer when the job is sent
    bench.scheduler.faults.fail("tstat")
    bench.submit()
    bench.leave("active", "exit.run.99")
    bench.see()
    bench.ask()
    assert not any(state.final for state in bench.states())

    bench.leave("1.active", "1.exit.run.7")
    bench.see()

    assert bench.last() == (JobState.FAILED, 7, Reason.EXIT_CODE, Evidence.MARKER)
    assert bench.recover() == []


def test_the_requeue_codes_are_on_disk_before_the_first_job_is_sent(bench: Bench) -> None:
    """A client that is killed at once asks no more; its jobs must know which of their ends are the last."""
    bench.overrides.append(Probing("tstat"))
    bench.engine = bench.process()
    told = list[object]()
    bench.scheduler.outcomes = {}
    submit = bench.scheduler.submit_all
    bench.scheduler.submit_all = lambda jobs: (
        told.append(read_requeue_codes(bench.spool.root)),
        submit(jobs),
    )  # type: ignore[assignment, method-assign]

    bench.submit("a1")
    bench.submit("a2")

    assert told == [{99}, {99}]
    assert bench.calls("tstat") == 1


def test_job_is_submitted_though_the_site_does_not_tell_its_requeue_codes(bench: Bench) -> None:
    bench.overrides.append(Probing("no-such-command"))
    bench.engine = bench.process()

    assert bench.submit() == "1"


def test_the_requeue_codes_are_asked_for_once_and_kept_for_those_who_only_look(bench: Bench) -> None:
    bench.overrides.append(Probing("tstat"))
    bench.engine = bench.process()
    bench.submit()

    bench.engine.record_site_policy()
    assert read_requeue_codes(bench.spool.root) == {99}

    bench.overrides[-1] = Probing("no-such-command")
    bench.process().record_site_policy()
    assert read_requeue_codes(bench.spool.root) == {99}


def test_a_site_that_does_not_tell_its_requeue_codes_is_left_alone(bench: Bench) -> None:
    bench.overrides.append(Probing("no-such-command"))

    bench.process().record_site_policy()

    assert read_requeue_codes(bench.spool.root) == EVERY_FAILURE


def test_probe_that_fails_costs_no_answer(bench: Bench) -> None:
    bench.overrides.append(Probing("no-such-command"))
    bench.engine = bench.process()
    bench.submit()

    bench.ask()

    assert bench.states() == [JobState.ACTIVE]


def test_job_that_a_retrying_command_made_twice_is_the_one_that_runs(bench: Bench) -> None:
    """The system has two; one claims, and the other, whose id was printed, exits at once."""
    bench.scheduler.slots = 2
    native_id = bench.submit()
    bench.leave("active")
    Path(bench.spool.folder("a1"), "claim.1").write_text("777\n")
    bench.scheduler.vanish(native_id)

    bench.ask()
    bench.clock.advance(5)
    bench.ask()
    bench.leave("exit.run.0")
    bench.see()

    tracked = [call.invocation.argv for call in bench.scheduler.log if call.invocation.argv[0] == "tstat"]
    assert ("tstat", "777") in tracked
    assert bench.renamed == {"a1": "777"}
    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.MARKER)


class Looking:
    """A layer that sees whether jobs can have news while the batch system looks for tags."""

    def __init__(self) -> None:
        self.bench: Bench | None = None
        self.is_free: list[bool] = []

    @hookimpl(wrapper=True)
    def parse_find(self) -> Iterator[None]:
        if self.bench is not None:
            self.bench.see()
            self.is_free.append(JobState.COMPLETED in self.bench.states("b1"))
        return (yield)


def test_jobs_have_news_while_unnamed_ones_are_looked_for(tmp_path: Path, bench: Bench) -> None:
    looking = Looking()
    bench = Bench(tmp_path, bench.scheduler, bench.clock, overrides=[looking])
    bench.submit("b1")
    native_ids = [bench.submit(f"a{number}") for number in range(3)]
    monitor, _ = bench.engine._open()
    for job in monitor.all():
        job.native_id = f"unnamed.{job.job_id}" if job.job_id != "b1" else job.native_id
    bench.leave("active", "exit.run.0", job_id="b1")
    looking.bench = bench

    bench.ask()

    assert looking.is_free == [True], "one command finds them all"
    assert bench.renamed == {f"a{number}": native_id for number, native_id in enumerate(native_ids)}


@pytest.mark.parametrize("native_id", ["", " ", "--user=me", "a b", "a\nb", "x" * 300])
def test_what_is_no_native_id_is_not_attached_to(bench: Bench, native_id: str) -> None:
    bench.engine.attach("a1", native_id)
    bench.engine.track("a1")

    assert bench.last() == (JobState.FAILED, None, Reason.ATTACH_UNVERIFIED, Evidence.ABSENCE)
    assert "cannot be the native id" in (bench.published[0][1].message or "")
    assert bench.engine._open()[0].all() == []


def test_child_of_a_fork_that_cancels_a_job_of_its_parent_is_told(bench: Bench) -> None:
    bench.submit()
    bench.engine._reset_state()  # as it happens in the child

    with pytest.raises(SubmitException, match="is followed by another process"):
        bench.engine.cancel("a1")


# ------------------------------------------------------------------------------- faults that were seen once


def test_directory_of_markers_that_is_gone_is_made_again_and_costs_no_end(bench: Bench) -> None:
    native_id = bench.submit()
    bench.ask()
    Path(bench.spool.events).rmdir()

    bench.scheduler.end_as(native_id, FakeState.TIMEOUT)
    bench.clock.advance(5)
    bench.ask()
    bench.clock.advance(GRACE)
    bench.ask()

    assert bench.last() == (JobState.FAILED, 143, Reason.TIMEOUT, Evidence.QUEUE)
    assert Path(bench.spool.events).is_dir()


def test_accounting_that_was_down_is_given_time_to_hear_of_all(bench: Bench) -> None:
    """The first answer after that comes before the end of the job does."""
    native_id = bench.submit()
    bench.ask()
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
        bench.ask()

    assert bench.last() == (JobState.COMPLETED, 0, None, Evidence.ACCOUNTING)


@attrs.define
class Accounting:
    """Lies over the toy: an accounting that is asked for one job at a time, and answers as it is told."""

    answers: dict[str, Observation | NotOffered | SubmitException] = attrs.field(factory=dict)
    asked: list[str] = attrs.field(factory=list)
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
        self.asked.append(native_id)
        answer = self.answers.get(native_id)
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


def test_accounting_that_fails_for_one_job_tells_how_others_ended(
    bench: Bench, accounting: Accounting
) -> None:
    odd, good = bench.submit("a1"), bench.submit("a2")
    accounting.answers = {odd: SubmitException("odd", transient=True), good: _DONE}
    bench.scheduler.vanish(odd)
    bench.scheduler.vanish(good)

    for _ in range(4):
        bench.clock.advance(GRACE)
        bench.ask()

    assert bench.states("a1") == []
    assert bench.last("a2") == (JobState.COMPLETED, 0, None, Evidence.ACCOUNTING)


@pytest.mark.parametrize("command", ["tstat", "is-not-there"])
def test_job_is_lost_where_the_accounting_cannot_be_read(
    bench: Bench, accounting: Accounting, caplog: pytest.LogCaptureFixture, command: str
) -> None:
    native_id = bench.submit()
    accounting.answers[native_id] = NOT_OFFERED
    accounting.command = command
    bench.scheduler.vanish(native_id)

    for _ in range(3):
        bench.clock.advance(GRACE)
        bench.ask()

    assert bench.last() == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)
    assert caplog.text.count("toy has no accounting to query") == 1


def test_account_of_an_older_job_with_the_same_native_id_is_not_believed(
    bench: Bench, accounting: Accounting
) -> None:
    native_id = bench.submit()
    bench.leave("active")
    bench.see()
    bench.scheduler.vanish(native_id)
    now = datetime.fromtimestamp(bench.clock(), UTC)
    accounting.answers[native_id] = attrs.evolve(_DONE, time=now - timedelta(days=30))

    for _ in range(2):
        bench.clock.advance(GRACE)
        bench.ask()

    assert bench.last() == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)


def test_account_of_an_end_before_the_queue_had_the_job_is_not_its_own() -> None:
    then = datetime(2026, 1, 1, tzinfo=UTC)
    job = JobView("a1", "a1", 0, "17")
    job.observe(Observation(state=JobState.QUEUED, native_state="qw", time=then), 0)
    job.observe(None, 1)

    job.apply_accounting({"17": attrs.evolve(_DONE, time=then - timedelta(days=1))}, 1)
    before = job.accounted
    job.apply_accounting({"17": attrs.evolve(_DONE, time=then + timedelta(seconds=1))}, 1)

    assert before is None
    assert job.accounted is not None


def test_job_that_has_left_its_end_costs_the_accounting_no_question(
    bench: Bench, accounting: Accounting
) -> None:
    native_id = bench.submit()
    bench.scheduler.vanish(native_id)
    bench.leave("active", "exit.run.3")

    bench.clock.advance(5)
    bench.ask()

    assert bench.last() == (JobState.FAILED, 3, Reason.EXIT_CODE, Evidence.MARKER)
    assert accounting.asked == []


def test_accounting_is_asked_so_many_questions_at_a_time_and_about_every_job(
    bench: Bench, accounting: Accounting
) -> None:
    """No job is lost by an answer that has become old."""
    native_ids = [bench.submit(f"a{number}") for number in range(50)]
    for native_id in native_ids:
        bench.scheduler.vanish(native_id)

    counts = []
    for _ in range(3):
        before = len(accounting.asked)
        bench.clock.advance(GRACE)
        bench.ask()
        counts.append(len(accounting.asked) - before)

    assert counts == [20, 20, 20]
    assert set(accounting.asked) == set(native_ids)
    lost = {name for name, status in bench.published if status.reason is Reason.LOST}
    assert len(lost) == 10


def test_job_that_could_leave_no_marker_is_lost_for_that_reason(bench: Bench) -> None:
    native_id = bench.submit()
    Path(bench.spool.folder("a1"), "start.1.0").touch()
    bench.ask()
    bench.scheduler.vanish(native_id)
    bench.clock.advance(5)
    bench.ask()
    bench.clock.advance(GRACE)
    bench.ask()

    (status,) = [status for _, status in bench.published if status.state is JobState.FAILED]
    assert status.reason is Reason.LOST
    assert status.message is not None
    assert status.message.endswith(f"left no exit marker in {bench.spool.events}")


def test_exit_codes_that_were_found_out_count_although_the_queue_does_not_answer(bench: Bench) -> None:
    bench.overrides.append(Probing("tstat"))
    bench.engine = bench.process()
    # it does not answer when the job is sent
    bench.scheduler.faults.fail("tstat")
    bench.submit()
    bench.leave("active", "exit.run.7")
    bench.see()
    assert not any(state.final for state in bench.states())

    down = SubmitException("down", transient=True)

    def states(_: object) -> dict[str, Observation]:
        raise down

    bench.engine._backend.query_states = states  # type: ignore[assignment]
    bench.ask()

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


def test_odd_file_of_one_job_costs_no_other_its_end(bench: Bench) -> None:
    bench.submit("a1")
    bench.submit("b1")
    bench.engine = bench.process()
    Path(bench.spool.folder("a1"), "stop.1.json").write_text("{}")
    bench.engine.recover()
    bench.follow("a1")
    bench.follow("b1")

    bench.leave("active", "exit.run.0", job_id="b1")
    bench.see()

    assert bench.last("b1") == (JobState.COMPLETED, 0, None, Evidence.MARKER)


def test_folder_of_one_job_that_cannot_be_read_costs_no_other_its_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [bench.submit(name) for name in ("a1", "b1")]
    bench.ask()
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
        bench.ask()
        bench.clock.advance(GRACE)
    bench.ask()

    assert bench.last("b1") == (JobState.FAILED, 143, Reason.TIMEOUT, Evidence.QUEUE)
    assert not any(state.final for state in bench.states("a1"))


def test_end_with_details_that_json_does_not_know_is_told(bench: Bench) -> None:
    native_id = bench.submit()
    odd = Observation(
        state=JobState.FAILED,
        native_state="OOM",
        tag="jpsi-a1-1",
        reason=Reason.OUT_OF_MEMORY,
        details={"toy.what": object()},
    )
    bench.engine._backend.query_states = lambda ids: {native_id: odd}  # type: ignore[assignment]
    bench.ask()
    bench.clock.advance(GRACE)
    bench.ask()

    assert bench.last() == (JobState.FAILED, None, Reason.OUT_OF_MEMORY, Evidence.QUEUE)


def run_line(bench: Bench) -> str:
    """The one line besides directives that the batch system is given."""
    return bench.engine._handoff._run_line(JobIntent(bench.spool, "a1", 1))


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


def test_shell_that_is_not_there_is_told_as_that(bench: Bench) -> None:
    backend = bench.engine._backend
    backend.config = attrs.evolve(backend.config, shell="/no/such/'shell of ours' -l")
    bench.submit()

    code = subprocess.run(["/bin/sh", "-c", run_line(bench)], check=False).returncode
    bench.see()

    assert code == 125
    assert bench.last() == (JobState.FAILED, 125, Reason.SETUP, Evidence.MARKER)
    assert "the configured shell does not exist" in (bench.published[-1][1].message or "")


def test_of_all_jobs_those_are_told_of_that_have_not_ended_and_no_arrays_besides_their_elements(
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


def test_job_whose_native_id_is_a_strangers_is_lost_whatever_became_of_the_stranger(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    native_id = bench.submit()
    bench.ask()
    bench.clock.advance(5)
    bench.scheduler.reuse_native_id(native_id)
    for _ in range(3):
        bench.clock.advance(GRACE)
        bench.ask()
    assert bench.scheduler.job(native_id).state is FakeState.COMPLETED

    assert bench.last() == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)
    assert bench.states() == [JobState.ACTIVE, JobState.FAILED]
    assert caplog.text.count(f"has given its native id {native_id} to another job") == 1


def test_account_of_a_stranger_is_no_account(bench: Bench) -> None:
    native_id = bench.submit()
    bench.scheduler.reuse_native_id(native_id)
    bench.scheduler.keep = 0.0

    for _ in range(4):
        bench.clock.advance(GRACE)
        bench.ask()

    assert bench.last() == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)


def test_info_says_nothing_of_a_stranger(bench: Bench) -> None:
    native_id = bench.submit()
    bench.scheduler.reuse_native_id(native_id)

    assert bench.engine.info("a1") is None


@pytest.mark.parametrize("request_", ["cancel", "hold", "release", "cancel_many"])
def test_no_request_goes_to_a_stranger(bench: Bench, request_: str) -> None:
    native_id = bench.submit()
    stranger = bench.scheduler.reuse_native_id(native_id)
    before = stranger.state

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
    assert stranger.state is before
    assert bench.spool.read_stop("a1", 1) is None, "nobody is told that its end was asked for"
    assert not any(bench.calls(command) for command in ("thold", "trelease"))
    assert bench.calls("tdel") == (request_ == "cancel_many")


def test_no_request_goes_to_what_is_shown_without_the_tag_after_the_job_has_begun(bench: Bench) -> None:
    """A controller that is killed may give the native id to another job within a second."""
    native_id = bench.submit()
    bench.ask()
    bench.leave("active")
    bench.see()
    job = bench.scheduler.job(native_id)
    job.tag = ""

    with pytest.raises(SubmitException, match="without the tag jpsi-a1-1: a user has removed the tag"):
        bench.engine.cancel("a1")
    bench.clock.advance(GRACE)
    bench.ask()

    assert bench.calls("tdel") == 0
    assert set(bench.states()) == {JobState.ACTIVE}


@pytest.mark.parametrize(
    "exit_", [["signalled", "exit.run.143"], ["exit.run.7"]], ids=["signalled", "by itself"]
)
def test_job_that_has_ended_does_not_wait_for_what_has_its_native_id_without_the_tag(
    bench: Bench, exit_: list[str]
) -> None:
    native_id = bench.submit()
    bench.ask()
    bench.leave("active", *exit_)
    bench.see()
    bench.scheduler.job(native_id).tag = ""
    for _ in range(4):
        bench.clock.advance(GRACE)
        bench.ask()

    assert bench.last()[:2] == (JobState.FAILED, int(exit_[-1].rpartition(".")[2]))


def test_no_request_is_sent_while_it_is_not_known_whose_the_native_id_is(bench: Bench) -> None:
    bench.submit()
    bench.scheduler.faults.fail("tstat", None, returncode=0, stdout="garbage\n")

    with pytest.raises(SubmitException, match="did not answer to its end"):
        bench.engine.cancel("a1")

    assert bench.calls("tdel") == 0
    assert bench.spool.read_stop("a1", 1) is not None, "it is known that its end was asked for"


def test_job_that_waits_for_one_whose_native_id_is_a_strangers_is_not_submitted(bench: Bench) -> None:
    native_id = bench.submit()
    bench.scheduler.reuse_native_id(native_id)
    tracked = bench.engine._open()[0].get("a1")
    assert tracked is not None
    # longer ago than the word of its submit command counts
    tracked.accepted_at -= 3
    after = [Dependency(native_id)]

    with pytest.raises(SubmitException, match="does not say at present whether"):
        bench.submit("b1", attributes=JobAttributes(after=after))

    assert [job.tag for job in bench.scheduler.jobs if job.tag.startswith("jpsi-b1")] == []


def test_one_answer_that_leaves_a_job_out_is_not_believed_however_old_it_is(bench: Bench) -> None:
    bench.scheduler.accounting = False
    native_id = bench.submit()
    bench.ask()
    states, one = bench.engine._backend.query_states, iter([{}])
    bench.engine._backend.query_states = lambda ids: next(one, None) or states(ids)  # type: ignore[assignment]

    bench.ask()
    bench.clock.advance(GRACE * 10)
    bench.see()
    monitor, _ = bench.engine._open()
    monitor._judge_all(monitor.all(), bench.clock())

    assert bench.states() == [JobState.ACTIVE]
    assert bench.scheduler.job(native_id) is not None


def test_job_is_asked_about_alone_before_it_is_lost(bench: Bench) -> None:
    """What is asked about many may leave out one; here that goes on for ever."""
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
        bench.ask()
    assert set(bench.states("a1")) == {JobState.ACTIVE}
    assert bench.states("a2") == [JobState.QUEUED]
    assert listed != missed

    bench.scheduler.vanish(missed)
    for _ in range(3):
        bench.clock.advance(GRACE)
        bench.ask()
    assert bench.last("a1") == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)


def test_job_is_not_lost_while_the_question_about_it_alone_is_not_answered(bench: Bench) -> None:
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
        bench.ask()
    assert bench.states() == []
    is_down = False
    bench.clock.advance(GRACE)
    bench.ask()

    assert bench.last() == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)


@pytest.mark.parametrize("state", [JobState.ACTIVE, JobState.QUEUED])
def test_account_that_is_no_end_is_a_sign_of_life_for_an_hour(
    bench: Bench, accounting: Accounting, state: JobState
) -> None:
    """Longer ones are of an accounting that never heard of the end."""
    native_id = bench.submit()
    accounting.answers = {native_id: Observation(state=state, native_state="WORD", tag="jpsi-a1-1")}
    bench.scheduler.vanish(native_id)

    for _ in range(3600 // int(GRACE)):
        bench.ask()
        bench.clock.advance(GRACE)
    assert bench.states() == []
    for _ in range(3):
        bench.ask()
        bench.clock.advance(GRACE)

    assert bench.last() == (JobState.FAILED, None, Reason.LOST, Evidence.ABSENCE)


def test_unknown_native_id_that_the_system_denies_is_told_within_its_first_answers(bench: Bench) -> None:
    bench.engine.attach("a1", "999")
    bench.follow()
    denied = {"999": Observation.denied("no such job")}
    bench.engine._backend.query_states = lambda ids: denied  # type: ignore[assignment]
    bench.engine._backend.query_accounting = lambda ids: {}  # type: ignore[assignment]

    bench.ask()
    bench.clock.advance(2)
    bench.ask()

    assert bench.last() == (JobState.FAILED, None, Reason.ATTACH_UNVERIFIED, Evidence.ABSENCE)

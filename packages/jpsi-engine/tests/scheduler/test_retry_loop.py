"""Clients that submit a job again agree on its attempts and its end, in whichever order they act."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest

from jpsi import (
    InvalidJobException,
    JobAttributes,
    JobSpec,
    JobState,
    JobStatus,
    Queue,
    ResourceSpecV1,
    SubmitException,
)
from jpsi.plugin.engine import Engine, EngineSetup, Recovered, serialization
from jpsi_engine import QUEUE_REASON
from jpsi_engine.scheduler import retry_loop
from jpsi_engine.scheduler.retry_loop import RetryLoop
from jpsi_engine.scheduler.submit_queue import SubmissionCancelled, not_admitted_error
from jpsi_engine.spool import RETRY_KEY, Spool, encode_status
from jpsi_engine.verdict import CANCEL, Retry, Stop
from jpsi_testing.waiting import eventually

JOB = "a1"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FAILED = JobStatus(JobState.FAILED, time=NOW, exit_code=75)
INTENT = {
    "id": JOB,
    "time": NOW.isoformat(),
    "directory": "/tmp",
    "spec": serialization.encode(JobSpec("/bin/true")),
}


QUEUE = Queue(name="long", native_state="up", node_memory=3 * 2**30, max_walltime=timedelta(hours=3))


@attrs.define(eq=False)
class Client:
    """A client that follows the job, and its engine."""

    spool: Spool
    #: Acts in place of the engine, which makes the attempt.
    submits: Callable[[int], object] = lambda _: None
    #: Acts once the engine has made the attempt.
    submitted: Callable[[int], object] = lambda _: None
    #: Acts when the request is checked.
    checks: Callable[[int], object] = lambda _: None
    #: Acts when the engine is to follow the attempt.
    tracks: Callable[[], object] = lambda: None
    refuses: Sequence[str] = ()
    queues: Sequence[Queue] = ()
    #: The specs of the attempts that it made.
    specs: list[JobSpec] = attrs.field(factory=list)
    published: list[JobStatus] = attrs.field(factory=list)
    #: The attempt that the engine follows.
    followed: int | None = None
    cancelled: list[int | None] = attrs.field(factory=list)
    loop: RetryLoop = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.loop = RetryLoop(
            cast("Engine", self),
            self.spool,
            cast("EngineSetup", self),
            has_job=lambda _: self.followed is not None,
            queues=lambda: self.queues,
        )

    def step(self) -> bool:
        return self.loop._step(JOB)

    # ------------------------------------------------------------------------------------ the setup

    def publish(self, _: str, status: JobStatus) -> None:
        self.published.append(status)

    def renamed(self, _: str, native_id: str) -> None:
        pass

    def resubmission(self, _: str, attempt: int, spec: JobSpec) -> int:
        assert spec.executable == "/bin/true"
        self.checks(attempt)
        self.specs.append(spec)
        return attempt

    # ----------------------------------------------------------------------------------- the engine

    def submit(self, attempt: int) -> str:
        self.submits(attempt)
        make_attempt(self.spool, attempt)
        self.submitted(attempt)
        self.followed = attempt
        return str(attempt)

    def track(self, _: str) -> None:
        self.tracks()

    def give_up(self, _: object) -> None:
        pass

    def cancel(self, _: str) -> None:
        self.cancelled.append(self.followed)

    def refused(self, _: JobSpec) -> Sequence[str]:
        return self.refuses

    def recall(self, _: object) -> list[Recovered]:
        attempt = self.spool.last_attempt(JOB)
        intent = self.spool.intent(JOB, attempt)
        if intent is None or self.followed is not None:
            return []
        self.followed = attempt
        spec = JobSpec("/bin/true")
        return [
            Recovered(job_id=JOB, attempt=attempt, spec=spec, native_id=intent.native_id or None, time=NOW)
        ]


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    """Return a spool whose job has failed, and is to be submitted again."""
    made = Spool(tmp_path / "spool")
    made.open()
    make_attempt(made, 1)
    Path(made.folder(JOB), "retry.1").touch()
    retry = {**Retry(reason="75", not_before=NOW).content, "next": 2, "started": None}
    made.finish(JOB, 1, {**encode_status(FAILED), RETRY_KEY: {**retry, "submitted": NOW.isoformat()}})
    return made


def make_attempt(spool: Spool, attempt: int) -> None:
    lock = spool.prepare(JOB, attempt, {**INTENT, "attempt": attempt}, "exit 75\n")
    spool.started(lock, str(attempt))
    os.close(lock)


def raise_(error: Exception) -> bool:
    raise error


def step(client: Client) -> None:
    """Let a client take a step that may fail, as its thread does."""
    try:
        client.step()
    except SubmitException:
        pass
    except InvalidJobException:
        pass


def finals(spool: Spool) -> list[str]:
    return sorted(it for it in spool.names(JOB) if it.startswith("final."))


def refusal(_: Any = None) -> Exception:
    error = not_admitted_error(JOB)
    error.__cause__ = SubmissionCancelled([JOB])
    return error


@pytest.mark.parametrize(
    "error",
    [
        refusal(),
        SubmitException("it may run or not"),
        InvalidJobException("no such queue"),
        TypeError("damaged"),
    ],
    ids=["not admitted", "unclear", "invalid", "damaged"],
)
@pytest.mark.parametrize("where", ["checks", "submits"])
def test_a_client_does_not_end_a_job_whose_attempt_another_has_made(
    spool: Spool, error: Exception, where: str
) -> None:
    other = Client(spool)

    def fail(_: int) -> None:
        other.step()
        raise error

    client = Client(spool, refuses=["no"])
    setattr(client, where, fail)

    step(client)

    assert finals(spool) == ["final.1.json"]
    assert client.step()
    assert client.followed == 2


def test_a_client_does_not_end_a_job_that_another_submits_after_a_refused_attempt(spool: Spool) -> None:
    other = Client(spool)

    def refuse(attempt: int) -> None:
        make_attempt(spool, attempt)
        spool.discard(JOB, attempt, "refused")
        # it sees the revoked attempt before this client does anything about it
        other.step()
        raise InvalidJobException("no such queue")

    client = Client(spool, submits=refuse)

    step(client)

    assert other.followed == 3
    assert finals(spool) == ["final.1.json"]


def test_an_executor_that_is_closed_ends_no_job_whose_attempt_of_another_failed(spool: Spool) -> None:
    def close(attempt: int) -> None:
        make_attempt(spool, attempt)
        spool.discard(JOB, attempt, "no answer")
        raise refusal()

    step(Client(spool, submits=close))

    assert finals(spool) == ["final.1.json"]


def test_a_refused_attempt_ends_the_job(spool: Spool) -> None:
    def refuse(attempt: int) -> None:
        make_attempt(spool, attempt)
        spool.discard(JOB, attempt, "refused")
        raise InvalidJobException("no such queue")

    client = Client(spool, submits=refuse)

    step(client)

    assert client.step()
    assert [it.exit_code for it in client.published] == [75]
    assert "no such queue" in str(client.published[0].message)


def test_no_attempt_is_made_while_an_earlier_one_may_run(spool: Spool) -> None:
    make_attempt(spool, 2)
    spool.cancel_retry(JOB, 1)

    with pytest.raises(FileExistsError):
        spool.reserve(JOB, 3)

    assert spool.last_attempt(JOB) == 2
    assert finals(spool) == ["final.1.json"]


def test_an_attempt_that_was_revoked_before_it_was_locked_is_not_made(spool: Spool) -> None:
    spool.revoke(JOB, 2)

    with pytest.raises(FileExistsError):
        spool.reserve(JOB, 2)

    assert spool.pending_retry(JOB) is not None


def test_a_job_is_cancelled_without_the_batch_system(spool: Spool) -> None:
    client = Client(spool)
    client.loop.find_gone = lambda _: raise_(SubmitException("no answer"))
    spool.cancel_retry(JOB, 1)

    assert client.step()

    assert [it.state for it in client.published] == [JobState.CANCELED]
    assert client.followed is None


@pytest.mark.parametrize("refuses", [(), ("no such option",)], ids=["at present", "for good"])
def test_a_job_that_cannot_run_at_present_is_submitted_later(spool: Spool, refuses: Sequence[str]) -> None:
    client = Client(spool, refuses=refuses, checks=lambda _: raise_(InvalidJobException("not now")))

    step(client)

    assert client.followed is None
    client.checks = lambda _: None
    assert client.step()
    assert client.followed == (None if refuses else 2)
    # `track` of the engine publishes the state that the job had reached
    assert [it.state for it in client.published] == ([JobState.FAILED] if refuses else [])


CANCELLED = Stop(CANCEL, NOW)


def test_a_cancel_that_came_while_the_attempt_was_submitted_reaches_it(spool: Spool) -> None:
    client = Client(spool, submitted=lambda _: spool.stop(JOB, 1, CANCELLED))

    assert client.step()

    assert client.cancelled == [2]


def test_a_cancel_that_its_client_took_for_one_of_the_attempt_before_reaches_the_attempt(
    spool: Spool,
) -> None:
    client = Client(spool)
    make_attempt(spool, 2)
    spool.stop(JOB, 1, CANCELLED)

    assert client.step()

    assert client.cancelled == [2]
    assert spool.is_retry_cancelled(JOB, 2)


def test_a_cancel_reaches_an_attempt_that_was_made_while_it_was_recorded(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(spool)
    # no thread
    client.loop._threads = 99
    client.loop.add(JOB, {})
    record = spool.cancel_retry

    def make(job_id: str, attempt: int) -> None:
        record(job_id, attempt)
        client.followed = 2
        del client.loop._pending[JOB]

    monkeypatch.setattr(spool, "cancel_retry", make)

    assert client.loop.cancel(JOB)

    assert client.cancelled == [2]


def test_a_client_that_dies_while_it_ends_a_job_leaves_the_end(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.cancel_retry(JOB, 1)
    with monkeypatch.context() as patch:
        # the last of its accesses
        patch.setattr(spool, "revoke", lambda *_: raise_(OSError("it dies")))
        with pytest.raises(OSError, match="it dies"):
            spool.reserve(JOB, 2)
    client = Client(spool)

    assert client.step()

    assert [it.state for it in client.published] == [JobState.CANCELED]
    assert client.followed is None


@pytest.mark.parametrize("ended", [2, 4])
def test_no_attempt_is_made_of_a_job_that_another_client_has_ended(spool: Spool, ended: int) -> None:
    for attempt in range(2, ended):
        spool.revoke(JOB, attempt)
    os.close(spool.reserve(JOB, ended))
    spool.end_between_attempts(JOB, ended, 1, encode_status(FAILED))
    # as if this client had found the number free before
    Path(spool.folder(JOB), "claim.3").unlink(missing_ok=True)

    with pytest.raises(FileExistsError):
        spool.reserve(JOB, 3)


def test_an_attempt_that_could_not_be_followed_at_once_is_followed_later(spool: Spool) -> None:
    client = Client(spool, tracks=lambda: raise_(SubmitException("no thread")))
    step(client)
    tracked = list[int | None]()
    client.tracks = lambda: tracked.append(client.followed)

    assert client.step()

    assert tracked == [2]


def test_a_forked_child_submits_no_jobs_of_its_parent(spool: Spool) -> None:
    client = Client(spool)
    # as if its threads ran
    client.loop._threads = 99
    client.loop.add(JOB, {})

    pid = os.fork()
    if pid == 0:
        os._exit(JOB in client.loop or client.loop._threads > 0)

    assert os.waitpid(pid, 0)[1] == 0
    assert JOB in client.loop


def grow(spool: Spool, attributes: JobAttributes, memory: int, **grown: float) -> None:
    """Let the first attempt have requested this, and the record of its end ask for that."""
    spec = JobSpec("/bin/true", resources=ResourceSpecV1(memory=memory), attributes=attributes)
    intent = Path(spool.folder(JOB), "intent.1.json")
    first, *rest = intent.read_text().splitlines()
    content = {**json.loads(first), "spec": serialization.encode(spec)}
    intent.write_text("\n".join([json.dumps(content), *rest]))
    final = Path(spool.folder(JOB), "final.1.json")
    content = json.loads(final.read_text())
    content[RETRY_KEY] |= {name.removeprefix("to_"): it for name, it in grown.items()}
    final.write_text(json.dumps(content))


def test_what_grows_is_bounded_by_the_queue_that_the_job_names(spool: Spool) -> None:
    attributes = JobAttributes(queue_name="long", duration=timedelta(hours=2))
    grow(spool, attributes, 2 * 2**30, to_memory=4 * 2**30, to_duration=4 * 3600)
    client = Client(spool, queues=[attrs.evolve(QUEUE, name="short", node_memory=1), QUEUE])

    assert client.step()

    (spec,) = client.specs
    assert isinstance(spec.resources, ResourceSpecV1)
    assert (spec.resources.memory, spec.attributes.duration) == (3 * 2**30, timedelta(hours=3))


@pytest.mark.parametrize("requested", [3, 4], ids=["the limit", "over the limit"])
def test_a_job_that_had_the_most_of_its_queue_ends(spool: Spool, requested: int) -> None:
    grow(spool, JobAttributes(queue_name="long"), requested * 2**30, to_memory=8 * 2**30)
    client = Client(spool, queues=[QUEUE])
    other = Client(spool, queues=[])

    step(client)

    assert client.step()
    assert other.step()
    assert (client.specs, other.specs) == ([], [])
    for it in (*client.published, *other.published):
        assert (it.state, it.exit_code) == (JobState.FAILED, 75)
        assert "it could not be submitted again: the queue long has 3G on one node" in str(it.message)


def test_a_limit_of_what_does_not_grow_ends_no_job(spool: Spool) -> None:
    """The batch system has run the first attempt, whatever its queue is said to have."""
    attributes = JobAttributes(queue_name="long", duration=timedelta(hours=1))
    grow(spool, attributes, 4 * 2**30, to_duration=2 * 3600)
    client = Client(spool, queues=[QUEUE])

    assert client.step()

    (spec,) = client.specs
    assert isinstance(spec.resources, ResourceSpecV1)
    assert (spec.resources.memory, spec.attributes.duration) == (4 * 2**30, timedelta(hours=2))


@pytest.mark.parametrize(
    "attributes",
    [
        JobAttributes(),
        JobAttributes(queue_name="unknown"),
        JobAttributes(queue_name="long", reservation_id="mine"),
        JobAttributes(queue_name="long", custom_attributes={"slurm.qos": "big"}),
        JobAttributes(queue_name="long", custom_attributes={QUEUE_REASON: "it fits"}),
    ],
    ids=["no queue", "an unknown queue", "a reservation", "an option", "chosen by jpsi"],
)
def test_no_limit_of_a_queue_that_may_not_hold_counts(spool: Spool, attributes: JobAttributes) -> None:
    grow(spool, attributes, 2**30, to_memory=8 * 2**30)
    client = Client(spool, queues=[QUEUE])

    assert client.step()

    (spec,) = client.specs
    assert isinstance(spec.resources, ResourceSpecV1)
    assert spec.resources.memory == 8 * 2**30


def test_queues_are_asked_for_only_if_a_request_grows(spool: Spool) -> None:
    grow(spool, JobAttributes(queue_name="long"), 2**30)
    client = Client(spool)
    asked = list[Sequence[Queue]]()

    def ask() -> Sequence[Queue]:
        asked.append([QUEUE])
        return asked[0]

    client.loop.queues = ask

    assert client.step()
    assert not asked


@attrs.define(slots=True, eq=False)
class SteppingLoop(RetryLoop):
    """A loop whose steps the test takes."""

    steps: Callable[[str], bool] = lambda _: True

    def _step(self, job_id: str) -> bool:
        return self.steps(job_id)


def test_a_job_that_waits_for_the_batch_system_delays_no_other(spool: Spool) -> None:
    begun, may_go_on = threading.Event(), threading.Event()
    done = list[str]()

    def take_step(job_id: str) -> bool:
        if job_id == "slow":
            begun.set()
            assert may_go_on.wait(60)
        done.append(job_id)
        return True

    client = cast("Any", Client(spool))
    loop = SteppingLoop(client, spool, client, lambda _: False, steps=take_step)
    loop.add("slow", {})
    assert begun.wait(60)

    loop.add("quick", {})

    assert eventually(lambda: done == ["quick"])
    # a step of a job is over before the next one begins
    loop.add("slow", {})
    loop.add("other", {})
    assert eventually(lambda: done == ["quick", "other"])
    may_go_on.set()
    assert eventually(lambda: loop._threads == 0)
    assert done == ["quick", "other", "slow", "slow"]


@pytest.mark.parametrize(("delay", "gathered"), [(0, 1.0), (3, 1.0), (60, 15.0)])
def test_jobs_of_an_array_wait_for_others_even_if_their_ends_are_found_late(
    spool: Spool, monkeypatch: pytest.MonkeyPatch, delay: int, gathered: float
) -> None:
    client = cast("Any", Client(spool))
    monkeypatch.setattr(RetryLoop, "_start_thread", lambda _: None)
    loop = RetryLoop(client, spool, client, lambda _: False)
    record = Retry(reason="75", not_before=NOW + timedelta(seconds=delay), wait=delay).content

    loop.add("first", {RETRY_KEY: {**record, "array": "x"}})
    loop.add("second", {RETRY_KEY: {**record, "array": "x"}})
    loop.add("other", {RETRY_KEY: {**record, "array": "y"}})
    loop.add("single", {RETRY_KEY: record})
    waits = {job_id: it.due - it.earliest for job_id, it in loop._pending.items()}

    assert waits == pytest.approx({**dict.fromkeys(["first", "second", "other"], gathered), "single": 0.0})
    later = loop._pending["second"].due
    monkeypatch.setattr(retry_loop, "time", SimpleNamespace(monotonic=lambda: later))
    assert loop._next().keys() == {"single"}
    assert loop._next().keys() == {"first", "second"}

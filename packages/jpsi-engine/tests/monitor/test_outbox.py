"""The outbox: one thread at a time publishes statuses in order, and no thread waits for it."""

from __future__ import annotations

import threading

import pytest

from jpsi.model.states import JobState, JobStatus
from jpsi_engine.monitor.publisher import Outbox

PATIENCE = 20.0
STATUS = JobStatus(JobState.QUEUED)


def test_statuses_are_published_in_order() -> None:
    published: list[str] = []
    outbox = Outbox(lambda job_id, status: published.append(job_id))
    for number in range(5):
        outbox.put(str(number), STATUS)
    assert published == []

    outbox.flush()

    assert published == ["0", "1", "2", "3", "4"]


def test_statuses_put_while_another_thread_publishes_are_left_to_it() -> None:
    """The statuses of one job must not overtake each other."""
    published: list[tuple[str, int]] = []
    is_publishing, may_go_on = threading.Event(), threading.Event()

    def publish(job_id: str, status: JobStatus) -> None:
        published.append((job_id, threading.get_ident()))
        is_publishing.set()
        assert may_go_on.wait(PATIENCE)

    outbox = Outbox(publish)
    outbox.put("first", STATUS)
    thread = threading.Thread(target=outbox.flush)
    thread.start()
    assert is_publishing.wait(PATIENCE)

    outbox.put("second", STATUS)
    outbox.flush()
    may_go_on.set()
    thread.join(PATIENCE)

    assert published == [("first", thread.ident), ("second", thread.ident)]


def test_statuses_put_by_a_callback_are_published_after_it() -> None:
    published: list[str] = []

    def publish(job_id: str, status: JobStatus) -> None:
        if job_id == "first":
            outbox.put("third", STATUS)
            outbox.flush()
        published.append(job_id)

    outbox = Outbox(publish)
    outbox.put("first", STATUS)
    outbox.put("second", STATUS)

    outbox.flush()

    assert published == ["first", "second", "third"]


def test_failure_is_logged_and_costs_no_later_status(caplog: pytest.LogCaptureFixture) -> None:
    published: list[str] = []

    def publish(job_id: str, status: JobStatus) -> None:
        if job_id == "bad":
            msg = "bug"
            raise RuntimeError(msg)
        published.append(job_id)

    outbox = Outbox(publish)
    outbox.put("bad", STATUS)
    outbox.put("good", STATUS)

    outbox.flush()

    assert published == ["good"]
    assert "bad" in caplog.text


def test_an_interrupted_status_is_published_again() -> None:
    published: list[str] = []

    def publish(job_id: str, status: JobStatus) -> None:
        published.append(job_id)
        if len(published) == 1:
            raise KeyboardInterrupt

    outbox = Outbox(publish)
    outbox.put("a", STATUS)
    with pytest.raises(KeyboardInterrupt):
        outbox.flush()

    outbox.flush()

    assert published == ["a", "a"]


def test_nothing_is_lost_between_threads() -> None:
    published: list[str] = []
    outbox = Outbox(lambda job_id, status: published.append(job_id))

    def work(name: str) -> None:
        for number in range(500):
            outbox.put(f"{name} {number}", STATUS)
            outbox.flush()

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    for name in "abcd":
        assert [it for it in published if it.startswith(name)] == [
            f"{name} {number}" for number in range(500)
        ]

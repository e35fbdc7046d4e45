"""The end of a job, which all processes that follow it publish alike, whichever finds it first."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import attrs
import pytest

from jpsi.model.states import JobState, JobStatus, Reason
from jpsi_engine.monitor.publisher import Publisher
from jpsi_engine.scheduler.backend import Backend
from jpsi_engine.scheduler.job_view import JobView
from jpsi_engine.spool import encode_status
from jpsi_engine.spool.spool import Spool
from jpsi_engine.verdict.marker_verdict import add_staging_outcome, status_of_exit_marker
from jpsi_engine.verdict.markers import Marker, parse

_NOW = 1_000.0


@attrs.define(eq=False)
class Process:
    """One process that follows a job, with its publisher."""

    root: Path
    spool: Spool = attrs.field(init=False)
    publisher: Publisher = attrs.field(init=False)
    published: list[JobStatus] = attrs.field(factory=list, init=False)
    job: JobView = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.spool = Spool(self.root)
        self.spool.open()
        Path(self.spool.folder("a1")).mkdir(exist_ok=True)
        backend = cast("Backend", SimpleNamespace(name="toy", requeue_exit_codes=()))
        self.publisher = Publisher(
            backend,
            self.spool,
            grace=1,
            timeout_seconds=1,
            publish=lambda _, status: self.published.append(status),
        )
        self.job = JobView("a1", "a1", 1, "17")
        self.publisher.add(self.job)


def _exit() -> Marker:
    marker = parse("a1.1.exit.run.0", 10**18)
    assert marker is not None
    return marker


@pytest.fixture
def process(tmp_path: Path) -> Process:
    return Process(tmp_path)


def test_an_end_that_another_process_recorded_meanwhile_is_published(process: Process) -> None:
    """The other process has finished the stage out, or failed it, so no client waits for it."""
    process.spool.finish(
        "a1", 1, encode_status(add_staging_outcome(status_of_exit_marker(_exit()), "run-stage_out"))
    )

    with process.publisher.session():
        process.publisher.add_markers(process.job, [_exit()], _NOW)

    assert [(it.state, it.reason) for it in process.published] == [(JobState.FAILED, Reason.STAGING)]


def test_an_unrecorded_end_is_that_of_the_markers(process: Process) -> None:
    with process.publisher.session():
        process.publisher.add_markers(process.job, [_exit()], _NOW)

    assert [(it.state, it.exit_code) for it in process.published] == [(JobState.COMPLETED, 0)]


def test_a_held_end_is_published_as_it_was_recorded(process: Process) -> None:
    held: list[JobStatus] = []

    def holds(_: JobView, status: JobStatus) -> bool:
        held.append(status)
        return True

    process.publisher.is_held = holds
    with process.publisher.session():
        process.publisher.add_markers(process.job, [_exit()], _NOW)
    assert process.published == []
    process.spool.finish("a1", 1, encode_status(add_staging_outcome(held[0], "run-stage_out")))

    process.publisher.end(process.job, held[0])

    assert [it.reason for it in process.published] == [Reason.STAGING]
    assert process.publisher.get("a1") is None

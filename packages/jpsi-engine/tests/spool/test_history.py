"""The history of a job, from its files alone."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jpsi.model.states import JobState, JobStatus
from jpsi_engine.spool import encode_status
from jpsi_engine.spool.history import JobHistory
from jpsi_engine.spool.job_records import JobRecord
from jpsi_engine.spool.requeue_codes import EVERY_FAILURE
from jpsi_engine.verdict.marker_verdict import CANCEL, Stop
from jpsi_engine.verdict.markers import Marker

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = st.integers(0, 10**6).map(lambda n: int(NOW.timestamp() * 10**9) + n)
MARKERS = st.builds(
    lambda restart, fact, time: Marker(
        "a", 1, restart, fact[0], fact[1], fact[2], time, f"{restart}{fact}{time}"
    ),
    st.integers(0, 2),
    st.sampled_from(
        [
            ("active", "", None),
            ("signalled", "", None),
            ("exit", "run", 0),
            ("exit", "run", 7),
            ("exit", "stdin", 125),
        ]
    ),
    TIMES,
)
FINALS = st.builds(
    lambda state, seconds, code: encode_status(JobStatus(state, time=NOW + seconds, exit_code=code)),
    st.sampled_from([JobState.COMPLETED, JobState.FAILED, JobState.CANCELED]),
    st.timedeltas(timedelta(seconds=-1), timedelta(seconds=1)),
    st.none() | st.integers(0, 3),
)
WRITTEN = st.builds(
    lambda **fields: JobRecord(job_id="a", attempt=1, intent={"time": NOW.isoformat()}, **fields),
    native_id=st.none() | st.just("17"),
    is_revoked=st.booleans(),
    started_ns=st.none() | TIMES,
    markers=st.lists(MARKERS, max_size=5),
    stop=st.none() | st.just(Stop(CANCEL, NOW).content),
    final=st.none() | FINALS,
    is_stage_out_pending=st.booleans(),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(WRITTEN, st.none() | st.sampled_from([frozenset(), frozenset({7}), EVERY_FAILURE]), st.booleans())
def test_the_last_status_ends_the_history(written: JobRecord, codes: Any, is_gone: bool) -> None:
    past = JobHistory(written, codes)

    history = past.history

    assert past.status == history[-1]
    assert history[0] == JobStatus(JobState.NEW, time=NOW)
    assert sorted(history, key=lambda status: status.time) == list(history)
    assert all(later.state.is_greater_than(earlier.state) for earlier, later in itertools.pairwise(history))
    assert not (past.status.final and past.remark(is_gone=is_gone))
    if written.final is not None:
        assert past.status.state.value == written.final["state"]


def test_an_end_before_the_claim_has_the_time_of_the_claim_in_the_history_too() -> None:
    final = encode_status(JobStatus(JobState.COMPLETED, time=NOW))
    started_ns = int(NOW.timestamp()) * 10**9 + 5000
    intent = {"time": NOW.isoformat()}
    record = JobRecord(
        job_id="a", attempt=1, intent=intent, native_id="17", started_ns=started_ns, markers=[], final=final
    )

    past = JobHistory(record, frozenset())

    assert past.history[-1] == past.status
    assert past.status.time > NOW


@pytest.mark.parametrize(
    ("more", "remark"),
    [
        ({}, "its cancellation was requested"),
        ({"repeats": 2}, "its cancellation was requested, and 2 more times, as it still ran"),
    ],
    ids=["once", "again"],
)
def test_a_stop_record_does_not_prove_that_the_job_was_submitted(more: dict[str, int], remark: str) -> None:
    stop = {"why": "cancel", "time": NOW.isoformat(), **more}
    written = JobRecord(
        job_id="a", attempt=1, intent={"time": NOW.isoformat()}, native_id="17", markers=[], stop=stop
    )

    past = JobHistory(written, frozenset())

    assert (past.status.state, past.remark(is_gone=False)) == (JobState.QUEUED, remark)


def test_a_job_is_not_final_before_its_stage_out_is_complete() -> None:
    times = int(NOW.timestamp() * 10**9)
    markers = [
        Marker("a", 1, 0, "active", "", None, times, "a.1.active"),
        Marker("a", 1, 0, "exit", "run", 0, times + 1, "a.1.exit.run.0"),
    ]
    written = JobRecord(
        job_id="a",
        attempt=1,
        intent={"time": NOW.isoformat()},
        native_id="17",
        markers=markers,
        is_stage_out_pending=True,
    )

    past = JobHistory(written, frozenset())

    assert past.status.state is JobState.ACTIVE
    assert past.remark(is_gone=False) == (
        "it ended with exit code 0; its stage out runs, or waits to be started"
    )
    in_progress = JobHistory(
        attrs.evolve(written, stage_out_progress="staging out a: 1 bytes of 2 bytes"), frozenset()
    )
    assert (in_progress.remark(is_gone=False) or "").endswith(
        "or waits to be started; staging out a: 1 bytes of 2 bytes"
    )
    assert (
        JobHistory(attrs.evolve(written, is_stage_out_pending=False), frozenset()).status.state
        is JobState.COMPLETED
    )


def test_the_native_id_of_an_element_is_spelled_when_it_is_asked_for() -> None:
    """Its plugin is loaded for that, which a list of arrays does not need."""
    spelled: list[str] = []
    written = JobRecord(
        job_id="a",
        attempt=1,
        intent={"time": NOW.isoformat()},
        native_id=lambda: spelled.append("7_1") or spelled[-1],
    )

    state, before = JobHistory(written, frozenset()).status.state, list(spelled)

    assert (state, before, written.native_id) == (JobState.QUEUED, [], "7_1")

"""The verdict on a job of a batch system: its status for each evidence, in any order of arrival."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.contract.observation import Observation
from jpsi.model.states import Evidence, JobState, JobStatus, Reason
from jpsi_engine.verdict.batch_verdict import Facts, judge
from jpsi_engine.verdict.marker_verdict import CANCEL, Stop
from jpsi_engine.verdict.markers import Marker, parse

QUEUED, ACTIVE = JobState.QUEUED, JobState.ACTIVE
COMPLETED, FAILED, CANCELED = JobState.COMPLETED, JobState.FAILED, JobState.CANCELED
MARKER, QUEUE, ACCOUNTING, ABSENCE = Evidence.MARKER, Evidence.QUEUE, Evidence.ACCOUNTING, Evidence.ABSENCE

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STOP = Stop(CANCEL, NOW)
WAITING_STOP = Stop.from_content(Stop(CANCEL, NOW, was_waiting=True).content)
LATE_STOP = Stop(CANCEL, NOW, is_late=True)
# The clock of the client that cancels may have any time.
HOUR = timedelta(hours=1)
REQUEUE = 99


def left(what: str, at: int = 0, restart: int = 0) -> Marker:
    """Return a marker that the runner made so many seconds after the start."""
    run = f"{restart}." if restart else ""
    marker = parse(f"a1.1.{run}{what}", int((NOW.timestamp() + at) * 1_000_000_000))
    assert marker is not None
    return marker


def observed(state: JobState | None, code: int | None = None, reason: Reason | None = None) -> Observation:
    return Observation(state=state, native_state="WORD", exit_code=code, reason=reason, ran=None)


def facts(**known: Any) -> Facts:
    return Facts(system="sys", now=NOW, requeue_exit_codes={REQUEUE}, **known)


STARTED = left("active", 1)
TERM = left("signalled", 2)
GONE = {"unmentioned": True, "absent": True, "unaccounted": True}
# The observation of another job that has the native id now.
FOREIGN_JOB = Observation(state=COMPLETED, native_state="DONE", tag="", exit_code=0)
LONG_GONE = {**GONE, "overdue": True}


def ended(what: str) -> list[Marker]:
    return [STARTED, left(f"exit.{what}", 3)]


def stopped(what: str) -> list[Marker]:
    return [STARTED, TERM, left(f"exit.{what}", 3)]


#: The facts and the verdict: state, exit code, reason, evidence.
VERDICTS: dict[str, tuple[dict[str, Any], Any]] = {
    "nothing": ({}, None),
    "waits": ({"queued": observed(QUEUED)}, (QUEUED, None, None, QUEUE)),
    "runs by the queue": ({"queued": observed(ACTIVE)}, (ACTIVE, None, None, QUEUE)),
    "runs, says the job": ({"markers": [STARTED]}, (ACTIVE, None, None, MARKER)),
    "runs and was cancelled": ({"markers": [STARTED, TERM], "stop": STOP}, (ACTIVE, None, None, MARKER)),
    "in an unknown state": ({"queued": observed(None)}, None),
    "ended well": ({"markers": ended("run.0")}, (COMPLETED, 0, None, MARKER)),
    "ended badly": ({"markers": ended("run.7")}, (FAILED, 7, Reason.EXIT_CODE, MARKER)),
    "ended before it was cancelled": (
        {"markers": ended("run.0"), "stop": LATE_STOP, "queued": observed(CANCELED)},
        (COMPLETED, 0, None, MARKER),
    ),
    "cancelled by a clock that is an hour ahead, and its runner ended before the signal came": (
        {"markers": ended("run.0"), "stop": Stop(CANCEL, NOW + HOUR), "queued": observed(CANCELED)},
        (CANCELED, 0, Reason.CANCELLED, QUEUE),
    ),
    "ended before it was cancelled by a clock that is an hour behind": (
        {
            "markers": ended("run.0"),
            "stop": Stop(CANCEL, NOW - HOUR, is_late=True),
            "queued": observed(CANCELED),
        },
        (COMPLETED, 0, None, MARKER),
    ),
    "signalled by us, and the clock went back by an hour before it ended": (
        {
            "markers": [STARTED, TERM, left("exit.run.0", 3 - 3600)],
            "queued": observed(COMPLETED, 0),
            "stop": STOP,
        },
        (CANCELED, 0, Reason.CANCELLED, MARKER),
    ),
    "ended well, and the queue is late": (
        {"markers": ended("run.0"), "queued": observed(ACTIVE)},
        (COMPLETED, 0, None, MARKER),
    ),
    "could not be set up": ({"markers": ended("directory.125")}, (FAILED, 125, Reason.SETUP, MARKER)),
    # An exit after a signal is provisional, and so is one after a cancellation.
    "ended after it was cancelled, with no evidence of the cause": (
        {"markers": ended("run.0"), "stop": STOP},
        (ACTIVE, None, None, MARKER),
    ),
    "cancelled, and its runner ended before the signal came": (
        {"markers": ended("run.0"), "stop": STOP, "queued": observed(CANCELED)},
        (CANCELED, 0, Reason.CANCELLED, QUEUE),
    ),
    "ended before the cancel reached it": (
        {"markers": ended("run.0"), "stop": STOP, "queued": observed(COMPLETED, 0)},
        (COMPLETED, 0, None, MARKER),
    ),
    "cancelled, ended unsignalled, and the queue has forgotten it": (
        {"markers": ended("run.7"), "stop": STOP, **GONE},
        (FAILED, 7, Reason.EXIT_CODE, MARKER),
    ),
    "signalled, and nothing is known of why": ({"markers": stopped("run.0")}, (ACTIVE, None, None, MARKER)),
    "signalled, and the queue still has it": (
        {"markers": stopped("run.0"), "queued": observed(ACTIVE)},
        (ACTIVE, None, None, MARKER),
    ),
    "signalled by scancel, says the queue": (
        {"markers": stopped("run.0"), "queued": observed(CANCELED)},
        (CANCELED, 0, Reason.CANCELLED, QUEUE),
    ),
    "signalled by the time limit, says the accounting": (
        {"markers": stopped("run.0"), "accounted": observed(FAILED, 0, Reason.TIMEOUT), "absent": True},
        (FAILED, 0, Reason.TIMEOUT, ACCOUNTING),
    ),
    "signalled by us, and the system calls it done": (
        {"markers": stopped("run.0"), "queued": observed(COMPLETED, 0), "stop": STOP},
        (CANCELED, 0, Reason.CANCELLED, MARKER),
    ),
    "signalled by an unknown process, ended with its own code": (
        {"markers": stopped("run.3"), "queued": observed(FAILED, 3)},
        (FAILED, 3, Reason.EXIT_CODE, MARKER),
    ),
    "a process of it was killed for its memory, and then it": (
        {"markers": ended("run-oom.137"), **GONE},
        (FAILED, 137, Reason.OUT_OF_MEMORY, MARKER),
    ),
    "a process of it was killed for its memory, and later the system ended it": (
        {"markers": stopped("run-oom.137"), **GONE},
        (FAILED, 137, Reason.SIGNAL, MARKER),
    ),
    "signalled, and the queue has forgotten it": (
        {"markers": stopped("run.3"), **GONE},
        (FAILED, 3, Reason.EXIT_CODE, MARKER),
    ),
    "cancelled, and the queue has forgotten it": (
        {"markers": stopped("run.3"), "stop": STOP, **GONE},
        (CANCELED, 3, Reason.CANCELLED, MARKER),
    ),
    "killed by a signal, and nothing is known of why": (
        {"markers": ended("run.137")},
        (ACTIVE, None, None, MARKER),
    ),
    "killed for its memory": (
        {"markers": ended("run.137"), "queued": observed(FAILED, 0, Reason.EXIT_CODE)},
        (FAILED, 137, Reason.SIGNAL, MARKER),
    ),
    "exits with a requeue code": ({"markers": ended(f"run.{REQUEUE}")}, (ACTIVE, None, None, MARKER)),
    "exited with a requeue code and was not requeued": (
        {"markers": ended(f"run.{REQUEUE}"), "queued": observed(FAILED, REQUEUE)},
        (FAILED, REQUEUE, Reason.EXIT_CODE, MARKER),
    ),
    "is requeued": ({"markers": stopped("run.0"), "queued": observed(QUEUED)}, (ACTIVE, None, None, MARKER)),
    "was put back and runs": (
        {"markers": [*stopped("run.0"), left("active", 9, restart=1)]},
        (ACTIVE, None, None, MARKER),
    ),
    "the second run decides": (
        {"markers": [*ended("run.7"), left("active", 9, restart=1), left("exit.run.0", 10, restart=1)]},
        (COMPLETED, 0, None, MARKER),
    ),
    "not staged out": ({"markers": ended("run-stage_out.0")}, (FAILED, 0, Reason.STAGING, MARKER)),
    "signalled, ended well, and not staged out": (
        {"markers": stopped("run-stage_out.0"), "queued": observed(FAILED, 125)},
        (FAILED, 0, Reason.STAGING, MARKER),
    ),
    # Without a marker of its end.
    "cancelled while it waited": (
        {"queued": Observation(state=CANCELED, native_state="WORD", ran=False)},
        (CANCELED, None, Reason.CANCELLED, QUEUE),
    ),
    "waited until jpsi cancelled it": (
        {"queued": observed(CANCELED), "stop": WAITING_STOP},
        (CANCELED, None, Reason.CANCELLED, QUEUE),
    ),
    "began just before jpsi cancelled it, says the job": (
        {"queued": observed(CANCELED), "stop": WAITING_STOP, "markers": [STARTED]},
        (ACTIVE, None, None, MARKER),
    ),
    "began just before jpsi cancelled it, says the queue": (
        {"queued": attrs.evolve(observed(CANCELED), ran=True), "stop": WAITING_STOP},
        None,
    ),
    "ran before jpsi cancelled it": ({"queued": observed(CANCELED), "stop": STOP}, None),
    "ended, and its marker may come": ({"queued": observed(COMPLETED, 0)}, None),
    "ended, and its marker never came": (
        {"queued": observed(COMPLETED, 0), "settled": True},
        (COMPLETED, 0, None, QUEUE),
    ),
    "ended, and it never began": (
        {"queued": observed(COMPLETED, 0), "settled": True, "is_traceless": True},
        (FAILED, None, Reason.LOST, QUEUE),
    ),
    "failed without a marker": (
        {"markers": [STARTED], "queued": observed(FAILED, 7), "settled": True},
        (FAILED, 7, Reason.EXIT_CODE, QUEUE),
    ),
    "the runner could not even begin": (
        {"queued": observed(FAILED, 125), "settled": True},
        (FAILED, 125, Reason.SETUP, QUEUE),
    ),
    "lost its node": (
        {"markers": [STARTED], "queued": observed(FAILED, 0, Reason.NODE_FAIL), "settled": True},
        (FAILED, 0, Reason.NODE_FAIL, QUEUE),
    ),
    "called done without a code": (
        {"queued": observed(COMPLETED), "settled": True},
        (FAILED, None, Reason.LOST, QUEUE),
    ),
    "called failed with the code 0": (
        {"queued": observed(FAILED, 0), "settled": True},
        (FAILED, None, None, QUEUE),
    ),
    "gone for a moment": ({"markers": [STARTED], "absent": True}, (ACTIVE, None, None, MARKER)),
    "gone for good": ({"markers": [STARTED], **LONG_GONE}, (FAILED, None, Reason.LOST, ABSENCE)),
    "gone for good before it ran": ({**LONG_GONE}, (FAILED, None, Reason.LOST, ABSENCE)),
    "a cancelled element that its array does not report": (
        {"absent": True, "dropped": True, "stop": STOP},
        (CANCELED, None, Reason.CANCELLED, ABSENCE),
    ),
    "an element of which its array knows nothing": ({"absent": True, "dropped": True}, None),
    "an element that began, and of which its array knows nothing": (
        {"absent": True, "dropped": True, "stop": STOP, "markers": [STARTED]},
        (ACTIVE, None, None, MARKER),
    ),
    "cancelled and gone before it ran": (
        {"stop": STOP, **LONG_GONE},
        (CANCELED, None, Reason.CANCELLED, ABSENCE),
    ),
    # Jobs that jpsi did not submit.
    "foreign and done": (
        {"has_runner": False, "queued": observed(COMPLETED)},
        (COMPLETED, None, None, QUEUE),
    ),
    "foreign and unknown": (
        {"has_runner": False, **LONG_GONE},
        (FAILED, None, Reason.ATTACH_UNVERIFIED, ABSENCE),
    ),
    "foreign, and polls have not covered the grace": ({"has_runner": False, **GONE}, None),
    "foreign, and no longer mentioned": (
        {"has_runner": False, "queued": observed(ACTIVE), "unmentioned": True},
        (ACTIVE, None, None, QUEUE),
    ),
    "foreign, and the system says that there is none": (
        {"has_runner": False, **GONE, "denied": True},
        (FAILED, None, Reason.ATTACH_UNVERIFIED, ABSENCE),
    ),
    "denied, while a marker may still show": ({**GONE, "denied": True}, None),
    "not mentioned for a moment": ({"unmentioned": True, "absent": True}, None),
    "left out of one answer, for however long": (
        {"unmentioned": True, "unaccounted": True, "overdue": True},
        None,
    ),
    "left out of one answer after an exit that may not be the last word": (
        {"markers": stopped("run.0"), "unmentioned": True, "unaccounted": True, "overdue": True},
        (ACTIVE, None, None, MARKER),
    ),
    "its native id is a foreign job's": (
        {**LONG_GONE, "foreign_job": FOREIGN_JOB},
        (FAILED, None, Reason.LOST, ABSENCE),
    ),
    "its native id is a foreign job's for a moment": ({**GONE, "foreign_job": FOREIGN_JOB}, None),
    "cancelled, and its native id was reused": (
        {**LONG_GONE, "foreign_job": FOREIGN_JOB, "stop": STOP},
        (FAILED, None, Reason.LOST, ABSENCE),
    ),
    "ended by itself, and its native id is a foreign job's": (
        {**LONG_GONE, "foreign_job": FOREIGN_JOB, "markers": ended("run.7")},
        (FAILED, 7, Reason.EXIT_CODE, MARKER),
    ),
}


@pytest.mark.parametrize(("known", "expected"), VERDICTS.values(), ids=VERDICTS)
def test_verdict(known: dict[str, Any], expected: object) -> None:
    status = judge(facts(**known))

    found = None if status is None else (status.state, status.exit_code, status.reason, status.evidence)
    assert found == expected


@pytest.mark.parametrize(
    ("what", "state"), [([], ACTIVE), (["exit.run.0"], COMPLETED), (["exit.run.7"], FAILED)]
)
def test_requeue_stays_in_the_metadata_to_the_end(what: list[str], state: JobState) -> None:
    second = [left("active", 9, restart=1), *(left(it, 10, restart=1) for it in what)]

    status = judge(facts(markers=[*stopped("run.5"), *second]))

    assert status is not None
    assert (status.state, status.metadata) == (state, {"requeued": True, "time.source": "marker"})


def test_failed_stage_out_is_in_the_metadata_for_any_end_of_the_job() -> None:
    status = judge(facts(markers=stopped("run-stage_out.0"), queued=observed(CANCELED)))

    assert status is not None
    assert (status.state, status.metadata["stage_out"]) == (CANCELED, "failed")


@pytest.mark.clause("state-metadata")
def test_status_names_the_job_that_has_the_native_id_now() -> None:
    foreign_job = Observation(state=ACTIVE, native_state="RUNNING", tag="", submitted=NOW)

    status = judge(facts(**LONG_GONE, foreign_job=foreign_job))

    assert status is not None
    assert status.message is not None
    assert "its native id now belongs to another job, submitted at 2026-01-01T00:00:00" in status.message
    assert status.metadata["sys.foreign_job.state"] == "RUNNING"


def test_the_native_state_is_kept() -> None:
    observation = Observation(
        state=QUEUED, native_state="PD", message="waits for nodes", details={"sys.reason": "Resources"}
    )

    status = judge(facts(queued=observation))

    assert status is not None
    assert status.message == "waits for nodes"
    assert status.metadata == {
        "sys.state": "PD",
        "sys.reason": "Resources",
        "time.source": "observation",
    }


EARLIER = NOW - HOUR


def at(state: JobState, time: datetime | None) -> Observation:
    return Observation(state=state, native_state="WORD", exit_code=0 if state.final else None, time=time)


@pytest.mark.clause("status-time")
@pytest.mark.parametrize(
    ("known", "source", "time"),
    {
        "queue": ({"queued": at(QUEUED, EARLIER)}, "queue", EARLIER),
        "queue without a time": ({"queued": at(QUEUED, None)}, "observation", NOW),
        "accounting": (
            {"has_runner": False, "accounted": at(COMPLETED, EARLIER), **GONE},
            "accounting",
            EARLIER,
        ),
        "accounting without a time": (
            {"has_runner": False, "accounted": at(COMPLETED, None), **GONE},
            "observation",
            NOW,
        ),
        "marker": ({"markers": ended("run.0")}, "marker", NOW + timedelta(seconds=3)),
        "queue's cause, at the marker's time": (
            {"markers": stopped("run.0"), "queued": observed(CANCELED)},
            "marker",
            NOW + timedelta(seconds=3),
        ),
        "start": ({"markers": [STARTED]}, "marker", NOW + timedelta(seconds=1)),
        "gone": (LONG_GONE, "observation", NOW),
    }.values(),
    ids=str,
)
def test_status_names_the_source_of_its_time(known: dict[str, Any], source: str, time: datetime) -> None:
    status = judge(facts(**known))

    assert status is not None
    assert (status.metadata["time.source"], status.time) == (source, time)


codes = st.sampled_from([0, 1, 7, REQUEUE, 125, 137, 143, 255])
observed_ends = st.builds(
    observed,
    st.sampled_from([COMPLETED, FAILED, CANCELED]),
    codes,
    st.sampled_from([None, Reason.EXIT_CODE, Reason.TIMEOUT, Reason.NODE_FAIL]),
)


@st.composite
def runs(draw: st.DrawFn) -> list[Marker]:
    """Draw the markers of an attempt: earlier runs that a signal ended, and the last one."""
    markers, time = [], 0
    for restart in range(draw(st.integers(0, 2)) + 1):
        if restart:
            time += 2
            markers += [left("signalled", time - 1, restart - 1), left("exit.run.143", time, restart - 1)]
        time += 1
        markers.append(left("active", time, restart))
    for what in draw(st.sampled_from([[], ["signalled"], ["exit"], ["signalled", "exit"]])):
        time += 1
        name = f"exit.run.{draw(codes)}" if what == "exit" else what
        markers.append(left(name, time, markers[-1].restart))
    return markers


@pytest.mark.clause("state-order-kept")
@given(runs(), st.none() | st.just(STOP), observed_ends, st.data())
def test_final_verdict_does_not_depend_on_the_order_of_the_evidence(
    markers: list[Marker], stop: Stop | None, end: Observation, data: st.DataObject
) -> None:
    """Evidence that arrives after a final verdict would not have changed it."""
    last = markers[-1].restart
    first = next(index for index, marker in enumerate(markers) if marker.restart == last)
    count = data.draw(st.integers(first + 1, len(markers)), label="markers that show")
    # The queue reports the end of the last run before or after its markers show; the verdict waits for them.
    queued = data.draw(st.sampled_from([None, observed(ACTIVE), end]), label="report of the queue")

    early = judge(facts(markers=markers[:count], stop=stop, queued=queued, settled=count == len(markers)))
    late = judge(facts(markers=markers, stop=stop, queued=end, settled=True))

    assert late is not None
    assert late.final
    if early is not None and early.final:
        assert outcome(early) == outcome(late)


def outcome(status: JobStatus | None) -> tuple[object, ...]:
    assert status is not None
    return status.state, status.exit_code, status.reason


def test_a_job_cancelled_since_a_dependency_was_not_met_says_so() -> None:
    stop = Stop(CANCEL, NOW, unmet="fit has not completed")

    status = judge(facts(stop=Stop.from_content(stop.content), queued=observed(CANCELED), settled=True))

    assert status is not None
    assert (status.state, status.reason, status.message) == (
        *(CANCELED, Reason.DEPENDENCY),
        "fit has not completed",
    )
    completed = judge(facts(stop=stop, markers=ended("run.0"), queued=observed(COMPLETED), settled=True))
    assert completed is not None
    assert (completed.state, completed.reason) == (COMPLETED, None)

"""The verdict on a job of `local`: its status for each combination of facts, in any order."""

from __future__ import annotations

import itertools
import os
import signal
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.model.states import Evidence, JobState, JobStatus, Reason
from jpsi_engine.verdict.exit_phases import CANCEL, TIMEOUT
from jpsi_engine.verdict.marker_verdict import ProcessEnd, Stop, datetime_from_ns, judge_process
from jpsi_engine.verdict.markers import Marker, parse

COMPLETED, FAILED, CANCELED = JobState.COMPLETED, JobState.FAILED, JobState.CANCELED
MARKER, PROCESS, ABSENCE = Evidence.MARKER, Evidence.PROCESS, Evidence.ABSENCE

START = datetime(2026, 1, 1, tzinfo=UTC)


def marker_of(what: str, at: int = 0) -> Marker:
    """Return a marker of the last run, made so many seconds after the start."""
    marker = parse(f"a1.1.{what}", int((START.timestamp() + at) * 1_000_000_000))
    assert marker is not None
    return marker


def stop(why: str = CANCEL) -> Stop:
    return Stop(why, START)


def end(wait_status: int | None = None, at: int = 9) -> ProcessEnd:
    return ProcessEnd(START + timedelta(seconds=at), wait_status)


def exited(code: int) -> ProcessEnd:
    return end(code << 8)


def killed(number: int, *, dumped: bool = False) -> ProcessEnd:
    return end(number | (0x80 if dumped else 0))


phases = st.sampled_from(
    ["run", "post_launch", "pre_launch", "directory", "stdin", "stdout", "stderr", "executable", "new"]
)
markers = st.lists(
    st.builds(
        marker_of,
        st.just("signalled") | st.builds("exit.{}.{}".format, phases, st.integers(0, 255)),
        st.integers(0, 4),
    ),
    max_size=4,
)
stops = st.none() | st.sampled_from([CANCEL, TIMEOUT]).map(stop)
wait_statuses = st.none() | st.integers(0, 255).map(lambda code: code << 8) | st.integers(1, 64)
gones = st.none() | wait_statuses.map(end)

HOUR = 3600
TERM = marker_of("signalled", 1)
LATE_TERM = marker_of("signalled", 3)


def ended(what: str) -> Marker:
    return marker_of(f"exit.{what}", 2)


#: The facts and the verdict: state, exit code, reason, evidence.
VERDICTS = {
    "nothing": ([], None, None, None),
    "signalled and running": ([TERM], None, None, None),
    "stopped and running": ([TERM], stop(), None, None),
    "stopped, its shell ended, its processes have not": ([TERM, ended("run.0")], stop(), None, None),
    "ran well": ([ended("run.0")], None, None, (COMPLETED, 0, None, MARKER)),
    "ran well, and is gone": ([ended("run.0")], None, end(), (COMPLETED, 0, None, MARKER)),
    "marker and kernel disagree": ([ended("run.0")], None, killed(9), (COMPLETED, 0, None, MARKER)),
    "ended twice": ([ended("run.0"), marker_of("exit.run.7", 3)], None, None, (COMPLETED, 0, None, MARKER)),
    "ran badly": ([ended("run.7")], None, None, (FAILED, 7, Reason.EXIT_CODE, MARKER)),
    "code 128": ([ended("run.128")], None, None, (FAILED, 128, Reason.EXIT_CODE, MARKER)),
    "code 255": ([ended("run.255")], None, None, (FAILED, 255, Reason.EXIT_CODE, MARKER)),
    "ended by a signal": ([ended("run.139")], None, None, (FAILED, 139, Reason.SIGNAL, MARKER)),
    "signalled by others": ([TERM, ended("run.143")], None, None, (FAILED, 143, Reason.SIGNAL, MARKER)),
    "signalled by others, ran well": ([TERM, ended("run.0")], None, None, (COMPLETED, 0, None, MARKER)),
    "post_launch failed": ([ended("post_launch.0")], None, None, (COMPLETED, 0, None, MARKER)),
    "both failed": ([ended("post_launch.7")], None, None, (FAILED, 7, Reason.EXIT_CODE, MARKER)),
    "pre_launch failed": ([ended("pre_launch.3")], None, None, (FAILED, 3, Reason.PRE_LAUNCH, MARKER)),
    "no directory": ([ended("directory.125")], None, None, (FAILED, 125, Reason.SETUP, MARKER)),
    "no input": ([ended("stdin.125")], None, None, (FAILED, 125, Reason.SETUP, MARKER)),
    "no output": ([ended("stdout.125")], None, None, (FAILED, 125, Reason.SETUP, MARKER)),
    "no errors": ([ended("stderr.125")], None, None, (FAILED, 125, Reason.SETUP, MARKER)),
    "no executable": ([ended("executable.127")], None, None, (FAILED, 127, Reason.EXECUTABLE, MARKER)),
    "not staged in": ([ended("stage_in.125")], None, None, (FAILED, 125, Reason.STAGING, MARKER)),
    "ran well, not staged out": ([ended("run-stage_out.0")], None, None, (FAILED, 0, Reason.STAGING, MARKER)),
    "neither ran well nor staged out": (
        [ended("run-stage_out.7")],
        None,
        None,
        (FAILED, 7, Reason.EXIT_CODE, MARKER),
    ),
    "no executable, and nothing to stage out": (
        [ended("executable-stage_out.127")],
        None,
        None,
        (FAILED, 127, Reason.EXECUTABLE, MARKER),
    ),
    "ran well, not cleaned up": ([ended("run-cleanup.0")], None, None, (COMPLETED, 0, None, MARKER)),
    "cancelled": ([TERM, ended("run.143")], stop(), end(), (CANCELED, 143, Reason.CANCELLED, MARKER)),
    "cancelled and well": (
        [TERM, ended("run.0")],
        stop(),
        end(),
        (CANCELED, 0, Reason.CANCELLED, MARKER),
    ),
    "cancelled in pre_launch": (
        [TERM, ended("pre_launch.143")],
        stop(),
        end(),
        (CANCELED, 143, Reason.CANCELLED, MARKER),
    ),
    "cancelled by KILL": ([TERM], stop(), killed(9), (CANCELED, 137, Reason.CANCELLED, PROCESS)),
    "cancelled before it began": ([], stop(), killed(15), (CANCELED, 143, Reason.CANCELLED, PROCESS)),
    "cancelled, code unknown": ([], stop(), end(), (CANCELED, None, Reason.CANCELLED, PROCESS)),
    "ended before the cancel": ([ended("run.0")], stop(), end(), (COMPLETED, 0, None, MARKER)),
    "failed before the cancel": (
        [ended("run.7")],
        stop(),
        end(),
        (FAILED, 7, Reason.EXIT_CODE, MARKER),
    ),
    "ended and then signalled": (
        [ended("run.0"), LATE_TERM],
        stop(),
        end(),
        (COMPLETED, 0, None, MARKER),
    ),
    "cancelled, and the clock went back by an hour before it ended": (
        [TERM, marker_of("exit.run.0", 2 - HOUR)],
        stop(),
        end(),
        (CANCELED, 0, Reason.CANCELLED, MARKER),
    ),
    "cancelled, and the clock went forward by an hour before it ended": (
        [TERM, marker_of("exit.run.0", 2 + HOUR)],
        stop(),
        end(),
        (CANCELED, 0, Reason.CANCELLED, MARKER),
    ),
    "out of time": (
        [TERM, ended("run.143")],
        stop(TIMEOUT),
        end(),
        (FAILED, 143, Reason.TIMEOUT, MARKER),
    ),
    "out of time, KILL": ([TERM], stop(TIMEOUT), killed(9), (FAILED, 137, Reason.TIMEOUT, PROCESS)),
    "in time after all": ([ended("run.0")], stop(TIMEOUT), end(), (COMPLETED, 0, None, MARKER)),
    "gone without a trace": ([], None, end(), (FAILED, None, Reason.LOST, ABSENCE)),
    "signalled and gone": ([TERM], None, end(), (FAILED, None, Reason.LOST, ABSENCE)),
    "runner killed": ([], None, killed(9), (FAILED, 137, Reason.SIGNAL, PROCESS)),
    "runner crashed": ([], None, killed(11, dumped=True), (FAILED, 139, Reason.SIGNAL, PROCESS)),
    "runner could leave no marker": ([], None, exited(0), (COMPLETED, 0, None, PROCESS)),
    "runner could leave no marker, job failed": ([], None, exited(7), (FAILED, 7, Reason.EXIT_CODE, PROCESS)),
}


@pytest.mark.parametrize(("markers", "stopped", "is_gone", "verdict"), VERDICTS.values(), ids=VERDICTS)
def test_verdict(
    markers: list[Marker],
    stopped: Stop | None,
    is_gone: ProcessEnd | None,
    verdict: tuple[JobState, int | None, Reason | None, Evidence] | None,
) -> None:
    status = judge_process(markers, stopped, is_gone)

    found = status and (status.state, status.exit_code, status.reason, status.evidence)
    assert found == verdict


#: The ends of a process to which jpsi only attached.
ATTACHED = {
    "running": (None, None, None),
    "ended well": (None, exited(0), (COMPLETED, 0, None, PROCESS)),
    "ended badly": (None, exited(7), (FAILED, 7, Reason.EXIT_CODE, PROCESS)),
    "killed": (None, killed(9), (FAILED, 137, Reason.SIGNAL, PROCESS)),
    "cancelled": (stop(), killed(15), (CANCELED, 143, Reason.CANCELLED, PROCESS)),
    "stopped and running": (stop(), None, None),
    "gone": (None, end(), (FAILED, None, Reason.LOST, ABSENCE)),
}


@pytest.mark.parametrize(("stopped", "is_gone", "verdict"), ATTACHED.values(), ids=ATTACHED)
def test_verdict_on_a_process_without_runner(
    stopped: Stop | None,
    is_gone: ProcessEnd | None,
    verdict: tuple[JobState, int | None, Reason | None, Evidence] | None,
) -> None:
    status = judge_process([], stopped, is_gone, has_runner=False)

    found = status and (status.state, status.exit_code, status.reason, status.evidence)
    assert found == verdict


@pytest.mark.parametrize("stopped", [None, stop()], ids=["by itself", "cancelled"])
@pytest.mark.parametrize("what", ["stage_out", "cleanup"])
def test_failed_staging_phase_is_in_the_metadata(what: str, stopped: Stop | None) -> None:
    status = judge_process([TERM, ended(f"post_launch-{what}.0")], stopped, end())

    assert status is not None
    assert status.metadata[what] == "failed"
    assert (status.state is CANCELED) is (stopped is not None)


@given(markers, stops, gones)
def test_verdict_does_not_depend_on_the_order_of_the_markers(
    markers: list[Marker], stopped: Stop | None, is_gone: ProcessEnd | None
) -> None:
    verdicts = {
        repr(judge_process(list(order), stopped, is_gone)) for order in itertools.permutations(markers)
    }

    assert len(verdicts) == 1


def test_verdict_is_the_same_for_any_collection_of_markers() -> None:
    facts = [TERM, ended("run.143")]

    assert judge_process(iter(facts), stop(), end()) == judge_process(facts, stop(), end())


@pytest.mark.clause("state-metadata")
@given(markers, stops, gones, st.booleans())
def test_verdict_is_final_and_names_its_evidence(
    markers: list[Marker], stopped: Stop | None, is_gone: ProcessEnd | None, has_runner: bool
) -> None:
    status = judge_process(markers, stopped, is_gone, has_runner=has_runner)

    if status is not None:
        assert status.final
        assert status.evidence is not None
        assert status.time >= START
        assert (status.reason is None) == (status.state is COMPLETED)
        assert (status.message is None) == (status.state is COMPLETED)


@given(markers, stops, gones, st.booleans())
def test_completed_is_never_concluded_without_code_0(
    markers: list[Marker], stopped: Stop | None, is_gone: ProcessEnd | None, has_runner: bool
) -> None:
    status = judge_process(markers, stopped, is_gone, has_runner=has_runner)

    if status is not None and status.state is COMPLETED:
        assert status.exit_code == 0
        codes = [marker.code for marker in markers if marker.kind == "exit"]
        assert 0 in codes or (is_gone is not None and is_gone.wait_status == 0)


@pytest.mark.clause("state-active")
@given(markers, st.sampled_from([CANCEL, TIMEOUT]), st.booleans())
def test_stopped_job_is_not_final_while_its_processes_run(
    markers: list[Marker], why: str, has_runner: bool
) -> None:
    assert judge_process(markers, stop(why), None, has_runner=has_runner) is None


@given(markers, stops, gones)
def test_verdict_never_changes_when_the_process_is_found_gone_after_it(
    markers: list[Marker], stopped: Stop | None, is_gone: ProcessEnd | None
) -> None:
    before = judge_process(markers, stopped, None)

    if before is not None:
        assert judge_process(markers, stopped, is_gone) == before


@pytest.mark.parametrize("number", [*range(1, 32), 34, 64])
def test_signal_is_in_the_metadata_whatever_its_source(number: int) -> None:
    statuses = [
        judge_process([ended(f"run.{128 + number}")], None, None),
        judge_process([], None, killed(number)),
        judge_process([], None, killed(number), has_runner=False),
    ]

    for status in statuses:
        assert status is not None
        assert (status.exit_code, status.metadata["signal"]) == (128 + number, number)
        assert status.message is not None
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        assert name in status.message


@pytest.mark.clause("status-time")
def test_the_time_of_a_verdict_is_of_the_marker_or_else_of_the_observation() -> None:
    by_marker = judge_process([ended("run.0")], None, end(at=9))
    by_observation = judge_process([], None, end(at=9))

    assert by_marker is not None
    assert by_marker.time == START + timedelta(seconds=2)
    assert by_observation is not None
    assert by_observation.time == START + timedelta(seconds=9)


def test_failed_post_launch_is_in_the_metadata() -> None:
    status = judge_process([ended("post_launch.0")], None, None)

    assert status is not None
    assert status.metadata["post_launch"] == "failed"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("executable.126", "may not be executed"),
        ("executable.127", "was not found"),
        ("container.125", "has a quotation mark"),
        ("container.127", "is on its PATH"),
    ],
)
def test_the_code_of_a_phase_tells_what_failed(what: str, message: str) -> None:
    status = judge_process([ended(what)], None, None)

    assert status is not None
    assert message in (status.message or "")


def test_nanoseconds_become_an_aware_time() -> None:
    assert datetime_from_ns(1_767_225_600_250_000_000) == datetime(2026, 1, 1, 0, 0, 0, 250_000, tzinfo=UTC)


def test_wait_statuses_of_the_table_equal_those_of_wait() -> None:
    """The table above relies on it."""
    assert [os.waitstatus_to_exitcode(facts.wait_status or 0) for facts in (exited(7), killed(9))] == [7, -9]
    assert os.waitstatus_to_exitcode(killed(11, dumped=True).wait_status or 0) == -11
    assert isinstance(judge_process([], None, exited(0)), JobStatus)

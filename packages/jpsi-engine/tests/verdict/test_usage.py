"""What a run has used, by its exit marker, is in its final status, however that was decided."""

from __future__ import annotations

import attrs
import pytest

from jpsi.contract.observation import Observation
from jpsi.model.states import JobState, Reason
from jpsi_engine.verdict.batch_verdict import Facts, judge
from jpsi_engine.verdict.marker_verdict import judge_process
from jpsi_engine.verdict.markers import Marker, name_with_memory, parse


def marker(name: str) -> Marker:
    found = parse(f"a1.1.{name}", 10**18)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "detail", "used"),
    [
        ("exit.run.0", "run", (None, None)),
        ("exit.run-1234.0", "run", (12.34, None)),
        ("exit.run-0-5678.0", "run", (0.0, 5678 * 1024)),
        ("exit.run-stage_out-1234.0", "run-stage_out", (12.34, None)),
        ("1.exit.pre_launch-7-8.125", "pre_launch", (0.07, 8192)),
    ],
)
def test_the_name_of_an_exit_marker_says_what_was_used(
    name: str, detail: str, used: tuple[float | None, int | None]
) -> None:
    found = marker(name)

    assert (found.detail, found.cpu, found.memory) == (detail, *used)


def test_memory_is_added_to_a_name() -> None:
    found = marker("exit.run-stage_out-1234.7")
    again = parse(name_with_memory(found, 5 << 20), found.time_ns)

    assert again == attrs.evolve(found, memory=5 << 20, name="a1.1.exit.run-stage_out-1234-5120.7")


def test_a_status_has_the_figures_and_only_those_that_are_known() -> None:
    known = judge_process([marker("exit.run-1234-5678.3")], None, None)
    unknown = judge_process([marker("exit.run.3")], None, None)
    zero = judge_process([marker("exit.run-0-0.3")], None, None)

    assert known is not None
    assert unknown is not None
    assert known.metadata == {"used.cpu": 12.34, "used.process_memory": 5678 * 1024}
    assert zero is not None
    assert unknown.metadata == zero.metadata == {}


def test_a_kill_for_memory_is_the_reason_and_counts_as_no_phase() -> None:
    killed = marker("exit.run-stage_out-oom-1234.137")

    status = judge_process([killed], None, None)

    assert status is not None
    assert (killed.detail, killed.cpu) == ("run-stage_out", 12.34)
    assert (status.reason, status.exit_code) == (Reason.OUT_OF_MEMORY, 137)
    assert status.metadata == {"signal": 9, "stage_out": "failed", "used.cpu": 12.34}
    assert "the kernel killed a process of the job" in (status.message or "")


@pytest.mark.parametrize(
    ("reported", "reason"),
    [(None, Reason.OUT_OF_MEMORY), (Reason.SIGNAL, Reason.OUT_OF_MEMORY), (Reason.TIMEOUT, Reason.TIMEOUT)],
    ids=["the batch system gives none", "it repeats the code", "it ended the job"],
)
def test_a_kill_for_memory_is_the_reason_unless_the_batch_system_has_another(
    reported: Reason | None, reason: Reason
) -> None:
    end = Observation(state=JobState.FAILED, native_state="F", reason=reported, exit_code=137)
    facts = Facts(system="pbs", now=marker("active").time, markers=[marker("exit.run-oom-1.137")])

    waiting, ended = judge(facts), judge(attrs.evolve(facts, accounted=end))

    assert waiting is None or not waiting.final
    assert ended is not None
    assert ended.reason is reason


def test_the_figures_of_the_batch_system_count_more_than_those_of_the_runner() -> None:
    end = Observation(
        state=JobState.FAILED,
        native_state="OOM",
        reason=Reason.OUT_OF_MEMORY,
        exit_code=137,
        details={"used.cpu": 20.0, "used.memory": 1 << 30},
    )

    status = judge(
        Facts(system="slurm", now=marker("active").time, markers=[marker("exit.run-1234.137")], accounted=end)
    )

    assert status is not None
    assert status.reason is Reason.OUT_OF_MEMORY
    assert (status.metadata["used.cpu"], status.metadata["used.memory"]) == (20.0, 1 << 30)

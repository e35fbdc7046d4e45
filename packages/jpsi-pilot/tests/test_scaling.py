"""The number of pilots: as many as the load can use, within limits, and no idle ones."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi_pilot.agent.pilot import Pilot
from jpsi_pilot.agent.placement import Kind, NodeCapacity, Waiting, count_pilots_to_start
from jpsi_pilot.agent.state import PilotEntry
from jpsi_pilot.protocol.values import Need
from test_scheduling_loop import SETTINGS

FRESH = [NodeCapacity(name="fresh", cores=4, seconds=100)]


def waiting(count: int, cores: int = 1, seconds: int = 10) -> list[Waiting]:
    """Return pending jobs that are alike."""
    return [Waiting(kind=Kind(need=Need(cores=cores, seconds=seconds)), count=count)]


@given(st.integers(0, 50), st.integers(1, 4), st.integers(0, 9))
def test_the_number_of_pilots_is_limited(count: int, cores: int, allowed: int) -> None:
    assert count_pilots_to_start(waiting(count, cores) if count else [], [], FRESH, allowed) <= allowed


@given(st.integers(1, 50), st.integers(1, 4))
def test_as_many_pilots_start_as_the_jobs_fill(count: int, cores: int) -> None:
    beside = 4 // cores

    assert count_pilots_to_start(waiting(count, cores), [], FRESH, 100) == -(-count // beside)


def test_free_capacity_is_used_first() -> None:
    free = [NodeCapacity(name="a", cores=3, seconds=100)]

    assert count_pilots_to_start(waiting(3), free, FRESH, 9) == 0
    assert count_pilots_to_start(waiting(4), free, FRESH, 9) == 1


def test_no_pilot_is_started_that_no_job_could_use() -> None:
    assert count_pilots_to_start(waiting(1, seconds=1000), [], FRESH, 9) == 0
    assert count_pilots_to_start([], [], FRESH, 9) == 0


def test_a_pilot_with_several_nodes_counts_as_all_of_them() -> None:
    two = [NodeCapacity(name="x", cores=4, seconds=100), NodeCapacity(name="y", cores=4, seconds=100)]

    assert count_pilots_to_start(waiting(9), [], two, 9) == 2


@pytest.mark.parametrize(
    ("idle_seconds", "seconds", "is_out_of_use"), [(9, 50, False), (10, 50, True), (0, 0.5, True)]
)
def test_a_pilot_is_out_of_use_if_idle_for_too_long_or_out_of_time(
    idle_seconds: float, seconds: float, is_out_of_use: bool
) -> None:
    settings = attrs.evolve(SETTINGS, idle=10.0, walltime=100, margin=0)
    entry = PilotEntry(name="1", settings="s", client=None, job_id="", time=0.0)
    now = 1000.0
    pilot = Pilot(
        entry=entry,
        settings=settings,
        job=None,
        last_useful=now - idle_seconds,
        began_at=now - (settings.walltime - seconds),
    )

    assert pilot.is_out_of_use(now) is is_out_of_use

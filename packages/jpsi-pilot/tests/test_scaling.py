"""Sizing: as many pilots as the load can use, within limits, and none that nobody uses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jpsi_pilot.agent.placement import Kind, Room, Waiting
from jpsi_pilot.agent.scaling import Pilot, more, needless
from jpsi_pilot.protocol.values import Need

FRESH = [Room(name="fresh", cores=4, seconds=100)]


def waiting(count: int, cores: int = 1, seconds: int = 10) -> list[Waiting]:
    """Jobs that are alike."""
    return [Waiting(kind=Kind(need=Need(cores=cores, seconds=seconds)), count=count)]


@given(st.integers(0, 50), st.integers(1, 4), st.integers(0, 9))
def test_there_are_never_more_than_allowed(count: int, cores: int, allowed: int) -> None:
    assert more(waiting(count, cores) if count else [], [], FRESH, allowed) <= allowed


@given(st.integers(1, 50), st.integers(1, 4))
def test_there_are_as_many_as_the_load_fills(count: int, cores: int) -> None:
    beside = 4 // cores

    assert more(waiting(count, cores), [], FRESH, 100) == -(-count // beside)


def test_what_is_free_is_used_first() -> None:
    free = [Room(name="a", cores=3, seconds=100)]

    assert more(waiting(3), free, FRESH, 9) == 0
    assert more(waiting(4), free, FRESH, 9) == 1


def test_none_is_started_that_would_be_of_no_use() -> None:
    assert more(waiting(1, seconds=1000), [], FRESH, 9) == 0
    assert more([], [], FRESH, 9) == 0


def test_a_pilot_with_several_nodes_counts_as_all_of_them() -> None:
    two = [Room(name="x", cores=4, seconds=100), Room(name="y", cores=4, seconds=100)]

    assert more(waiting(9), [], two, 9) == 2


def test_a_pilot_goes_when_it_was_idle_for_long_enough_or_has_no_time_left() -> None:
    pilots = [
        Pilot(name="busy", idle=None, seconds=0),
        Pilot(name="young", idle=9, seconds=50),
        Pilot(name="idle", idle=10, seconds=50),
        Pilot(name="ending", idle=0, seconds=0.5),
    ]

    assert needless(pilots, 10, 1) == ["idle", "ending"]

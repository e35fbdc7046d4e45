"""Placing: nothing is promised twice, and nothing starts that could not end in time."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from jpsi_pilot.agent.placement import Kind, Room, Waiting, placed, takes
from jpsi_pilot.protocol.places import pilot_of
from jpsi_pilot.protocol.values import Need

NEEDS = st.builds(
    Need,
    nodes=st.integers(1, 3),
    cores=st.integers(1, 6),
    gpus=st.integers(0, 2),
    memory=st.integers(0, 4),
    seconds=st.integers(1, 100),
)
KINDS = st.builds(
    Kind, need=NEEDS, settings=st.sampled_from(["a", "b"]), client=st.sampled_from([None, "one", "two"])
)
WAITING = st.lists(
    st.builds(Waiting, kind=KINDS, count=st.integers(1, 8)), max_size=5, unique_by=lambda it: it.kind
)
ROOMS = st.lists(
    st.builds(
        Room,
        name=st.builds("{}/{}.1".format, st.sampled_from("pq"), st.uuids()),
        cores=st.integers(0, 8),
        gpus=st.integers(0, 2),
        memory=st.none() | st.integers(0, 8),
        seconds=st.floats(-10, 100),
        settings=st.sampled_from(["a", "b"]),
        client=st.sampled_from([None, "one", "two"]),
    ),
    max_size=5,
    unique_by=lambda it: it.name,
)


@given(WAITING, ROOMS)
def test_no_node_is_given_more_than_it_has(waiting: list[Waiting], rooms: list[Room]) -> None:
    left = {room.name: room for room in rooms}
    for kind, names, times in placed(waiting, rooms):
        for name in names:
            left[name] = left[name].without(kind.need, times)

    assert all(room.cores >= 0 and room.gpus >= 0 and (room.memory or 0) >= 0 for room in left.values())


@given(WAITING, ROOMS)
def test_what_starts_ends_in_time_and_where_it_may(waiting: list[Waiting], rooms: list[Room]) -> None:
    by_name = {room.name: room for room in rooms}
    for kind, names, _ in placed(waiting, rooms):
        assert len(set(names)) == kind.need.nodes
        assert len({pilot_of(name) for name in names}) == 1
        for name in names:
            assert kind.need.seconds <= by_name[name].seconds
            assert takes(by_name[name], kind)


@given(WAITING, ROOMS)
def test_no_more_start_than_wait(waiting: list[Waiting], rooms: list[Room]) -> None:
    started: Counter[Kind] = Counter()
    for kind, _, times in placed(waiting, rooms):
        started[kind] += times

    assert all(started[it.kind] <= it.count for it in waiting)


@given(WAITING, ROOMS)
def test_what_still_waits_fits_nowhere(waiting: list[Waiting], rooms: list[Room]) -> None:
    left = {room.name: room for room in rooms}
    started: Counter[Kind] = Counter()
    for kind, names, times in placed(waiting, rooms):
        for name in names:
            left[name] = left[name].without(kind.need, times)
        started[kind] += times

    for it in waiting:
        if started[it.kind] < it.count:
            fitting = [
                room.name for room in left.values() if takes(room, it.kind) and room.times(it.kind.need)
            ]
            assert all(count < it.kind.need.nodes for count in Counter(map(pilot_of, fitting)).values())


def test_the_first_come_first() -> None:
    room = Room(name="n", cores=4, seconds=60)
    old, young = Kind(need=Need(cores=3, seconds=1)), Kind(need=Need(cores=1, seconds=1))

    assert placed([Waiting(kind=old, count=2), Waiting(kind=young, count=2)], [room]) == [
        (old, ("n",), 1),
        (young, ("n",), 1),
    ]


def test_a_pilot_that_ends_soon_is_filled_first() -> None:
    rooms = [Room(name="long", cores=1, seconds=100), Room(name="short", cores=1, seconds=10)]
    kind = Kind(need=Need(seconds=5))

    assert placed([Waiting(kind=kind, count=1)], rooms) == [(kind, ("short",), 1)]


def test_a_pilot_of_a_client_takes_no_others() -> None:
    mine, anybodys = Room(name="a", cores=1, seconds=9, client="me"), Room(name="b", cores=1, seconds=9)

    assert takes(mine, Kind(need=Need(seconds=1), client="me"))
    assert not takes(mine, Kind(need=Need(seconds=1), client="you"))
    assert not takes(mine, Kind(need=Need(seconds=1)))
    assert takes(anybodys, Kind(need=Need(seconds=1), client="you"))


def test_memory_is_counted_only_where_it_is_known() -> None:
    need = Need(memory=4, seconds=1)

    assert Room(name="a", cores=8, memory=9, seconds=9).times(need) == 2
    assert Room(name="a", cores=8, memory=None, seconds=9).times(need) == 8


def test_jobs_of_several_nodes_get_the_emptiest_of_one_pilot() -> None:
    rooms = [Room(name=f"a/{cores}.1", cores=cores, seconds=9) for cores in (1, 2, 3)]
    kind = Kind(need=Need(nodes=2, seconds=5))

    assert placed([Waiting(kind=kind, count=9)], rooms) == [
        (kind, ("a/3.1", "a/2.1"), 2),
        (kind, ("a/1.1", "a/3.1"), 1),
    ]


def test_several_nodes_that_no_pilot_has_are_none() -> None:
    rooms = [Room(name=f"{pilot}/n.1", cores=8, seconds=9) for pilot in "abc"]

    assert placed([Waiting(kind=Kind(need=Need(nodes=2, seconds=5)), count=1)], rooms) == []

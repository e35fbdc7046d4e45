"""Placement: no capacity is assigned twice, and no job starts that could not end in time."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from jpsi_pilot.agent.placement import Kind, NodeCapacity, Waiting, accepts, place_jobs
from jpsi_pilot.protocol.engine import pilot_of
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
CAPACITIES = st.lists(
    st.builds(
        NodeCapacity,
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


@given(WAITING, CAPACITIES)
def test_no_node_gets_more_jobs_than_fit(waiting: list[Waiting], capacities: list[NodeCapacity]) -> None:
    remaining = {capacity.name: capacity for capacity in capacities}
    for kind, names, times in place_jobs(waiting, capacities):
        for name in names:
            remaining[name] = remaining[name].without(kind.need, times)

    assert all(
        capacity.cores >= 0 and capacity.gpus >= 0 and (capacity.memory or 0) >= 0
        for capacity in remaining.values()
    )


@given(WAITING, CAPACITIES)
def test_started_jobs_end_before_the_pilot_and_belong_to_it(
    waiting: list[Waiting], capacities: list[NodeCapacity]
) -> None:
    by_name = {capacity.name: capacity for capacity in capacities}
    for kind, names, _ in place_jobs(waiting, capacities):
        assert len(set(names)) == kind.need.nodes
        assert len({pilot_of(name) for name in names}) == 1
        for name in names:
            assert kind.need.seconds <= by_name[name].seconds
            assert accepts(by_name[name], kind)


@given(WAITING, CAPACITIES)
def test_no_more_jobs_start_than_wait(waiting: list[Waiting], capacities: list[NodeCapacity]) -> None:
    started: Counter[Kind] = Counter()
    for kind, _, times in place_jobs(waiting, capacities):
        started[kind] += times

    assert all(started[it.kind] <= it.count for it in waiting)


@given(WAITING, CAPACITIES)
def test_jobs_that_are_still_pending_fit_nowhere(
    waiting: list[Waiting], capacities: list[NodeCapacity]
) -> None:
    remaining = {capacity.name: capacity for capacity in capacities}
    started: Counter[Kind] = Counter()
    for kind, names, times in place_jobs(waiting, capacities):
        for name in names:
            remaining[name] = remaining[name].without(kind.need, times)
        started[kind] += times

    for it in waiting:
        if started[it.kind] < it.count:
            fitting = [
                capacity.name
                for capacity in remaining.values()
                if accepts(capacity, it.kind) and capacity.count_fitting(it.kind.need)
            ]
            assert all(count < it.kind.need.nodes for count in Counter(map(pilot_of, fitting)).values())


def test_jobs_start_in_the_order_of_submission() -> None:
    capacity = NodeCapacity(name="n", cores=4, seconds=60)
    old, young = Kind(need=Need(cores=3, seconds=1)), Kind(need=Need(cores=1, seconds=1))

    assert place_jobs([Waiting(kind=old, count=2), Waiting(kind=young, count=2)], [capacity]) == [
        (old, ("n",), 1),
        (young, ("n",), 1),
    ]


def test_a_pilot_that_ends_soon_is_filled_first() -> None:
    capacities = [
        NodeCapacity(name="long", cores=1, seconds=100),
        NodeCapacity(name="short", cores=1, seconds=10),
    ]
    kind = Kind(need=Need(seconds=5))

    assert place_jobs([Waiting(kind=kind, count=1)], capacities) == [(kind, ("short",), 1)]


def test_a_pilot_of_a_client_takes_no_others() -> None:
    own, shared = (
        NodeCapacity(name="a", cores=1, seconds=9, client="me"),
        NodeCapacity(name="b", cores=1, seconds=9),
    )

    assert accepts(own, Kind(need=Need(seconds=1), client="me"))
    assert not accepts(own, Kind(need=Need(seconds=1), client="you"))
    assert not accepts(own, Kind(need=Need(seconds=1)))
    assert accepts(shared, Kind(need=Need(seconds=1), client="you"))


def test_memory_is_counted_only_where_it_is_known() -> None:
    need = Need(memory=4, seconds=1)

    assert NodeCapacity(name="a", cores=8, memory=9, seconds=9).count_fitting(need) == 2
    assert NodeCapacity(name="a", cores=8, memory=None, seconds=9).count_fitting(need) == 8


def test_jobs_of_several_nodes_get_the_emptiest_of_one_pilot() -> None:
    capacities = [NodeCapacity(name=f"a/{cores}.1", cores=cores, seconds=9) for cores in (1, 2, 3)]
    kind = Kind(need=Need(nodes=2, seconds=5))

    assert place_jobs([Waiting(kind=kind, count=9)], capacities) == [
        (kind, ("a/3.1", "a/2.1"), 2),
        (kind, ("a/1.1", "a/3.1"), 1),
    ]


def test_a_job_with_more_nodes_than_any_pilot_does_not_start() -> None:
    capacities = [NodeCapacity(name=f"{pilot}/n.1", cores=8, seconds=9) for pilot in "abc"]

    assert place_jobs([Waiting(kind=Kind(need=Need(nodes=2, seconds=5)), count=1)], capacities) == []

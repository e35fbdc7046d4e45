"""Snapshots survive a round trip through JSON, and other JSON is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.contract.observation import Observation
from jpsi.model.states import JobState, Reason
from jpsi_engine.scheduler.snapshot import Snapshot, decode, encode, reuse_observations

REFUSED = (AttributeError, LookupError, TypeError, ValueError)

texts = st.text(max_size=20)
times = st.datetimes(
    min_value=datetime(1900, 1, 1),  # noqa: DTZ001  hypothesis adds the zone
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]),
)
observations = st.builds(
    Observation,
    tag=st.none() | st.text(),
    submitted=st.none() | st.datetimes(timezones=st.just(UTC)),
    exists=st.booleans(),
    state=st.none() | st.sampled_from(JobState),
    native_state=texts,
    reason=st.none() | st.sampled_from(Reason),
    message=st.none() | texts,
    exit_code=st.none() | st.integers(0, 255),
    ran=st.none() | st.booleans(),
    time=st.none() | times,
    restarts=st.none() | st.integers(0, 9),
    nodes=st.lists(texts, max_size=3).map(tuple),
    position=st.none() | st.integers(0, 9),
    start_estimate=st.none() | times,
    details=st.dictionaries(texts, texts | st.integers() | st.booleans(), max_size=3),
)
answers = st.builds(
    Snapshot,
    begun=st.floats(0, 1e9),
    ended=st.floats(0, 1e9),
    queried=st.none() | st.frozensets(texts, max_size=4),
    seen=st.dictionaries(texts, observations, max_size=4),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(texts, values, max_size=3),
    max_leaves=8,
)


@given(answers)
def test_a_snapshot_survives_a_round_trip(snapshot: Snapshot) -> None:
    assert decode(json.loads(json.dumps(encode(snapshot)))) == snapshot


def test_every_field_of_an_observation_is_encoded() -> None:
    full = Observation(
        state=JobState.FAILED,
        native_state="w",
        tag="",
        submitted=datetime(2025, 12, 31, tzinfo=UTC),
        exists=False,
        reason=Reason.TIMEOUT,
        message="m",
        exit_code=0,
        ran=False,
        time=datetime(2026, 1, 1, tzinfo=UTC),
        restarts=0,
        nodes=("n",),
        position=0,
        start_estimate=datetime(2026, 1, 2, tzinfo=UTC),
        details={"slurm.reason": "r"},
    )

    plain = encode(Snapshot(begun=1, ended=2, queried=None, seen={"1": full}))

    assert plain["observations"][0].keys() == {field.name for field in attrs.fields(Observation)}


def test_an_observation_shared_by_many_jobs_is_written_once() -> None:
    one, other = Observation(state=None, native_state="a"), Observation(state=None, native_state="b")

    plain = encode(Snapshot(begun=1, ended=2, queried=None, seen={"1": one, "2": other, "3": one}))

    assert len(plain["observations"]) == 2
    observations = decode(plain).seen
    assert observations == {"1": one, "2": other, "3": one}
    assert observations["1"] is observations["3"]


@given(answers, answers)
def test_a_snapshot_with_reused_observations_is_equal(snapshot: Snapshot, before: Snapshot) -> None:
    assert reuse_observations(snapshot, before) == snapshot


def test_an_equal_observation_is_reused_unless_it_is_an_end() -> None:
    def copies() -> dict[str, Observation]:
        waits, ended = (
            Observation(state=state, native_state="w") for state in (JobState.QUEUED, JobState.COMPLETED)
        )
        return {"1": waits, "2": waits, "3": ended}

    before, snapshot = (Snapshot(begun=it, ended=it, queried=None, seen=copies()) for it in (1, 2))

    found = reuse_observations(snapshot, before)

    assert found.seen["1"] is found.seen["2"] is before.seen["1"]
    assert found.seen["3"] is snapshot.seen["3"]


@given(
    st.dictionaries(st.sampled_from(["begun", "ended", "queried", "observations", "native_ids"]), json_values)
)
def test_json_that_is_no_snapshot_is_refused(plain: dict[str, Any]) -> None:
    try:
        snapshot = decode(plain)
    except REFUSED:
        return

    assert encode(snapshot)["begun"] is not None


@pytest.mark.parametrize(
    "fields",
    [
        {"native_state": 1},
        {"state": "QUEUED"},
        {"state": "NAPPING", "native_state": "w"},
        {"native_state": "w", "exit_code": "0"},
        {"native_state": "w", "nodes": "n1"},
        {"native_state": "w", "colour": "red"},
        {"native_state": "w", "details": []},
        {"native_state": "w", "time": "yesterday"},
        [],
        None,
    ],
    ids=str,
)
def test_a_malformed_observation_is_refused(fields: Any) -> None:
    with pytest.raises(REFUSED):
        decode({"begun": 1.0, "ended": 2.0, "queried": None, "observations": [fields], "native_ids": [["1"]]})


@pytest.mark.parametrize("seen", [[], [["1"], ["2"]], [[1]], [[None, "1"]], ["1"], {"1": 0}, None], ids=str)
def test_observations_without_matching_jobs_are_refused(seen: Any) -> None:
    with pytest.raises(REFUSED):
        decode(
            {
                "begun": 1.0,
                "ended": 2.0,
                "queried": None,
                "observations": [{"native_state": "w"}],
                "native_ids": seen,
            }
        )


def test_a_snapshot_covers_queried_jobs_followed_before_its_start() -> None:
    snapshot = Snapshot(begun=5, ended=6, queried=frozenset({"1"}), seen={})

    assert snapshot.covers("1", 5)
    assert not snapshot.covers("1", 5.1)
    assert not snapshot.covers("2", 0)
    assert attrs.evolve(snapshot, queried=None).covers("2", 0)

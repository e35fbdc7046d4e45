"""Attributes that an executor changes or ignores are named in one sentence for all jobs."""

from __future__ import annotations

from datetime import timedelta

import pytest

import jpsi
from jpsi_engine import describe_ignored, describe_rounding

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


def specs(*attributes: jpsi.JobAttributes) -> list[jpsi.JobSpec | None]:
    return [None, *(jpsi.JobSpec("true", attributes=it) for it in attributes)]


@pytest.mark.parametrize(
    ("unit", "seconds", "sentence"),
    [
        (MINUTE, [5], "slurm rounds the time limit 0:00:05 up to 0:01:00"),
        (MINUTE, [61, 60, 5, 5], "slurm rounds the time limit 0:00:05 up to 0:01:00, and 1 more"),
        (MINUTE, [60, 0], None),
        (MINUTE, [], None),
        (SECOND, [5.5], None),
    ],
    ids=["one", "several", "whole", "none", "fractions"],
)
def test_time_limits_that_are_rounded_up_are_described(
    unit: timedelta, seconds: list[float], sentence: str | None
) -> None:
    jobs = specs(*(jpsi.JobAttributes(duration=timedelta(seconds=it)) for it in seconds))

    assert describe_rounding("slurm", unit, jobs) == sentence


def test_attributes_without_effect_are_described_once() -> None:
    custom = {"slurm.nice": 5, "script.path": "s", "ours.x": 1}
    jobs = specs(
        jpsi.JobAttributes(queue_name="long", custom_attributes=custom), jpsi.JobAttributes(queue_name="a")
    )

    described = describe_ignored("local", jobs)

    assert described == "local is no batch system: queue_name and slurm.nice have no effect"
    assert describe_ignored("slurm", jobs) is None
    assert describe_ignored("local", specs(jpsi.JobAttributes())) is None


def test_memory_without_effect_is_described() -> None:
    several = jpsi.HeterogeneousResources(
        [jpsi.ResourceSpecV1(), jpsi.ResourceSpecV1(memory_per_cpu=1 << 30)]
    )
    jobs = [
        jpsi.JobSpec("x", resources=jpsi.ResourceSpecV1(memory=1 << 30)),
        jpsi.JobSpec("x", resources=several),
        jpsi.JobSpec("x"),
    ]

    described = describe_ignored("local", jobs)

    assert described == "local is no batch system: memory and memory_per_cpu have no effect"
    assert describe_ignored("local", jobs[2:]) is None


def test_the_caller_may_name_attributes_otherwise() -> None:
    jobs = specs(jpsi.JobAttributes(queue_name="long", qos="high"))

    described = describe_ignored("local", jobs, lambda it: it.replace("attributes.queue_name", "--queue"))

    assert described == "local is no batch system: --queue and qos have no effect"


@pytest.mark.parametrize(
    ("count", "named"), [(1, "b.0 has"), (6, "b.4 and b.5 have"), (7, "b.4 and 2 more have")]
)
def test_up_to_six_names_are_listed(count: int, named: str) -> None:
    custom = {f"slurm.{it}": 1 for it in range(count)}

    described = describe_ignored("local", specs(jpsi.JobAttributes(custom_attributes=custom)))

    assert described is not None
    assert described.endswith(f"{named.replace('b.', 'slurm.')} no effect")

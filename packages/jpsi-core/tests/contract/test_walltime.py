"""The walltime of a job, and times as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jpsi import parse_duration

TIMES = {
    "0": 0.0,
    "90": 90,
    "1.5": 1.5,
    "10m": 600,
    "2H30M": 9000,
    "1d12h": 129600,
    "1:30": 90,
    "1:30:00": 5400,
    "1-12:00:00": 129600,
}


@pytest.mark.clause("time-interval")
@pytest.mark.parametrize(("text", "seconds"), TIMES.items())
def test_time(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "-1", "1:60", "1-1:30", "m", "30m2h", "1:", "inf", "9" * 5000])
def test_a_text_that_is_no_duration_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time such as 90"):
        parse_duration(text)


def test_too_long_a_time_is_refused() -> None:
    with pytest.raises(ValueError, match="too long a time"):
        parse_duration("999999999999d")

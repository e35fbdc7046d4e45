"""The configuration of an executor: problems are named with their places."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from jpsi.contract.config import BatchConfig


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("submit_concurrency", 0),
        ("submit_concurrency", "4"),
        ("max_active", 0),
        ("max_active", 1.5),
        ("max_queued", -1),
        ("max_queued", "10"),
        ("command_timeout", timedelta(0)),
        ("command_timeout", 5),
        ("shortest_interval", "2s"),
        ("longest_interval", timedelta(seconds=-1)),
        ("waiting_interval", timedelta(0)),
        ("grace", -1),
        ("default_duration", timedelta(seconds=-1)),
        ("kill_delay", None),
        ("prologue", "module load x"),
        ("shell", "bash"),
    ],
)
def test_a_nonsensical_value_is_refused_with_its_name(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field):
        BatchConfig(**{field: value})


def test_zero_is_no_limit_and_no_grace() -> None:
    config = BatchConfig(default_duration=timedelta(0), grace=timedelta(0), prologue=["true"])

    assert (config.default_duration, config.grace, config.prologue) == (timedelta(0), timedelta(0), ("true",))

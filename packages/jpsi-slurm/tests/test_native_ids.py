"""The texts that are native ids, and the ids by which a listed job is found."""

from __future__ import annotations

import pytest

from jpsi_slurm.native_ids import IDS
from jpsi_slurm.queue.listing import Row


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", True),
        ("4711_3", True),
        ("4711+1", True),
        ("4294967295", True),
        ("4294967296", False),
        ("0", False),
        ("4711.0", False),
        ("4711_[1-3]", False),
        ("4711,4712", False),
        ("-1", False),
        ("٤", False),
        ("7\n", False),
        ("", False),
    ],
)
def test_ids(text: str, expected: bool) -> None:
    assert IDS.is_id(text) is expected


def _names(displayed_id: str, number: str) -> tuple[str, ...]:
    row = dict.fromkeys(("state", "exit_code", "submitted", "started", "ended", "nodes", "reason"), "")
    return Row(displayed_id=displayed_id, number=number, **row).all_ids


def test_an_element_is_found_by_its_own_number_too() -> None:
    assert _names("233_998", "252") == ("233_998", "252")
    assert _names("138+1", "139") == ("138+1", "139")


def test_the_last_element_of_an_array_has_the_arrays_number() -> None:
    assert _names("233_999", "233") == ("233_999",)
    assert _names("233", "233") == ("233",)


def test_the_first_component_of_a_heterogeneous_job_is_the_job() -> None:
    assert _names("138+0", "138") == ("138",)

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi_cli.output import quantities

SIZES = {
    "1048576": 2**20,
    "1B": 1,
    "1073741824": 2**30,
    "1k": 1024,
    "4G": 4 * 2**30,
    "4g": 4 * 2**30,
    "4GB": 4 * 2**30,
    "4GiB": 4 * 2**30,
    "1.5M": 3 * 2**19,
    "0.001K": 2,
    "2T": 2**41,
    "1P": 2**50,
    "9007199254740993": 9007199254740993,
}
TIMES = {
    "0": 0.0,
    "90": 90,
    "1.5": 1.5,
    "90s": 90,
    "10m": 600,
    "2h30m": 9000,
    "2H30M": 9000,
    "1.5h": 5400,
    "1d": 86400,
    "1d12h": 129600,
    "1:30": 90,
    "90:00": 5400,
    "1:30:00": 5400,
    "100:00:00": 360000,
    "1-12:00:00": 129600,
}


@pytest.mark.parametrize(("text", "size"), SIZES.items())
def test_size(text: str, size: int) -> None:
    assert quantities.parse_size(text) == size


@pytest.mark.parametrize(("text", "seconds"), TIMES.items())
def test_duration(text: str, seconds: float) -> None:
    assert quantities.parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "-1", "G", "4 G", "4X", "4Gi b", "1e9", "1,5G", "\u0663", "1" * 5000])
def test_an_invalid_size_is_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size such as 4G"):
        quantities.parse_size(text)


@pytest.mark.parametrize("text", ["4", "512", "1.5", "1048575"])
def test_so_few_bytes_that_a_unit_is_missing_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}' is a number of bytes, .* such as {text}G or {text}M"):
        quantities.parse_size(text)


def test_no_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="is zero"):
        quantities.parse_size("0G")


@pytest.mark.parametrize(
    "text", ["", "-1", "1:60", "1:75:00", "1-1:30", "m", "10x", "30m2h", "1:2:3:4", "1:", "inf", "9" * 5000]
)
def test_an_invalid_duration_is_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time such as 90"):
        quantities.parse_duration(text)


@pytest.mark.parametrize("text", ["999999999999999", "999999999999d"])
def test_too_long_a_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="too long a time"):
        quantities.parse_duration(text)


@pytest.mark.parametrize("text", ["", "-1", "1.0", "x", "\u0663", "9" * 5000])
@pytest.mark.parametrize("read", [quantities.parse_count, quantities.parse_count_or_zero])
def test_an_invalid_count_is_quoted(read: Callable[[str], int], text: str) -> None:
    with pytest.raises(ValueError, match="is not a whole number of at least"):
        read(text)


def test_only_the_number_of_gpus_may_be_zero() -> None:
    assert quantities.parse_count_or_zero("0") == 0
    with pytest.raises(ValueError, match="at least 1"):
        quantities.parse_count("0")


@given(st.text() | st.text(alphabet="0123456789.:-dhmskmgtpib"))
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    for read in (quantities.parse_count, quantities.parse_size, quantities.parse_duration):
        with contextlib.suppress(ValueError):
            read(text)
            continue
        with pytest.raises(ValueError, match=re.escape(repr(text))):
            read(text)


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59))
def test_clock_notation_and_units_agree(hours: int, minutes: int, seconds: int) -> None:
    expected = timedelta(hours=hours, minutes=minutes, seconds=seconds)

    assert quantities.parse_duration(f"{hours}:{minutes:02}:{seconds:02}") == expected
    assert quantities.parse_duration(f"{hours}h{minutes}m{seconds}s") == expected


def test_what_is_no_time_of_slurms_is_refused_in_its_terms() -> None:
    with pytest.raises(ValueError, match=r"'1-x' is not a time such as 90 \(minutes\)"):
        quantities.parse_slurm_time("1-x")

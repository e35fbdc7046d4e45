"""Pieces grow where they are quick, and shrink where others would have to wait."""

from __future__ import annotations

import pytest

from jpsi_engine.transfer.remote_shell import ChunkSize


@pytest.mark.parametrize(("seconds", "size"), [(0.001, 1 << 24), (0.5, 1 << 20), (60, 1 << 16)])
def test_the_size_follows_the_time_that_pieces_take(seconds: float, size: int) -> None:
    pace = ChunkSize()

    for _ in range(20):
        pace.adapt(pace.size, seconds)

    assert pace.size == size


def test_a_short_last_chunk_does_not_change_the_chunk_size() -> None:
    pace = ChunkSize()

    pace.adapt(100, 0.001)

    assert pace.size == 1 << 20

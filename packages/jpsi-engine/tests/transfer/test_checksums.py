"""Checksums are those of the programs of that name, span by span."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi_engine.transfer import checksums
from jpsi_engine.transfer.checksums import SPAN, SpanSums, Tool
from jpsi_engine.transfer.remote_commands import checksum_command


def checksum(data: bytes, tool: Tool) -> str:
    sums = SpanSums(tool)
    sums.feed(data)
    return sums.all[0]


@pytest.mark.parametrize("tool", Tool)
@pytest.mark.parametrize("data", [b"", b"a", b"\0" * 300, bytes(range(256)) * 300], ids=len)
def test_a_checksum_equals_that_of_the_program(tool: Tool, data: bytes) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}")

    output = subprocess.run([tool], input=data, capture_output=True, check=True).stdout.decode()

    assert checksum(data, tool) == output.split()[0]


@pytest.mark.parametrize("tool", Tool)
@given(data=st.binary(max_size=40), cuts=st.lists(st.integers(0, 40)))
def test_spans_have_the_checksums_of_their_bytes_however_they_come(
    tool: Tool, data: bytes, cuts: list[int]
) -> None:
    sums = _of_spans(tool, data, sorted({0, len(data), *(cut for cut in cuts if cut < len(data))}), 8)

    spans = [data[at : at + 8] for at in range(0, len(data), 8)] or [b""]
    assert sums == [checksum(span, tool) for span in spans]


def test_the_timeout_of_a_checksum_grows_with_the_size() -> None:
    commands = [checksum_command("/x", Tool.CKSUM, spans, 3 * SPAN + 1) for spans in (range(3, 4), range(4))]

    assert [it.timeout for it in commands] == [timedelta(seconds=120), timedelta(seconds=120 + 3 * 64)]


def _of_spans(tool: Tool, data: bytes, cuts: list[int], span: int) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checksums, "SPAN", span)
        sums = SpanSums(tool)
        for begin, end in itertools.pairwise(cuts):
            sums.feed(data[begin:end])
        return sums.all

from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from jpsi_ssh.protocol.remote_lines import lines_in
from jpsi_ssh.protocol.responses import Response

_NONCE = "0123abcd"


def _pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    offsets = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(offsets)]


def _stream(noise: bytes, text: bytes, end: bytes, rest: bytes) -> bytes:
    nonce = _NONCE.encode()
    return noise + b"\n" + nonce + b" begin\n" + text + b"\n" + nonce + b" end" + end + b"\n" + rest


@given(
    st.binary(), st.binary(), st.binary(), st.integers(0, 128), st.lists(st.integers(min_value=0), max_size=9)
)
def test_output_is_the_same_for_any_chunks(
    noise: bytes, text: bytes, rest: bytes, code: int, cuts: list[int]
) -> None:
    response = Response.for_nonce(_NONCE)
    for piece in _pieces(_stream(noise, text, f" {code}".encode(), rest), cuts):
        response.out.feed(piece)
    response.err.feed(_stream(rest, noise, b"", text))

    assert response.is_complete
    assert response.out.text == text
    assert response.err.text == noise
    assert response.result().returncode == code


@given(st.binary(), st.integers(min_value=0))
def test_a_response_without_its_last_byte_is_incomplete(text: bytes, cut: int) -> None:
    whole = _stream(b"", text, b" 0", b"")
    response = Response.for_nonce(_NONCE)
    response.err.feed(_stream(b"", b"", b"", b""))
    response.out.feed(whole[: cut % len(whole)])

    assert not response.is_complete


def test_an_exit_code_above_128_is_a_signal() -> None:
    response = Response.for_nonce(_NONCE)
    response.out.feed(_stream(b"", b"", b" 137", b""))
    response.err.feed(_stream(b"", b"", b"", b""))

    assert response.result().returncode == -9


def test_text_outside_the_frame_is_from_ssh() -> None:
    response = Response.for_nonce(_NONCE)
    response.err.feed(b"Welcome to Big\n" + _stream(b"", b"job", b"", b"Connection to big closed.\n"))

    assert re.search("Welcome to Big.*Connection to big closed.", response.words, re.DOTALL)
    assert "job" not in response.words


@given(st.text("ab\n"), st.lists(st.integers(min_value=0), max_size=9))
def test_lines_are_the_same_for_any_chunks(text: str, cuts: list[int]) -> None:
    data = _stream(b"noise\n", text.encode(), b" 0", b"\n")
    expected = text.split("\n")
    if not expected[-1]:
        expected.pop()

    assert list(lines_in(_pieces(data, cuts), _NONCE)) == expected


def test_lines_end_with_the_connection() -> None:
    assert list(lines_in([f"\n{_NONCE} begin\n1\n2".encode()], _NONCE)) == ["1", "2"]


def test_a_line_is_not_held_back_for_the_next() -> None:
    chunks = iter([f"\n{_NONCE} begin\n1\n".encode(), b"2\n"])

    assert next(lines_in(chunks, _NONCE)) == "1"
    assert next(chunks) == b"2\n"

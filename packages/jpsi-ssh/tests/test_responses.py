from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from jpsi_ssh.protocol.remote_lines import lines_in
from jpsi_ssh.protocol.responses import Response

_NONCE = "0123abcd"


def _pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(places)]


def _stream(noise: bytes, text: bytes, end: bytes, rest: bytes) -> bytes:
    nonce = _NONCE.encode()
    return noise + b"\n" + nonce + b" begin\n" + text + b"\n" + nonce + b" end" + end + b"\n" + rest


@given(
    st.binary(), st.binary(), st.binary(), st.integers(0, 128), st.lists(st.integers(min_value=0), max_size=9)
)
def test_what_was_printed_comes_out_as_it_is_however_it_arrives(
    noise: bytes, text: bytes, rest: bytes, code: int, cuts: list[int]
) -> None:
    answer = Response.to(_NONCE)
    for piece in _pieces(_stream(noise, text, f" {code}".encode(), rest), cuts):
        answer.out.feed(piece)
    answer.err.feed(_stream(rest, noise, b"", text))

    assert answer.is_whole
    assert answer.out.text == text
    assert answer.err.text == noise
    assert answer.result().returncode == code


@given(st.binary(), st.integers(min_value=0))
def test_before_its_last_byte_has_come_an_answer_is_not_whole(text: bytes, cut: int) -> None:
    whole = _stream(b"", text, b" 0", b"")
    answer = Response.to(_NONCE)
    answer.err.feed(_stream(b"", b"", b"", b""))
    answer.out.feed(whole[: cut % len(whole)])

    assert not answer.is_whole


def test_a_code_by_which_a_shell_tells_of_a_signal_is_one() -> None:
    answer = Response.to(_NONCE)
    answer.out.feed(_stream(b"", b"", b" 137", b""))
    answer.err.feed(_stream(b"", b"", b"", b""))

    assert answer.result().returncode == -9


def test_words_beside_the_answer_are_those_of_ssh() -> None:
    answer = Response.to(_NONCE)
    answer.err.feed(b"Welcome to Big\n" + _stream(b"", b"job", b"", b"Connection to big closed.\n"))

    assert re.search("Welcome to Big.*Connection to big closed.", answer.words, re.DOTALL)
    assert "job" not in answer.words


@given(st.text("ab\n"), st.lists(st.integers(min_value=0), max_size=9))
def test_lines_are_those_that_were_printed_however_they_arrive(text: str, cuts: list[int]) -> None:
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

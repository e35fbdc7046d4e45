"""Detects words that differ from Flux's words by one character: such output is corrupt, and no answer."""

from __future__ import annotations

from collections.abc import Iterable

from jpsi.plugin.kit import extract_tag

# The beginning of every tag
_BEGINNING = "jpsi-"
_ENOUGH = 3


def is_nearly(word: str, known: Iterable[str]) -> bool:
    """Return True if a word is one of these but for one character.

    >>> is_nearly("can~el", ["cancel"]), is_nearly("cancel", ["cancel"]), is_nearly("user", ["exec"])
    (True, False, False)
    """
    return any(len(word) == len(it) and _differences(word, it) == 1 for it in known)


def tag_in(text: str) -> str | None:
    """Return the tag at the end of a job's name, "" if there is none; None for a possibly corrupt tag.

    >>> tag_in("my name jpsi-5-1"), tag_in("my own job"), tag_in("jpsi-5~1"), tag_in("j~si-5-1")
    ('jpsi-5-1', '', None, None)
    """
    tag = extract_tag(text)
    words = text.split()
    last = words[-1] if words else ""
    is_like_one = len(last) >= len(_BEGINNING) and len(_BEGINNING) - _differences(last, _BEGINNING) >= _ENOUGH
    # the decoder replaces invalid bytes with this character
    is_garbled = "\N{REPLACEMENT CHARACTER}" in last
    return None if is_garbled or (is_like_one and not tag) else tag


def _differences(one: str, other: str) -> int:
    """Return the number of places where two texts differ, up to the end of the shorter."""
    return sum(a != b for a, b in zip(one, other, strict=False))

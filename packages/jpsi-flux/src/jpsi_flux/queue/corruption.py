"""Detects words that differ from Flux's words by one character: such output is corrupt, and no answer."""

from __future__ import annotations

from collections.abc import Iterable

from jpsi.plugin.kit import extract_tag

# The beginning of every tag
_TAG_PREFIX = "jpsi-"
_MIN_MATCHES = 3


def is_nearly(word: str, known: Iterable[str]) -> bool:
    """Return True if a word is one of these but for one character.

    >>> is_nearly("can~el", ["cancel"]), is_nearly("cancel", ["cancel"]), is_nearly("user", ["exec"])
    (True, False, False)
    """
    return any(len(word) == len(it) and _count_differences(word, it) == 1 for it in known)


def parse_tag(text: str) -> str | None:
    """Return the tag at the end of a job's name, "" if there is none; None for a possibly corrupt tag.

    >>> parse_tag("my name jpsi-5-1"), parse_tag("my own job"), parse_tag("jpsi-5~1"), parse_tag("j~si-5-1")
    ('jpsi-5-1', '', None, None)
    """
    tag = extract_tag(text)
    words = text.split()
    last = words[-1] if words else ""
    is_like_tag = (
        len(last) >= len(_TAG_PREFIX)
        and len(_TAG_PREFIX) - _count_differences(last, _TAG_PREFIX) >= _MIN_MATCHES
    )
    # the decoder replaces invalid bytes with this character
    is_garbled = "\N{REPLACEMENT CHARACTER}" in last
    return None if is_garbled or (is_like_tag and not tag) else tag


def _count_differences(one: str, other: str) -> int:
    """Return the number of places where two texts differ, up to the end of the shorter."""
    return sum(a != b for a, b in zip(one, other, strict=False))

"""Reads single fields of a batch system's output, and notices words that were altered on their way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta

from jpsi.model import parse_duration
from jpsi.plugin.kit.command_results import extract_tag

# The beginning of every tag, and how much of it a text shares that may be an altered tag
_TAG_PREFIX = "jpsi-"
_MIN_MATCHES = 3


def parse_count(text: str | None) -> int | None:
    """Return a number of digits; None if the field is missing or something else.

    >>> parse_count("12"), parse_count("UNLIMITED"), parse_count(None)
    (12, None, None)
    """
    return int(text) if text is not None and text.isdecimal() else None


def parse_limit(text: str | None, parse: Callable[[str], timedelta] = parse_duration) -> timedelta | None:
    """Return a time limit, as `parse` reads it; None if the field is missing or is no time."""
    try:
        return None if text is None else parse(text)
    except (OverflowError, ValueError):
        return None


def is_nearly(word: str, known: Iterable[str]) -> bool:
    """Return True if a word is one of these but for one character: such output is corrupt, and no answer.

    >>> is_nearly("Ex~ted", ["Exited"]), is_nearly("Exited", ["Exited"]), is_nearly("Sent", ["Done"])
    (True, False, False)
    """
    return any(len(word) == len(it) and _count_differences(word, it) == 1 for it in known)


def extract_intact_tag(text: str) -> str | None:
    """Return the tag at the end of a job's text, "" if there is none; None for a possibly corrupt tag.

    >>> [extract_intact_tag(it) for it in ("my%20name jpsi-5-1", "my own job", "jpsi-5~1", "j~si-5-1")]
    ['jpsi-5-1', '', None, None]
    """
    tag, last = extract_tag(text), text.rpartition(" ")[2]
    matches = len(_TAG_PREFIX) - _count_differences(last, _TAG_PREFIX)
    is_like_tag = len(last) >= len(_TAG_PREFIX) and matches >= _MIN_MATCHES
    # a corrupt byte is replaced, or arrives as a character that is not printable
    is_garbled = not last.isprintable() or "\N{REPLACEMENT CHARACTER}" in last
    return None if is_garbled or (is_like_tag and not tag) else tag


def _count_differences(one: str, other: str) -> int:
    """Return the number of places where two texts differ, up to the end of the shorter."""
    return sum(a != b for a, b in zip(one, other, strict=False))

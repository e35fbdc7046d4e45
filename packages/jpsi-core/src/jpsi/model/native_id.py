"""What can be the native id of a job."""

from __future__ import annotations

from typing import TypeGuard

_LONGEST = 200


def is_native_id(text: object) -> TypeGuard[str]:
    """Whether `text` can be a native id: one printable word that no command takes for an option.

    >>> is_native_id("4711.pbs"), is_native_id("-1"), is_native_id("4711 4712")
    (True, False, False)
    """
    return (
        isinstance(text, str)
        and 0 < len(text) <= _LONGEST
        and text.isascii()
        and text.isprintable()
        and " " not in text
        and not text.startswith("-")
    )

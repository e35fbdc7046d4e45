"""Converts the spellings of a Flux job id into a decimal number and back.

Flux prints an id as `ƒ...` or `f...`, depending on the locale of the command, and accepts these forms and
others. jpsi uses the decimal number, which Flux accepts too and which does not depend on the locale.
"""

from __future__ import annotations

import re

from jpsi.plugin import hookimpl

#: RFC 19: the first character of an id in F58, for which Flux also takes a plain f.
HOOKED = "\N{LATIN SMALL LETTER F WITH HOOK}"
#: RFC 19: the digits of F58.
DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_F58 = re.compile(rf"[f{HOOKED}]([{DIGITS}]+)\Z")
_DECIMAL = re.compile(r"[0-9]+\Z")
_HEX = re.compile(r"0x([0-9a-f]+)\Z", re.IGNORECASE)
# dothex, and the job's directory in the key-value store
_DOTTED = re.compile(r"(?:job\.)?([0-9a-f]{4}(?:\.[0-9a-f]{4}){3})\Z", re.IGNORECASE)
_MAX_ID = 0xFFFF_FFFF_FFFF_FFFF


@hookimpl
def canonical_id(native_id: str) -> str:
    """Return the id as a decimal number.

    >>> {canonical_id(it) for it in ("f4JWpL1vw", "0x6a17f000000", "job.0000.06a1.7f00.0000")}
    {'7290690207744'}

    Raises:
        ValueError: the text is no id, or an id of words or emoji, which only Flux can convert.
    """
    number = _parse_number(native_id)
    if number is None or number > _MAX_ID:
        example = "f4JWpL1vw (`flux job id` translates words and emoji)"
        raise ValueError(f"{native_id!r} is not a Flux job id such as {example}")
    return str(number)


def f58(native_id: str) -> str:
    """Return a decimal id in the form that Flux's commands print in an ASCII locale.

    >>> f58("7290690207744")
    'f4JWpL1vw'
    """
    number, digits = int(native_id), ""
    while number:
        number, digit = divmod(number, len(DIGITS))
        digits = DIGITS[digit] + digits
    return f"f{digits or DIGITS[0]}"


def _parse_number(text: str) -> int | None:
    if _DECIMAL.match(text):
        return int(text)
    if match := _HEX.match(text) or _DOTTED.match(text):
        return int(match[1].replace(".", ""), 16)
    if match := _F58.match(text):
        number = 0
        for digit in match[1]:
            number = number * len(DIGITS) + DIGITS.index(digit)
        return number
    return None

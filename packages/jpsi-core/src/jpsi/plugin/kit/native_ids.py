"""The form of a batch system's native ids, which keeps other text from being taken for one."""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs

_DIGITS = re.compile(r"[0-9]+")
_PRINTED_LENGTH = 500


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text)


@attrs.frozen(slots=True)
class IdForm:
    r"""The form of one system's native ids.

    >>> form = IdForm("ACME", r"[1-9][0-9]*(\.[0-9]+)?", largest=99999)
    >>> form.has("17.1"), form.has("017"), form.has("100000"), form.has("*")
    (True, False, False, False)
    """

    #: The system's name, as users know it.
    system: str
    #: A pattern for the whole id; if an id has several parts, the first is a number.
    pattern: re.Pattern[str] = attrs.field(converter=_compiled)
    #: The largest number of an id: many commands truncate larger numbers to 32 bits and take them for other
    #: ids.
    largest: int | None = attrs.field(default=None, kw_only=True)

    def has(self, text: str) -> bool:
        """Return True if the text is the id of one job."""
        if not self.pattern.fullmatch(text):
            return False
        return self.largest is None or number(text) <= self.largest

    def canonical(self, text: str) -> str:
        """Return the text if it is an id: for the hook `canonical_id`.

        Raises:
            ValueError: it is no id.
        """
        if not self.has(text):
            msg = f"{text!r} is no job id of {self.system}'s"
            raise ValueError(msg)
        return text


def the_one_id(found: Iterable[str], printed: str) -> str:
    """Return the id that a submit command printed: for the hook `parse_submit`.

    Args:
        found: the texts in the output that look like an id; the same id may occur several times.
        printed: the whole output, for the message.

    Raises:
        ValueError: there is no id, or there are several.
    """
    ids = sorted(set(found))
    if len(ids) != 1:
        what = f"several job ids ({', '.join(ids)})" if ids else "no job id"
        msg = f"{what} in the answer {printed.strip()[:_PRINTED_LENGTH]!r}"
        raise ValueError(msg)
    return ids[0]


def number(native_id: str) -> int:
    """Return the number that a native id begins with, smaller for an older job; 0 if it has none.

    >>> number("17[3].server"), number("x17")
    (17, 0)
    """
    digits = _DIGITS.match(native_id)
    return int(digits[0]) if digits else 0

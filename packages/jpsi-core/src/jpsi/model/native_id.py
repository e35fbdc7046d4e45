"""The forms of job ids and native ids."""

from __future__ import annotations

import re
from typing import TypeGuard

_LONGEST = 200
# It becomes the name of a directory.
_JOB_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\Z")


def is_job_id(text: object) -> TypeGuard[str]:
    """Return True if `text` can be the id that jpsi gave a job.

    >>> is_job_id("06c9a39d-1"), is_job_id("../06c9a39d"), is_job_id("")
    (True, False, False)
    """
    return isinstance(text, str) and len(text) <= _LONGEST and _JOB_ID.match(text) is not None


def is_native_id(text: object) -> TypeGuard[str]:
    """Return True if `text` can be a native id: one printable word that no command takes for an option.

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

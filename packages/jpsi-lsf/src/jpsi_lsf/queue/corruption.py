"""Detects words that differ from LSF's words by one character: such output is corrupt, and no answer."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jpsi.plugin.kit import extract_tag

# The beginning of every tag
_TAG_PREFIX = "jpsi-"
_MIN_MATCHES = 3
# The directive with the tag, in a job's script that LSF prints as a single line
_DIRECTIVE = re.compile(r"#BSUB -Jd [^;\n]*?(jpsi-[A-Za-z0-9-]+)'?(?:;|\n)")

# A directive that may be corrupt. Only comment lines count, as a foreign job may run a program named jpsi-...
_POSSIBLE_DIRECTIVE = re.compile(r"(?:^|[;\n])#(?!!)[^;\n]*jpsi-")


def is_nearly(word: str, known: Iterable[str]) -> bool:
    """Return True if a word is one of these but for one character.

    >>> is_nearly("Ex~ted", ["Exited"]), is_nearly("Exited", ["Exited"]), is_nearly("Sent", ["Done"])
    (True, False, False)
    """
    return any(len(word) == len(it) and _count_differences(word, it) == 1 for it in known)


def parse_tag(text: str) -> str | None:
    """Return the tag at the end of a job's description, "" if there is none; None for a possibly corrupt tag.

    >>> parse_tag("my%20name jpsi-5-1"), parse_tag("my own job"), parse_tag("jpsi-5~1"), parse_tag("j~si-5-1")
    ('jpsi-5-1', '', None, None)
    """
    tag = extract_tag(text)
    last = text.rpartition(" ")[2]
    is_like_tag = (
        len(last) >= len(_TAG_PREFIX)
        and len(_TAG_PREFIX) - _count_differences(last, _TAG_PREFIX) >= _MIN_MATCHES
    )
    # a corrupt byte is replaced, or arrives as a character that is not printable
    is_garbled = not last.isprintable() or "\N{REPLACEMENT CHARACTER}" in last
    return None if is_garbled or (is_like_tag and not tag) else tag


def job_tag(description: str, command: str) -> str | None:
    """Return the tag of a job; None if there are two different tags, or a possibly corrupt one.

    LSF reports the whole script as the job's command. Its directive repeats the tag, even if a user has
    changed the job's description.

    >>> job_tag("", "#!/bin/sh;#BSUB -Jd jpsi-5-1;exec x")
    'jpsi-5-1'
    >>> job_tag("jpsi-5-1", "exec x"), job_tag("", "exec x")
    ('jpsi-5-1', '')
    >>> job_tag("", "#!/bin/sh;#BS~B -Jd jpsi-5-1;exec x"), job_tag("", "#!/bin/sh;exec jpsi-tool")
    (None, '')
    """
    tag, directive = parse_tag(description), _DIRECTIVE.search(command)
    if directive is None:
        return None if not tag and _POSSIBLE_DIRECTIVE.search(command) else tag
    return directive[1] if not tag or tag == directive[1] else None


def _count_differences(one: str, other: str) -> int:
    """Return the number of places where two texts differ, up to the end of the shorter."""
    return sum(a != b for a, b in zip(one, other, strict=False))

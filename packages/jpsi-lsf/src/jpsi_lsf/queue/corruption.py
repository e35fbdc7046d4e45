"""Detects words that differ from LSF's words by one character: such output is corrupt, and no answer."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jpsi.plugin.kit import extract_tag

# The beginning of every tag
_BEGINNING = "jpsi-"
_ENOUGH = 3
# The directive with the tag, in a job's script that LSF prints as a single line
_DIRECTIVE = re.compile(r"#BSUB -Jd [^;\n]*?(jpsi-[A-Za-z0-9-]+)'?(?:;|\n)")

# A directive that may be corrupt. Only comment lines count, as a foreign job may run a program named jpsi-...
_LIKE_DIRECTIVE = re.compile(r"(?:^|[;\n])#(?!!)[^;\n]*jpsi-")


def is_nearly(word: str, known: Iterable[str]) -> bool:
    """Return True if a word is one of these but for one character.

    >>> is_nearly("Ex~ted", ["Exited"]), is_nearly("Exited", ["Exited"]), is_nearly("Sent", ["Done"])
    (True, False, False)
    """
    return any(len(word) == len(it) and _differences(word, it) == 1 for it in known)


def tag_in(text: str) -> str | None:
    """Return the tag at the end of a job's description, "" if there is none; None for a possibly corrupt tag.

    >>> tag_in("my%20name jpsi-5-1"), tag_in("my own job"), tag_in("jpsi-5~1"), tag_in("j~si-5-1")
    ('jpsi-5-1', '', None, None)
    """
    tag = extract_tag(text)
    last = text.rpartition(" ")[2]
    is_like_one = len(last) >= len(_BEGINNING) and len(_BEGINNING) - _differences(last, _BEGINNING) >= _ENOUGH
    # a corrupt byte is replaced, or arrives as a character that is not printable
    is_garbled = not last.isprintable() or "\N{REPLACEMENT CHARACTER}" in last
    return None if is_garbled or (is_like_one and not tag) else tag


def tag_of(description: str, command: str) -> str | None:
    """Return the tag of a job; None if there are two different tags, or a possibly corrupt one.

    LSF reports the whole script as the job's command. Its directive repeats the tag, even if a user has
    changed the job's description.

    >>> tag_of("", "#!/bin/sh;#BSUB -Jd jpsi-5-1;exec x"), tag_of("jpsi-5-1", "exec x"), tag_of("", "exec x")
    ('jpsi-5-1', 'jpsi-5-1', '')
    >>> tag_of("", "#!/bin/sh;#BS~B -Jd jpsi-5-1;exec x"), tag_of("", "#!/bin/sh;exec jpsi-tool")
    (None, '')
    """
    tag, again = tag_in(description), _DIRECTIVE.search(command)
    if again is None:
        return None if not tag and _LIKE_DIRECTIVE.search(command) else tag
    return again[1] if not tag or tag == again[1] else None


def _differences(one: str, other: str) -> int:
    """Return the number of places where two texts differ, up to the end of the shorter."""
    return sum(a != b for a, b in zip(one, other, strict=False))

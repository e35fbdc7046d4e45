"""Makes job names legal for the batch system, and stores a job's tag and full name in its variables."""

from __future__ import annotations

import re
from urllib.parse import quote

from jpsi.plugin.kit import extract_tag

_DEFAULT_NAME = "jpsi"
# Measured on OpenPBS 23.06.06: qsub refuses other characters and longer names.
_ILLEGAL = re.compile(r"[^A-Za-z0-9._+-]")
_LONGEST = 230
# The longest part of an illegal name that is kept in a variable.
_LONGEST_KEPT = 1000

#: The variable that carries the tag.
TAG = "JPSI_TAG"
_NAME = "JPSI_NAME"
#: The variables that a job must not inherit from a surrounding job.
VARIABLES = (TAG, _NAME)
# A list of variables as qstat prints it, `A=b,C=d` or `"A":"b"`; a value that ends with a backslash escapes
# the separator that follows.
_TAGGED = re.compile(rf"\b{TAG}\"?[=:]\s*\"?([A-Za-z0-9-]+)")
# The tag's variable in such a list, or in a list with one variable per line. Only another variable may follow
# a comma, as otherwise the comma would be part of the value.
_NEXT = r"(?=\n|,[^,=\n]+=|\Z)"
_EXACT = re.compile(rf"(?:^|[,\n]){TAG}=([^,\n]*){_NEXT}")
# Text that looks like a tag, as the value of another variable
_ASTRAY = re.compile(rf"=jpsi-[A-Za-z0-9-]+{_NEXT}")


def legal_name(name: str | None) -> str:
    """Return the name with illegal characters replaced, as qsub accepts it.

    >>> legal_name("my job: 1/2")
    'my_job__1_2'
    """
    legal = _ILLEGAL.sub("_", name or _DEFAULT_NAME)[:_LONGEST]
    # not every version accepts a name that looks like an option or a hidden file
    return legal if legal[0].isalnum() else f"_{legal[1:]}"


def tag_variables(tag: str, name: str | None) -> str:
    """Return the variables with the job's tag, and with its URL-encoded name if that is not legal.

    >>> tag_variables("jpsi-1-1", "my job")
    'JPSI_TAG=jpsi-1-1,JPSI_NAME=my%20job'
    """
    if not name or legal_name(name) == name:
        return f"{TAG}={tag}"
    kept = quote(name[:_LONGEST_KEPT], safe="", errors="replace")[:_LONGEST_KEPT]
    return f"{TAG}={tag},{_NAME}={kept}"


def tags_in(variables: str) -> list[str]:
    """Return all texts in a list of variables, as qstat prints it, that follow the tag's variable name."""
    return _TAGGED.findall(variables)


def tag_in(variables: str, *, is_whole: bool) -> str | None:
    """Return the only tag in a list of variables; "" if there is none, None if that is uncertain.

    >>> tag_in("A=b,JPSI_TAG=jpsi-5-1,C=d", is_whole=True), tag_in("A=b", is_whole=True)
    ('jpsi-5-1', '')

    Args:
        variables: the list as qstat prints it.
        is_whole: True if the list is complete, so that a missing tag means that there is none.
    """
    tags: set[str] = set(_EXACT.findall(variables))
    if len(tags) == 1 and (tag := tags.pop()) and extract_tag(tag) == tag:
        return tag
    is_without = is_whole and TAG not in variables and not _ASTRAY.search(variables)
    return "" if is_without else None

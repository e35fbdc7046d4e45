"""A job's name, which the batch system restricts, and its tag, by which the job is found again."""

from __future__ import annotations

import re
from urllib.parse import quote

from jpsi.plugin.kit import carried_tag

_DEFAULT_NAME = "jpsi"
# Measured on OpenPBS 23.06.06: qsub refuses other characters, and longer names.
_ILLEGAL = re.compile(r"[^A-Za-z0-9._+-]")
_LONGEST = 230
# More of a name that had to be changed is not kept.
_LONGEST_KEPT = 1000

#: The variable that carries the tag.
TAG = "JPSI_TAG"
_NAME = "JPSI_NAME"
#: The variables that must not come from a surrounding job.
VARIABLES = (TAG, _NAME)
# A list of variables as qstat shows it, `A=b,C=d` or `"A":"b"`; a value that ends with a backslash swallows
# what stands between it and the next.
_TAGGED = re.compile(rf"\b{TAG}\"?[=:]\s*\"?([A-Za-z0-9-]+)")
# In such a list, or with a variable in each line, the variable itself; what follows a comma is another
# variable, and not what should have been a part of the tag.
_NEXT = r"(?=\n|,[^,=\n]+=|\Z)"
_EXACT = re.compile(rf"(?:^|[,\n]){TAG}=([^,\n]*){_NEXT}")
# What looks like a tag under another name
_ASTRAY = re.compile(rf"=jpsi-[A-Za-z0-9-]+{_NEXT}")


def legal_name(name: str | None) -> str:
    """The name that the batch system is told.

    >>> legal_name("my job: 1/2")
    'my_job__1_2'
    """
    legal = _ILLEGAL.sub("_", name or _DEFAULT_NAME)[:_LONGEST]
    # an option's value that looks like an option, or a hidden file, is not for every version
    return legal if legal[0].isalnum() else f"_{legal[1:]}"


def tag_variables(tag: str, name: str | None) -> str:
    """The job's tag as a list of variables; with its name, encoded as in a URL, if that had to be changed.

    >>> tag_variables("jpsi-1-1", "my job")
    'JPSI_TAG=jpsi-1-1,JPSI_NAME=my%20job'
    """
    if not name or legal_name(name) == name:
        return f"{TAG}={tag}"
    kept = quote(name[:_LONGEST_KEPT], safe="", errors="replace")[:_LONGEST_KEPT]
    return f"{TAG}={tag},{_NAME}={kept}"


def tags_in(variables: str) -> list[str]:
    """The tag in a list of variables as qstat shows it, with what else looks like one in any value."""
    return _TAGGED.findall(variables)


def tag_in(variables: str, *, is_whole: bool) -> str | None:
    """The one tag in a list of variables; empty if there is none, None if that cannot be told.

    >>> tag_in("A=b,JPSI_TAG=jpsi-5-1,C=d", is_whole=True), tag_in("A=b", is_whole=True)
    ('jpsi-5-1', '')

    Args:
        variables: the list.
        is_whole: whether no other variable can be the tag.
    """
    tags: set[str] = set(_EXACT.findall(variables))
    if len(tags) == 1 and (tag := tags.pop()) and carried_tag(tag) == tag:
        return tag
    is_without = is_whole and TAG not in variables and not _ASTRAY.search(variables)
    return "" if is_without else None

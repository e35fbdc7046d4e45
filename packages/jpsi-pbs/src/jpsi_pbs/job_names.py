"""Makes job names legal for the batch system, and stores a job's tag and full name in its variables.

jpsi finds a job by its tag if the output of qsub was lost, or if an id may belong to another job.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from jpsi.plugin.kit import extract_tag

_DEFAULT_NAME = "jpsi"
# Measured on OpenPBS 23.06.06: qsub refuses other characters and longer names.
_ILLEGAL_CHARACTERS = re.compile(r"[^A-Za-z0-9._+-]")
_MAX_LENGTH = 230
# The longest part of an illegal name that is kept in a variable.
_MAX_QUOTED_NAME = 1000

#: The variable that carries the tag.
TAG = "JPSI_TAG"
_NAME = "JPSI_NAME"
#: The variables that a job must not inherit from a surrounding job.
VARIABLES = (TAG, _NAME)
# A list of variables as qstat prints it, `A=b,C=d` or `"A":"b"`; a value that ends with a backslash escapes
# the separator that follows.
_TAG_TEXT = re.compile(rf"\b{TAG}\"?[=:]\s*\"?([A-Za-z0-9-]+)")
# The tag's variable in such a list, or in a list with one variable per line. Only another variable may follow
# a separator, as otherwise that would be part of the value.
_VARIABLE_END = r"(?=[,\n][^,=\n]+=|\n?\Z)"
_TAG_VARIABLE = re.compile(rf"(?:^|[,\n]){TAG}=([^,\n]*){_VARIABLE_END}")
# What is left of the tag's variable if three characters of it are garbled: its name, perhaps without the end,
# or a whole tag
_DAMAGED_TAG = re.compile(rf"JPSI_TA(?!SK)|jpsi-[0-9a-f-]+-[0-9]+{_VARIABLE_END}")


def legal_name(name: str | None) -> str:
    """Return the name with illegal characters replaced, as qsub accepts it.

    >>> legal_name("my job: 1/2")
    'my_job__1_2'
    """
    legal = _ILLEGAL_CHARACTERS.sub("_", name or _DEFAULT_NAME)[:_MAX_LENGTH]
    # not every version accepts a name that looks like an option or a hidden file
    return legal if legal[0].isalnum() else f"_{legal[1:]}"


def tag_variables(tag: str, name: str | None) -> str:
    """Return the variables with the job's tag, and with its URL-encoded name if that is not legal.

    >>> tag_variables("jpsi-1-1", "my job")
    'JPSI_TAG=jpsi-1-1,JPSI_NAME=my%20job'
    """
    if not name or legal_name(name) == name:
        return f"{TAG}={tag}"
    quoted = quote(name[:_MAX_QUOTED_NAME], safe="", errors="replace")[:_MAX_QUOTED_NAME]
    return f"{TAG}={tag},{_NAME}={quoted}"


def find_tags(variables: str) -> list[str]:
    """Return all texts in a list of variables, as qstat prints it, that follow the tag's variable name."""
    return _TAG_TEXT.findall(variables)


def parse_tag(variables: str, *, is_complete: bool) -> str | None:
    """Return the only tag in a list of variables; "" if there is none, None if that is uncertain.

    >>> parse_tag("A=b,JPSI_TAG=jpsi-5-1,C=d", is_complete=True), parse_tag("A=b", is_complete=True)
    ('jpsi-5-1', '')

    Args:
        variables: the list as qstat prints it.
        is_complete: True if the list is complete, so that a missing tag means that there is none.
    """
    tags: set[str] = set(_TAG_VARIABLE.findall(variables))
    if len(tags) == 1 and (tag := tags.pop()) and extract_tag(tag) == tag:
        return tag
    has_no_tag = is_complete and not _DAMAGED_TAG.search(variables)
    return "" if has_no_tag else None

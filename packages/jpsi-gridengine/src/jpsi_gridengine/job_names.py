"""The name that a job has in Grid Engine: one that it allows, and in which the job's tag can be found."""

from __future__ import annotations

import re
from urllib.parse import quote

from jpsi.plugin import Observation

# Less than what sge_types(5) of 8.1.9 calls an object_name, as releases differ. A name must not begin with
# a digit, and one that begins otherwise than with a letter is easily taken for something else.
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.+-]")
_FIRST = re.compile(r"[A-Za-z_]")
# With the tag it stays far below the 512 bytes that 8.1.9 allows, and below the 256 of others.
_LONGEST = 160
# The name as the user gave it is kept in the job's context, which `qstat -j` shows.
_CONTEXT = "jpsi_name"
# Nothing in it means anything to qdel: it is neither a number nor a pattern.
_OF_JPSI = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]*")

#: The detail of an observation in which a job's name in Grid Engine stands, if it is one that jpsi gave it.
NAME = "gridengine.name"


def job_name(name: str | None, tag: str) -> str:
    """The name of a job with its tag at the end, the one place that `qstat` shows for all jobs at once.

    >>> job_name("2nd run", "jpsi-5-1"), job_name(None, "jpsi-5-1")
    ('_2nd_run.jpsi-5-1', 'jpsi-5-1')
    """
    if not name:
        return tag
    legal = _ILLEGAL.sub("_", name)[:_LONGEST]
    return f"{legal if _FIRST.match(legal) else f'_{legal}'}.{tag}"


def observed_job_name(seen: Observation | None) -> str | None:
    """The name that jpsi gave to a job, with the job's tag at the end; None if it is not known."""
    name = None if seen is None or not seen.tag else seen.details.get(NAME)
    return name if isinstance(name, str) and _OF_JPSI.fullmatch(name) else None


def context(name: str | None) -> str | None:
    """The name as it was given, as a context variable without anything that `-ac` would take apart.

    >>> context("2nd run")
    'jpsi_name=2nd%20run'
    """
    return f"{_CONTEXT}={quote(name, safe='', errors='surrogatepass')}" if name else None

"""Makes job names that Grid Engine allows and that end with the job's tag.

jpsi finds a job by its tag if the output of qsub was lost, or if an id may belong to another job.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from jpsi.plugin import Observation

# Fewer characters than an object_name in sge_types(5) of 8.1.9 may have, as releases differ. A name must not
# start with a digit; Grid Engine may take other first characters than letters for something else.
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.+-]")
_FIRST_CHARACTER = re.compile(r"[A-Za-z_]")
# With the tag, a name stays below the 512 bytes that 8.1.9 allows, and below the 256 of other releases.
_MAX_LENGTH = 160
# The context variable with the user's original name, which `qstat -j` shows.
_CONTEXT = "jpsi_name"
# A name that qdel takes literally: it is neither a number nor a pattern.
_LITERAL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]*")

#: The detail of an Observation with the job's name in Grid Engine, if jpsi chose that name.
NAME_DETAIL = "gridengine.name"


def job_name(name: str | None, tag: str) -> str:
    """Return a legal name with the tag at its end; `qstat` shows no other field of the user's for all jobs.

    >>> job_name("2nd run", "jpsi-5-1"), job_name(None, "jpsi-5-1")
    ('_2nd_run.jpsi-5-1', 'jpsi-5-1')
    """
    if not name:
        return tag
    legal = _ILLEGAL.sub("_", name)[:_MAX_LENGTH]
    return f"{legal if _FIRST_CHARACTER.match(legal) else f'_{legal}'}.{tag}"


def jpsi_job_name(observation: Observation | None) -> str | None:
    """Return the name that jpsi gave to a job, which ends with the tag; None if it is not known."""
    name = None if observation is None or not observation.tag else observation.details.get(NAME_DETAIL)
    return name if isinstance(name, str) and _LITERAL_NAME.fullmatch(name) else None


def context(name: str | None) -> str | None:
    """Return the user's name as a context variable, URL-encoded so that `-ac` does not split it.

    >>> context("2nd run")
    'jpsi_name=2nd%20run'
    """
    return f"{_CONTEXT}={quote(name, safe='', errors='surrogatepass')}" if name else None

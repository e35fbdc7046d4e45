"""Derives from the names of a job's files which attempt was the last, and whether an attempt has run.

Recovery and the job store use it: a job that has run must never be submitted again as if it had not.

Files get lost: a crash loses a write, a backup restores an older state. Any file that a run left is evidence
that the job has run, and a missing file never is evidence against it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: The names of files that the submitting process, or a process that follows the job, writes for an attempt.
_KINDS = ("intent", "array", "run", "claim", "start", "rerun", "stop", "final", "unsent", "get", "got")
_ATTEMPT_FILE = re.compile(rf"(?:{'|'.join(_KINDS)})\.([1-9][0-9]{{0,8}})(?:\.|\Z)")
#: The names of files that the runner writes, besides markers.
_RUN_FILES = ("start", "rerun", "phase", "prologue", "nodes", "launch", "staging")
#: Streams without a path of their own. They do not name their attempt; if a job has only one,
#: it has run.
_STREAMS = frozenset({"stdout", "stderr"})


def last_attempt(job_id: str, names: Iterable[str]) -> int:
    """Return the number of the last attempt that any of these file names shows; 0 if none does.

    >>> last_attempt("a1", ["intent.1.json", "run.1", "a1.2.exit.run.0"])
    2
    """
    return max((attempt_of(job_id, name) for name in names), default=0)


def attempt_of(job_id: str, name: str) -> int:
    """Return the number of the attempt that a file belongs to; 0 if its name does not say."""
    matched = _ATTEMPT_FILE.match(name)
    if matched is not None:
        return int(matched[1])
    own, _, fact = name.partition(".")
    number, dot, _ = fact.partition(".")
    return int(number) if own == job_id and dot and number.isascii() and number.isdigit() else 0


def has_run(job_id: str, attempt: int, names: Iterable[str]) -> bool:
    """Return True if any of these file names is evidence that an attempt began to run.

    >>> has_run("a1", 1, ["intent.1.json", "claim.1"]), has_run("a1", 1, ["intent.1.json", "start.1.0"])
    (False, True)
    """
    markers = f"{job_id}.{attempt}."
    files = tuple(f"{kind}.{attempt}" for kind in _RUN_FILES)
    streams = _STREAMS if attempt == 1 else frozenset[str]()
    return any(
        name in streams
        or name.startswith(markers)
        or (name.startswith(files) and name.split(".")[1] == str(attempt))
        for name in names
    )

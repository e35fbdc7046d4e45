"""Keeps a copy of the records of ended jobs in one file: a listing opens no other file of such a job.

A copy counts only while the folder of the job is the same directory, with the same time of its last change,
as when it was read. A job that has ended changes by files that appear in its folder, which changes that time.
The file may be removed at any time.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from jpsi_engine.host import read_text, write
from jpsi_engine.spool.damage import DAMAGE
from jpsi_engine.verdict import Marker

#: The fields of `JobRecord` that are copied; an ended job that is copied has the defaults in all others.
COPIED = ("markers", "attempt", "native_id", "started_ns", "stop", "final", "intent")
_NAME = "ended.json"
# To be raised when the meaning of an entry changes; a file of another version is not read.
_VERSION = 1
# The file is written again when it lacks so many jobs, or that share of those in it.
_MIN_CHANGES = 100
_SHARE = 20
# A folder that changed less than so many seconds ago may change again at the same time, by the clock of its
# file system.
_SETTLED_SECONDS = 2.0


class EndedRecords:
    """The copies in one spool, for a caller that reads all of its jobs and closes this at its end.

    Args:
        root: the root of the spool.

    Raises:
        OSError: the folder of all jobs cannot be opened.
    """

    def __init__(self, root: str) -> None:
        self._path = f"{root}/{_NAME}"
        # from a descriptor the folder of a job is found fastest
        self._jobs = os.open(f"{root}/jobs", os.O_RDONLY | os.O_DIRECTORY)
        self._settled_ns = time.time_ns() - int(_SETTLED_SECONDS * 1e9)
        self._known = self._load()
        self._kept: dict[str, Sequence[Any]] = {}
        self._new: dict[str, Sequence[Any]] = {}
        self._identities: dict[str, Sequence[int]] = {}

    def _load(self) -> Mapping[str, Sequence[Any]]:
        with contextlib.suppress(OSError, *DAMAGE):
            content = json.loads(read_text(self._path))
            if content["version"] == _VERSION and isinstance(content["jobs"], dict):
                return content["jobs"]
        return {}

    def find(self, job_id: str) -> dict[str, Any] | None:
        """Return the fields `COPIED` of the record of a job; None if there is no copy.

        It is called before the files of the job are read, so that `add` notes the folder as it was then.
        """
        try:
            status = os.stat(job_id, dir_fd=self._jobs)
            self._identities[job_id] = identity = [status.st_ino, status.st_ctime_ns]
            entry = self._known.get(job_id)
            if entry is not None and entry[0] == identity:
                markers = [Marker(job_id, *it) for it in entry[1]]
                fields = dict(zip(COPIED, (markers, *entry[2:]), strict=True))
                self._kept[job_id] = entry
                return fields
        except (OSError, *DAMAGE):
            pass  # reading the job's own files shows what is wrong with them
        return None

    def add(self, job_id: str, fields: Mapping[str, Any]) -> None:
        """Note the fields `COPIED` of an ended job that `find` did not find, for later callers."""
        identity = self._identities.get(job_id)
        if identity is not None and identity[1] < self._settled_ns:
            markers = [attrs.astuple(it)[1:] for it in fields["markers"]]
            self._new[job_id] = identity, markers, *(fields[name] for name in COPIED[1:])

    def close(self) -> None:
        """Write the file, if much has changed."""
        os.close(self._jobs)
        changes = len(self._new) + len(self._known) - len(self._kept)
        if changes > max(_MIN_CHANGES, len(self._kept) // _SHARE):
            content = {"version": _VERSION, "jobs": {**self._kept, **self._new}}
            # another user may read the spool, or the disk may be full
            with contextlib.suppress(OSError):
                write(self._path, json.dumps(content, separators=(",", ":")).encode())

"""The journal of a queue: one line of JSON for each submission that was accepted, and for what became of it.

A submission is in the journal before any of its jobs is handed over. So a server that was killed can start
again, and a client that repeats its request gets the answer of the first one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jpsi_engine import open_private

#: An entry of the journal.
Entry = Mapping[str, Any]

# A submission is forgotten so many seconds after the end of its last job: 30 days.
_KEPT_SECONDS = 30 * 86400.0


def entry_number(entry: Entry) -> int:
    """Return the number of the submission that an entry is about.

    >>> entry_number({"kind": "end", "job": "17_3"}), entry_number({"kind": "handover", "jobs": ["18", "19"]})
    (17, 18)
    """
    if entry["kind"] == "submission":
        return int(entry["number"])
    native_id = entry["jobs"][0] if entry["kind"] == "handover" else entry["job"]
    return submission_number(native_id)


def submission_number(native_id: str) -> int:
    """Return the number of the submission that a job is of.

    >>> [submission_number(it) for it in ("17", "17_3", "17[3].server")]
    [17, 17, 17]
    """
    return int(re.split("[^0-9]", native_id, maxsplit=1)[0])


def old_numbers(entries: Iterable[Entry], now: float) -> set[int]:
    """Return the numbers of the submissions that may be forgotten; the last one keeps its number in use.

    While a job has not ended, none is forgotten: it may depend on any other.
    """
    left: dict[int, int] = {}
    ends: dict[int, float] = {}
    for entry in entries:
        number = entry_number(entry)
        if entry["kind"] == "submission":
            left[number] = len(entry["ids"])
        elif entry["kind"] == "end":
            left[number] -= 1
            ends[number] = max(entry["ended"], ends.get(number, 0.0))
    if any(count > 0 for count in left.values()):
        return set()
    last = max(left, default=0)
    return {it for it, end in ends.items() if it != last and end < now - _KEPT_SECONDS}


class Journal:
    """A file of entries, to which one process appends.

    Args:
        path: the file, which is made if there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        content = path.read_bytes()
        # a line without its end was cut when its writer was killed: what it says was never answered
        whole = content.rpartition(b"\n")[0]
        self._lines = whole.splitlines()
        os.ftruncate(self._file, len(whole) + 1 if whole else 0)

    def entries(self) -> Iterator[Entry]:
        """Yield the entries that were in the file when it was opened."""
        yield from map(json.loads, self._lines)

    def append(self, entry: Entry, *, is_durable: bool = False) -> None:
        """Append an entry; if it is durable, it outlasts a crash of the machine when this returns.

        A closed journal takes none: a later server finds out what became of the jobs.

        Raises:
            OSError: it cannot be written.
        """
        if self._file is None:
            return
        os.write(self._file, json.dumps(entry).encode("ascii") + b"\n")
        if is_durable:
            os.fsync(self._file)

    def replace(self, entries: Iterable[Entry]) -> None:
        """Replace all entries; if this process is killed meanwhile, the file has the old ones.

        Raises:
            OSError: they cannot be written.
        """
        new = self._path.with_suffix(".new")
        new.unlink(missing_ok=True)
        file = open_private(new, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        with os.fdopen(os.dup(file), "wb") as stream:
            stream.writelines(json.dumps(it).encode("ascii") + b"\n" for it in entries)
        os.fsync(file)
        new.replace(self._path)
        self.close()
        self._file = file

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
        self._file = None

"""The journal of a queue: one line of JSON for each submission that was accepted, and for what became of it.

A submission is in the journal before any of its jobs is handed over. So a server that was killed can start
again, and a client that repeats its request gets the answer of the first one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jpsi_engine import open_private

#: An entry of the journal.
Entry = Mapping[str, Any]


class Journal:
    """A file of entries, to which one process appends.

    Args:
        path: the file, which is made if there is none.
    """

    def __init__(self, path: Path) -> None:
        self._file = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
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

        Raises:
            OSError: it cannot be written.
        """
        os.write(self._file, json.dumps(entry).encode("ascii") + b"\n")
        if is_durable:
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

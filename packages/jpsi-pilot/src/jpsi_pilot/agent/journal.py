"""The agent's journal: the file that records each event before it takes effect.

A new agent rebuilds its `state` from the file, so that no job is lost if the agent or its machine crashes.
"""

from __future__ import annotations

import json
import os
import secrets
import string
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from ..protocol import write_private
from .state import AgentState, Event

_FILE_NAME = "journal"
_LETTER_COUNT = 8


class Journal:
    """Events, one line of JSON each; only one process has the file open."""

    def __init__(self, folder: Path, forget_before: float) -> None:
        """Read the file, drop jobs that ended before `forget_before`, and rewrite the rest."""
        self.state = AgentState()
        path = folder / _FILE_NAME
        for event in _read_events(path):
            self.state.apply(event)
        if not self.state.letters:
            letters = "".join(secrets.choice(string.ascii_lowercase) for _ in range(_LETTER_COUNT))
            self.state.apply({"what": "begun", "letters": letters, "number": 0, "pilot": 0})
        self._path = path
        self._file = self._rewrite(forget_before)

    def write(self, *events: Event, synced: bool = False) -> None:
        """Write events to the file, and apply them to the state.

        Args:
            events: the events, in order.
            synced: whether the events must be on the disk before this returns, as they must before a client
                gets an answer.
        """
        self._file.writelines(map(_render_line, events))
        self._file.flush()
        if synced:
            os.fsync(self._file.fileno())
        for event in events:
            self.state.apply(event)

    def compact(self, forget_before: float) -> None:
        """Drop jobs that ended before this time, so that memory and file do not grow for ever."""
        self._file.close()
        self._file = self._rewrite(forget_before)

    def _rewrite(self, forget_before: float) -> TextIO:
        self.state.prune(forget_before)
        write_private(self._path, "".join(map(_render_line, self.state.events())).encode(), synced=True)
        return self._path.open("a", encoding="utf-8")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _render_line(event: Event) -> str:
    return json.dumps(event, separators=(",", ":")) + "\n"


def _read_events(path: Path) -> Iterator[Event]:
    """Yield the events in a file; skip an incomplete last line, which a crash of the machine may leave."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    for line in text.split("\n")[:-1]:
        yield json.loads(line)

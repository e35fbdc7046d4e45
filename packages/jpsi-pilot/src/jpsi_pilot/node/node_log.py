"""What a node writes into its pilot's folder: which runs began and ended there, and that all is over."""

from __future__ import annotations

import os
from pathlib import Path

import attrs

from ..client import process
from ..protocol import End, pilot_of

_FOLDER = "nodes"


def log_of(folder: Path, place: str) -> Path:
    """The file of a place."""
    return folder / _FOLDER / place.partition("/")[2]


def carrier_of(place: str) -> str:
    """The name of the log, beside those of places, of an engine that carries the runs of all nodes itself.

    It tells how runs ended; machines do not write into each other's files.
    """
    return f"{pilot_of(place)}/carrier"


@attrs.frozen(slots=True)
class NodeLog:
    """The file of one place; each line is written at once, by the node supervisor or its worker."""

    path: Path

    @property
    def folder(self) -> Path:
        """The pilot's."""
        return self.path.parent.parent

    def beginning(self, native_id: str, restarts: int) -> None:
        """A run is about to begin."""
        self._write(f"beginning {native_id} {restarts}")

    def worker(self, pid: int) -> None:
        """This process will start runs."""
        self._write(f"worker {process(pid)}")

    def begun(self, native_id: str, restarts: int, pid: int) -> None:
        """A run has begun, with this process as the leader of its session."""
        self._write(f"begun {native_id} {restarts} {process(pid)}")

    def ended(self, native_id: str, restarts: int, end: End) -> None:
        """A run has ended."""
        self._write(
            f"ended {native_id} {restarts} {'-' if end.code is None else end.code} {end.why}".rstrip()
        )

    def over(self) -> None:
        """Nothing runs here any more, or ever will."""
        self._write("over")

    def _write(self, line: str) -> None:
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(fd, f"{line}\n".encode())
        finally:
            os.close(fd)


@attrs.define(slots=True)
class NodeStory:
    """What such a file tells."""

    #: The runs that have begun, or may have, by native id and number of restarts.
    begun: set[tuple[str, int]] = attrs.field(factory=set)
    #: The process that starts them; empty if there was none yet.
    worker: str = ""
    #: The leaders of the sessions of those that have not ended.
    sessions: dict[tuple[str, int], str] = attrs.field(factory=dict)
    #: How runs ended.
    ends: dict[tuple[str, int], End] = attrs.field(factory=dict)
    over: bool = False


def story(path: Path) -> NodeStory:
    """What a file tells; one that is not there tells nothing.

    Raises:
        OSError: it cannot be read.
    """
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return NodeStory()
    told = NodeStory()
    for line in text.split("\n")[:-1]:
        match line.split():
            case ["beginning", native_id, restarts]:
                told.begun.add((native_id, int(restarts)))
            case ["worker", worker]:
                told.worker = worker
            case ["begun", native_id, restarts, leader]:
                told.sessions[native_id, int(restarts)] = leader
            case ["ended", native_id, restarts, code, *why]:
                told.sessions.pop((native_id, int(restarts)), None)
                told.ends[native_id, int(restarts)] = End(
                    code=None if code == "-" else int(code), why="".join(why)
                )
            case ["over"]:
                told.over = True
    return told

"""The log of a node, which records the runs that have begun and ended there, and requests to end runs.

Both are files in the pilot's directory. An agent that has no contact with a node reads its log, to learn what
became of the jobs there. It requests the end of a run by a file if the node reports to an earlier agent.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import attrs

from ..client import process_name
from ..protocol import End, pilot_of

log = logging.getLogger(__name__)

_FOLDER, _STOPS = "nodes", "stops"


def log_path(folder: Path, node: str) -> Path:
    """Return the log file of a node."""
    return folder / _FOLDER / node.partition("/")[2]


def engine_log_node(node: str) -> str:
    """Return the log name of an engine that itself runs the tasks of all nodes.

    Such an engine records the ends of runs in a log of its own, beside the logs of the nodes: no machine
    writes into a file of another one.
    """
    return f"{pilot_of(node)}/_engine"


@attrs.frozen(slots=True)
class NodeLog:
    """The log of one node; the node supervisor or its worker writes each line at once."""

    path: Path

    @property
    def folder(self) -> Path:
        """The pilot's directory."""
        return self.path.parent.parent

    def record_beginning(self, native_id: str, restarts: int) -> None:
        """Record that a run is about to begin."""
        self._append(f"beginning {native_id} {restarts}")

    def record_worker(self, pid: int) -> None:
        """Record the process that will start runs."""
        self._append(f"worker {process_name(pid)}")

    def record_starter(self, pid: int) -> None:
        """Record the process that starts programs for the worker."""
        self._append(f"starter {process_name(pid)}")

    def record_begun(self, native_id: str, restarts: int, pid: int, start: int = 0) -> None:
        """Record that a run has begun, with this process as the leader of its session.

        Args:
            native_id: the job.
            restarts: how often it was requeued before.
            pid: the process.
            start: its start time, as proc(5) counts it; 0 if the caller does not know it.
        """
        leader = f"{pid}.{start}" if start else process_name(pid)
        self._append(f"begun {native_id} {restarts} {leader}")

    def record_ended(self, native_id: str, restarts: int, end: End) -> None:
        """Record the end of a run; if that fails, log a warning.

        The agent gets the end all the same; only a later agent would have read the log.
        """
        code = "-" if end.code is None else end.code
        try:
            self._append(f"ended {native_id} {restarts} {code} {end.why}".rstrip())
        except OSError as e:
            log.warning("the node could not record the end of job %s in its log: %s", native_id, e)

    def record_over(self) -> None:
        """Record that nothing runs on this node any more, or ever will."""
        self._append("over")

    def _append(self, line: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            fd = os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
            fd = os.open(self.path, flags, 0o600)
        try:
            os.write(fd, f"{line}\n".encode())
        finally:
            os.close(fd)


@attrs.define(slots=True)
class NodeLogContent:
    """The content of a node's log."""

    #: The runs that have begun, or may have, by native id and number of restarts.
    begun: set[tuple[str, int]] = attrs.field(factory=set)
    #: The process that starts them; empty if there was none yet.
    worker: str = ""
    #: The process that starts programs for it; empty if there was none yet.
    starter: str = ""
    #: The session leaders of the runs that have not ended.
    sessions: dict[tuple[str, int], str] = attrs.field(factory=dict)
    #: The ends of runs.
    ends: dict[tuple[str, int], End] = attrs.field(factory=dict)
    over: bool = False

    @property
    def unrecorded(self) -> list[str]:
        """The jobs that may have begun without a record of it, as their worker was killed meanwhile."""
        return [run[0] for run in self.begun if run not in self.sessions and run not in self.ends]


def read_node_log(path: Path) -> NodeLogContent:
    """Return the content of a log; a missing file counts as an empty one.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return NodeLogContent()
    content = NodeLogContent()
    for line in text.split("\n")[:-1]:
        match line.split():
            case ["beginning", native_id, restarts]:
                content.begun.add((native_id, int(restarts)))
            case ["worker", worker]:
                content.worker = worker
            case ["starter", starter]:
                content.starter = starter
            case ["begun", native_id, restarts, leader]:
                content.sessions[native_id, int(restarts)] = leader
            case ["ended", native_id, restarts, code, *why]:
                content.sessions.pop((native_id, int(restarts)), None)
                content.ends[native_id, int(restarts)] = End(
                    code=None if code == "-" else int(code), why="".join(why)
                )
            case ["over"]:
                content.over = True
    return content


def ended_nodes(folder: Path) -> list[str]:
    """Return the names of the nodes of a pilot, without the pilot's own, on which nothing runs any more.

    Args:
        folder: the pilot's directory.
    """
    try:
        return sorted(it.name for it in (folder / _FOLDER).iterdir() if read_node_log(it).over)
    except OSError:
        return []


def request_stop(folder: Path, native_id: str) -> None:
    """Request the end of a run.

    Args:
        folder: the directory of its pilot.
        native_id: the native id of its job.

    Raises:
        OSError: the request cannot be written; the directory of a pilot that is over is gone.
    """
    requests = folder / _STOPS
    requests.mkdir(mode=0o700, exist_ok=True)
    (requests / native_id).touch()


def requested_stops(folder: Path) -> list[str]:
    """Return the native ids of the jobs that another agent requests to stop in a pilot's directory."""
    try:
        return [it.name for it in (folder / _STOPS).iterdir()]
    except OSError:
        return []

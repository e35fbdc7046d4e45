"""The server of one queue: it answers the commands of programs, and ends once it has nothing to do.

`client` starts it, and gives it the lock on the directory of the queue as file descriptor 3. The socket in
that directory, which only the user can enter, is the way to it; it listens to no port.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import jpsi
from jpsi.plugin import CommandResult
from jpsi_testing.fake import (
    Invocation,
    Speaker,
    TaskLaunch,
    find_fake,
    read_stdin,
    receive,
    result_fields,
    send,
)

from .job_queue import JobQueue

log = logging.getLogger(__name__)

#: The entry-point group of the commands that programs may speak.
GROUP = "jpsi.speakers"
#: The file in the directory of a queue that says which executor it is for.
TARGET = "target.json"
#: The file descriptor of the lock, which lasts as long as the server.
LOCK = 3
# The server ends if it got no call for so many seconds, and no job needs it.
_IDLE_SECONDS = 60.0
_CHECK_SECONDS = 1.0
# The variables that the server keeps: a job has those of its own submission, and these.
_KEPT = (
    "HOME",
    "JPSI_CONFIG",
    "JPSI_PLUGIN_PATH",
    "LANG",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
)
_KEPT_PREFIXES = ("LC_", "SSH_AUTH", "XDG_")


class Server:
    """A server on a Unix socket.

    Args:
        queue: the jobs.
        listener: the socket, which listens.
        reads_stdin: returns True if a call reads its standard input.
    """

    def __init__(
        self, queue: JobQueue, listener: socket.socket, reads_stdin: Callable[[Invocation], bool]
    ) -> None:
        self._queue = queue
        self._reads_stdin = reads_stdin
        self._listener = listener
        self._lock = threading.Lock()
        self._connections = 0
        self._last_call = time.monotonic()

    def run(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        """Answer calls until there was none for so many seconds, and no job needs this process."""
        self._listener.settimeout(min(_CHECK_SECONDS, idle_seconds))
        # without its file, as in a directory that was removed, no client can reach the socket
        while Path(self._listener.getsockname()).exists() and not self._is_idle(idle_seconds):
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            connection.settimeout(None)
            with self._lock:
                self._connections += 1
            threading.Thread(target=self._serve, args=(connection,), name="command", daemon=True).start()

    def _is_idle(self, seconds: float) -> bool:
        with self._lock:
            has_time_passed = time.monotonic() > self._last_call + seconds
            return self._connections == 0 and has_time_passed and not self._queue.is_busy

    def _serve(self, connection: socket.socket) -> None:
        try:
            # a client that was killed has lost its answer; its job is in the journal
            with connection, contextlib.suppress(OSError):
                self._reply(connection)
        finally:
            with self._lock:
                self._connections -= 1
                self._last_call = time.monotonic()

    def _reply(self, connection: socket.socket) -> None:
        call = cast("dict[str, Any] | None", receive(connection))
        if call is None:
            return
        key, is_lenient = call.pop("key"), call.pop("is_lenient")
        stdin = functools.cache(functools.partial(read_stdin, connection))
        invocation = Invocation(**call, stdin=stdin, zone=None)
        if self._reads_stdin(invocation):
            # before the lock of the queue is taken, as a client may have to wait for its input
            stdin()
        try:
            result = self._queue.answer(key, invocation, is_lenient=is_lenient)
        except Exception as e:
            log.exception("%s failed", invocation.argv[0])
            result = CommandResult(
                returncode=70, stderr=f"{invocation.argv[0]}: error: {type(e).__name__}: {e}\n"
            )
        send(connection, result_fields(result))
        if isinstance(result, TaskLaunch):
            receive(connection)  # returns once its tasks have ended


@contextlib.contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """Yield a socket that listens; the current directory is that of its file, as a path must be short."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path.name)
        listener.listen(128)
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


def open_queue(folder: Path) -> tuple[JobQueue, Callable[[Invocation], bool]]:
    """Open the queue in a directory; return it, and the function that says which calls read their input."""
    target = json.loads((folder / TARGET).read_text(encoding="utf-8"))
    speaker = cast("Speaker", find_fake(target["language"], GROUP))
    executor = jpsi.JobExecutor(target["executor"], url=target["url"])
    is_shared = not executor.system.is_remote
    is_local = executor.name == "local" and is_shared
    queue = JobQueue(folder, executor, speaker, is_local=is_local, is_shared=is_shared)
    return queue, speaker.reads_stdin


def main() -> None:
    """Serve the queue in the directory that the argument names."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    folder = Path(sys.argv[1])
    for name in [it for it in os.environ if it not in _KEPT and not it.startswith(_KEPT_PREFIXES)]:
        del os.environ[name]
    # the executor may be for the same batch system, whose own commands it needs
    own = str(folder.parent.parent)
    os.environ["PATH"] = os.pathsep.join(
        it for it in os.environ.get("PATH", os.defpath).split(os.pathsep) if not it.startswith(own)
    )
    os.set_inheritable(LOCK, False)  # noqa: FBT003  the only way to call it
    # for users who look for the process
    os.ftruncate(LOCK, 0)
    os.write(LOCK, f"{os.getpid()}\n".encode("ascii"))
    queue, reads_stdin = open_queue(folder)
    os.chdir(folder)
    with listening(folder / "socket") as listener:
        Server(queue, listener, reads_stdin).run()
    queue.close()
    # threads of the engine must not keep the lock
    os._exit(0)


if __name__ == "__main__":
    main()

"""The agent's server: takes requests for one work directory for as long as there is anything to do.

`client.py` starts a process that calls `main` if no agent answers, and sends it each request over a socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from ..client import LOCK, NOT_SENT, REFUSED, SOCKET, enter_directory
from ..engines import EngineMissing, new_engine
from ..protocol import Need, PilotEngine, Settings
from .journal import Journal
from .request_handler import RequestHandler

log = logging.getLogger(__name__)

# The interval, in seconds, between rounds of the poll loop when nothing has happened.
_TICK = 0.5
# The agent remembers ended jobs for `_RETENTION` seconds, and drops older ones every `_CLEANUP_INTERVAL`.
_RETENTION = 86400.0
_CLEANUP_INTERVAL = 3600.0
# The seconds for which an agent that never took a job waits for requests before it ends.
_LINGER = 20.0

# The client's exit codes for answers with such a key, whose value says why.
_EXIT_CODES = {"unable": NOT_SENT, "refused": REFUSED}


def main(folder: str) -> None:
    """Run the agent of a directory; return at once if another process is that agent."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    # jobs get the umask of the process that submits them; the agent's own files are the user's alone
    os.umask(0o077)
    enter_directory(folder)
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    # for people, for `shutdown.leave`, which sends TERM, and for clients on other machines
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()} {socket.gethostname()}\n".encode())
    asyncio.run(Agent(Path(folder)).serve())


class Agent:
    """Takes requests and runs the poll loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._journal = Journal(folder, time.time() - _RETENTION)
        self._linger = _LINGER
        self._last_request = self._cleaned_up_at = time.monotonic()
        self._changed = asyncio.Event()
        self._is_shutting_down = False

    async def serve(self) -> None:
        """Serve until there is nothing to do, or the agent gets SIGTERM."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET)  # noqa: PTH108  relative to the folder
        # These import all of jpsi while a client waits: not before this process is known to be the agent.
        from .pilot_jobs import PilotJobs  # noqa: PLC0415
        from .scheduling_loop import Scheduling  # noqa: PLC0415

        loop = asyncio.get_running_loop()

        def wake() -> None:
            # a closed loop needs no wake-up
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._changed.set)

        self._scheduling = Scheduling(
            self._journal, self._folder, time.time, wake=wake, jobs=PilotJobs(wake), new_engine=new_engine
        )
        self._requests = RequestHandler(self._journal, self._folder, time.time, self._scheduling.problems)
        self._requests.remove_unused_environments()
        loop.add_signal_handler(signal.SIGTERM, self._shut_down)
        server = await asyncio.start_unix_server(self._serve_client, SOCKET)
        async with server:
            while not self._is_done():
                begun = time.monotonic()
                self._changed.clear()
                self._scheduling.run_round()
                self._clean_up()
                # a round looks at all that runs: the agent spends at most half of its time in rounds, and
                # looks at events that come meanwhile together
                await asyncio.sleep(time.monotonic() - begun)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), _TICK)
            os.unlink(SOCKET)  # noqa: PTH108  as above
        await self._scheduling.close()
        self._journal.close()

    def _clean_up(self) -> None:
        now = time.monotonic()
        if now > self._cleaned_up_at + _CLEANUP_INTERVAL:
            self._cleaned_up_at = now
            self._journal.compact(time.time() - _RETENTION)
            self._requests.remove_unused_environments()

    def _shut_down(self) -> None:
        self._is_shutting_down = True
        self._changed.set()

    def _is_done(self) -> bool:
        is_unused = self._scheduling.is_idle and time.monotonic() > self._last_request + self._linger
        return is_unused or self._is_shutting_down

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request; close the connection without an answer if the request is incomplete."""
        self._last_request = time.monotonic()
        with contextlib.suppress(ConnectionError):
            text = await reader.read()
            request = read_request(text)
            if request is not None:
                writer.write(render_answer(await self._handle_request(request)))
                await writer.drain()
            writer.close()
            await writer.wait_closed()

    async def _handle_request(self, request: Request) -> dict[str, Any]:  # Any: as JSON has it
        match request.what:
            case "submit":
                return await self._submit(request)
            case "cancel":
                answer, running = self._requests.cancel(**request.values)
                self._scheduling.stop(running)
                self._changed.set()
                return answer
            case "find":
                return self._requests.find(**request.values)
            case "query":
                return self._requests.query(**request.values)
            case what:
                why = f"the pilots' agent does not know the request {what}; is its version another?"
                return {"refused": why}

    async def _submit(self, request: Request) -> dict[str, Any]:  # as above
        values = dict(request.values)
        has_launcher = values.pop("has_launcher", False)
        settings, need = Settings.from_dict(values["settings"]), Need.from_dict(values["need"])
        try:
            engine = await self._scheduling.get_engine(settings)
        except EngineMissing as e:
            return {"refused": str(e)}
        except OSError as e:
            return {"unable": f"the pilot engine cannot be started: {e}"}
        except Exception as e:
            # a fence: engines are plugins, and a client waits for an answer
            log.exception("the pilot engine cannot be started")
            return {"unable": f"the pilot engine cannot be started: {e!r}"}
        if need.nodes > 1 and (why := _multinode_problem(engine, need.nodes, has_launcher=has_launcher)):
            return {"refused": why}
        self._linger = settings.idle
        self._scheduling.request_client_check()
        self._scheduling.resume(settings.key)
        self._changed.set()
        values |= {"environment": request.environment, "umask": request.umask, "client": request.client}
        return self._requests.submit(**values)


def _multinode_problem(engine: PilotEngine, nodes: int, *, has_launcher: bool) -> str:
    """Return why an engine cannot run a job on several nodes; an empty text if it can."""
    if not engine.spans_nodes:
        return f"the engine {engine.name} runs each job on one node, and this one needs {nodes} nodes"
    if engine.needs_launcher and not has_launcher:
        return (
            f"with the engine {engine.name}, a job on {nodes} nodes must name a launcher that starts its "
            "processes, such as srun; the engine flux needs none"
        )
    return ""


@attrs.frozen(slots=True, kw_only=True)
class Request:
    """A client's request."""

    what: str
    values: Mapping[str, Any]  # Any: as JSON has it
    #: The umask and environment of client.py's process; each byte is a character there, as JSON has no bytes.
    umask: int
    environment: Mapping[str, str]
    #: The process that started client.py, and that the jobs belong to.
    client: str


def read_request(text: bytes) -> Request | None:
    r"""Parse a request; None if it is incomplete.

    >>> request = read_request(b"22\x0017.4\x00A=1\x00" b'{"do": "find", "tags": []}\n')
    >>> request.what, request.values, request.umask, request.client, request.environment
    ('find', {'tags': []}, 18, '17.4', {'A': '1'})
    >>> read_request(b"22\x0017.4\x00A=1\n")
    """
    *headers, line = text.split(b"\0")
    if not line.startswith(b"{") or not line.endswith(b"\n"):
        return None
    umask, client, *variables = (header.decode("latin-1") for header in headers)
    values = json.loads(line)
    return Request(
        what=values.pop("do"),
        values=values,
        umask=int(umask, 8),
        environment=dict(variable.split("=", 1) for variable in variables),
        client=client,
    )


def render_answer(values: Mapping[str, Any]) -> bytes:  # as above
    r"""Render an answer: a line with the client's exit code, and the line that it prints.

    >>> render_answer({"id": "a-1"}), render_answer({"refused": "no"})
    (b'0\n{"id":"a-1"}\n', b'4\nno\n')
    """
    for key, code in _EXIT_CODES.items():
        if key in values:
            return f"{code}\n{values[key]}\n".encode()
    return b"0\n" + json.dumps(values, separators=(",", ":")).encode() + b"\n"

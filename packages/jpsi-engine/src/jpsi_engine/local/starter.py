"""Has a process that outlives this one start the programs of jobs that need no shell.

The process runs `job_starter`. One serves all executors of this process, from the second job on: for a single
job a shell costs less. It starts a program as soon as it is asked, leaves the markers of its end, and tells
of them here. If it is killed, its jobs go on, and are followed by their processes.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import marshal
import os
import select
import socket
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import attrs

from jpsi_engine import host
from jpsi_engine.host import ProcessId, child_environment
from jpsi_engine.local import exits, job_starter
from jpsi_engine.local.programs import Program
from jpsi_engine.local.spawn import spawn_detached
from jpsi_engine.verdict import SIGNAL_BASE, Marker, parse

log = logging.getLogger(__name__)

# The seconds to wait for that process to be ready; jobs do without it until then.
_READY_SECONDS = 0.0
# The number of jobs of this process before the first that it is worth to start another process for.
_JOBS_BEFORE = 1


class StarterLostError(OSError):
    """The process that starts programs is gone; it may have started this one."""


@attrs.frozen(slots=True)
class ProgramEnd:
    """The end of a program, as the process that started it reports it."""

    #: As wait(2) reports it.
    wait_status: int
    #: The time of the exit marker in nanoseconds since 1970; 0 if it could not be written.
    time_ns: int
    #: True if there is a marker of a signal, too.
    is_signalled: bool
    #: What it has used, as the exit marker has it; empty if that is not known.
    used: str

    def markers(self, job_id: str, attempt: int) -> list[Marker]:
        """Return the markers that the end has left in the folder of the job."""
        code = os.waitstatus_to_exitcode(self.wait_status)
        facts = ["signalled"] if self.is_signalled else []
        facts += [f"exit.run{self.used}.{code if code >= 0 else SIGNAL_BASE - code}"] if self.time_ns else []
        return [it for fact in facts if (it := parse(f"{job_id}.{attempt}.{fact}", self.time_ns)) is not None]


@attrs.frozen(slots=True)
class ProgramFiles:
    """The files of a program that are made while it is started, while it runs, and when it has ended."""

    #: The directory of its output.
    folder: str
    #: The beginning of the paths of its markers.
    mark: str
    #: It is there if the end of the program was requested; empty if there is no such file.
    stop: str = ""
    #: The claim that is made before the program is started; empty if it is made already.
    claim: str = ""

    @property
    def fields(self) -> tuple[bytes, ...]:
        """The paths, in the order of a request."""
        return tuple(map(os.fsencode, (self.folder, self.mark, self.stop, self.claim)))


class EndSink(exits.Sink, Protocol):
    """A receiver of the ends of programs; any thread calls its methods."""

    def on_program_end(self, token: Any, end: ProgramEnd) -> None:  # noqa: ANN401  the sink's own
        """Take the end of a program."""


@attrs.frozen(slots=True)
class StartedProgram:
    """A program that runs, or has run."""

    process: ProcessId
    #: The pid of the process that has started it.
    starter_pid: int
    _starter: Starter
    _number: int

    def request_end(self) -> None:
        """Have the markers of its end say that it was asked to end, whatever it makes of the signal.

        It does not wait, and does nothing if the process that has started the program is gone.
        """
        self._starter.request_end(self._number)

    def follow(self, sink: EndSink, token: Any) -> None:  # noqa: ANN401  the sink's own
        """Call the sink once the program has ended; at once if it has ended already."""
        self._starter.follow(self._number, self.process, sink, token)


class Starter:
    """The process that starts programs, as this process sees it. Any thread may call its methods.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(
        self,
        state: object,
        *,
        ready_seconds: float | None = None,
        ends_jobs: bool = False,
        variables: Mapping[bytes, bytes] | None = None,
    ) -> None:
        """Start the process.

        Args:
            state: what programs inherit from this process.
            ready_seconds: how long the first job waits for the process to be ready, which then is given up.
                None: no job waits, and jobs do without it until it is ready.
            ends_jobs: True if programs that run are killed once this process is gone, or has closed this.
            variables: what the environment of the process has besides, by which others find it. A program
                that it is about to start has them, too, until it is executed.
        """
        #: What programs inherit from it, as that of this process was.
        self.state = state
        self._ready_seconds = ready_seconds
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._environment: Mapping[Any, Any] | None = None
        self._is_ready = self._is_gone = False
        self._pid = 0
        self._early: dict[int, ProgramEnd] = {}
        self._followed: dict[int, tuple[ProcessId, EndSink, Any]] = {}
        # held from a request to its answer
        self._turn = threading.Lock()
        self._requests, requests = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ends, ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            kind = job_starter.ENDS if ends_jobs else job_starter.OUTLIVES
            socket.send_fds(self._requests, [kind], [ends.fileno()])
            # imported, so that it need not be compiled each time
            folder, name = os.path.split(job_starter.__file__)
            module = name.removesuffix(".py")
            program = f"import sys; sys.path.append(sys.argv[1]); from {module} import main; main()"
            python = [sys.executable, "-I", "-S", "-c", program, folder]
            spawn_detached(python, requests.fileno(), variables)
            self._ends.setblocking(False)  # noqa: FBT003
            exits.shared_watch().add_reader(self._ends, self._read_ends)
        except BaseException:
            self.close()
            raise
        finally:
            requests.close()
            ends.close()

    def close(self) -> None:
        """Give the sockets up: the process ends with its last job, and tells of no end any more."""
        self._is_gone = True
        self._requests.close()
        self._ends.close()

    def retire(self) -> None:
        """Start no more programs; the process ends with its last job."""
        with self._turn:
            self._requests.close()

    @property
    def pid(self) -> int | None:
        """The pid of the process, for which this waits; None if it does not serve."""
        with self._turn:
            return self._pid if self._check_ready() else None

    @property
    def was_ready(self) -> bool:
        """True if it has ever served; if not, another one would not either."""
        return self._is_ready

    @property
    def is_gone(self) -> bool:
        """True if it serves no more."""
        return self._is_gone

    def start(
        self,
        program: Program,
        files: ProgramFiles,
        lock: int | None = None,
        inherited: Mapping[bytes, bytes] | None = None,
    ) -> StartedProgram | None:
        """Start a program; return None if it was not, and nothing is left of the try.

        Args:
            program: the program.
            files: its files.
            lock: the descriptor of the attempt's intent, which holds the lock on it; None for a batch job.
            inherited: the environment that the program inherits; None is that of this process.

        Raises:
            StarterLostError: it is not known.
        """
        number = next(self._numbers)
        with self._turn:
            if not self._check_ready():
                return None
            inherited = _own_environment() if inherited is None else inherited
            changed = None if inherited == self._environment else dict(inherited)
            request = marshal.dumps((number, *files.fields, changed, *program.fields, host.boot_id()))
            if len(request) > job_starter.MAX_BYTES:
                return None
            started, ends = self._ask(request, [] if lock is None else [lock])
            self._environment = self._environment if changed is None else changed
        self._report(ends)
        return None if started is None else StartedProgram(ProcessId(*started), self._pid, self, number)

    def request_end(self, number: int) -> None:
        """See `StartedProgram.request_end`."""
        # Sent before the signal, it is read before the end is noted. A process that is gone, or that has left
        # hundreds of these unread, notes nothing.
        with contextlib.suppress(OSError):
            self._ends.send(str(number).encode())

    def _ask(self, request: bytes, descriptors: list[int]) -> Any:  # noqa: ANN401  the request decides
        try:
            socket.send_fds(self._requests, [request], descriptors)
            answer = self._requests.recv(job_starter.MAX_BYTES)
        except OSError as e:
            raise StarterLostError(*e.args) from e
        except BaseException:
            # the next job must not take the answer for its own
            self._is_gone = True
            raise
        if not answer:
            self._is_gone = True
            raise StarterLostError
        return marshal.loads(answer)  # noqa: S302  from a process of this one's

    def _check_ready(self) -> bool:
        if not self._is_ready and not self._is_gone:
            poll = select.poll()
            try:
                poll.register(self._requests, select.POLLIN)
                seconds = _READY_SECONDS if self._ready_seconds is None else self._ready_seconds
                if not poll.poll(seconds * 1000):
                    if self._ready_seconds is not None:
                        # once it is ready, it finds no client, and ends
                        self._is_gone = True
                        self._requests.close()
                    return False
                self._pid = int(self._requests.recv(job_starter.MAX_BYTES) or 0)
                self._is_ready = bool(self._pid)
            except (OSError, ValueError):
                log.debug("the process that starts programs has not started", exc_info=True)
            self._is_gone = not self._is_ready
        return self._is_ready and not self._is_gone

    def follow(self, number: int, process: ProcessId, sink: EndSink, token: Any) -> None:  # noqa: ANN401  the sink's own
        """Call the sink once a program has ended."""
        with self._lock:
            end, is_gone = self._early.pop(number, None), self._is_gone
            if end is None and not is_gone:
                self._followed[number] = process, sink, token
        if end is not None:
            sink.on_program_end(token, end)
        elif is_gone:
            exits.shared_watch().watch(process, sink, token, is_child=False)

    def _read_ends(self) -> None:
        try:
            data = self._ends.recv(job_starter.MAX_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._report(marshal.loads(data))  # noqa: S302  as above
            return
        exits.shared_watch().remove_reader(self._ends)
        with self._lock:
            self._is_gone = True
            left, self._followed = self._followed, {}
        self._ends.close()
        self.retire()
        for process, sink, token in left.values():
            exits.shared_watch().watch(process, sink, token, is_child=False)

    def _report(self, ends: Iterable[tuple[int, int, int, bool, str]]) -> None:
        found = []
        with self._lock:
            for number, status, time_ns, is_signalled, used in ends:
                end = ProgramEnd(status, time_ns, is_signalled, used)
                followed = self._followed.pop(number, None)
                if followed is None:
                    self._early[number] = end
                else:
                    found.append((followed, end))
        for (_, sink, token), end in found:
            sink.on_program_end(token, end)


def _own_environment() -> Mapping[bytes, bytes]:
    inherited: Any = child_environment()
    # the bytes that os.environ holds inside, if it still does: saves decoding every one
    return getattr(inherited, "_data", None) or {
        os.fsencode(it): os.fsencode(inherited[it]) for it in inherited
    }


_shared: Starter | None = None
_shared_lock = threading.Lock()
_jobs = 0


def shared_starter(state: object) -> Starter | None:
    """Return the starter of this process; None if it is not worth while yet, or cannot be had.

    Args:
        state: what programs inherit from this process; if it has changed, another starter is started.
    """
    global _shared, _jobs  # noqa: PLW0603  the one of this process
    with _shared_lock:
        _jobs += 1
        # the executable of a frozen application is not Python
        if _jobs <= _JOBS_BEFORE or not sys.executable or hasattr(sys, "frozen"):
            return None
        before = _shared
        if before is not None and not before.is_gone and before.state == state:
            return before
        if before is not None and before.is_gone and not before.was_ready:
            # it could not be run: jobs do without it
            return None
        _shared = None
        if before is not None:
            before.retire()
        try:
            _shared = Starter(state)
        except OSError:
            log.warning("the process that starts programs could not be started", exc_info=True)
        return _shared


def _after_fork() -> None:
    # it serves the parent
    global _shared, _shared_lock, _jobs
    if _shared is not None:
        _shared.close()
    _shared, _shared_lock, _jobs = None, threading.Lock(), 0


os.register_at_fork(after_in_child=_after_fork)

"""Starts the programs of local jobs, and leaves the markers of their ends; it outlives its client.

The engine runs this file as a program of its own, in a session of its own, with a socket for requests and
their answers, and another for the ends of jobs; both keep the boundaries of messages. It imports the standard
library alone, so that it starts fast. Once the client is gone, it ends with the last job; or it kills the
jobs, if they are to end with the client, as on the node of a pilot.

A request that it cannot carry out as it is gets no for an answer, and leaves nothing behind: the client then
has a shell do it, which leaves the markers that say what is wrong.
"""

import contextlib
import errno
import marshal
import os
import resource
import select
import signal
import socket
import stat
import sys
import time

#: The descriptor of the requests; the first of them brings that for the ends.
REQUESTS_FD = 9
_STDERR = 2
#: The most bytes of a message.
MAX_BYTES = 1 << 17
#: The text of the first message: the jobs outlive the client, or end with it.
OUTLIVES, ENDS = b"jobs outlive the client", b"jobs end with the client"
#: The text of a claim before the number of this process.
CLAIM = "starter."
# While requests come, ends wait for the next answer for so long, so that the client wakes up once for both.
_BUSY_SECONDS = 0.002
_LINGER_MILLISECONDS = 1
# The pause before ends are sent again to a client that reads nothing.
_RETRY_MILLISECONDS = 100
# The most ends in one message.
_MOST_ENDS = 1000
# The signals by which a batch system ends all processes of a pilot, in any order.
_PILOT_END = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_EVERY_SIGNAL = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
# The signals of which a runner leaves a marker.
_MARKED = frozenset(
    {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU}
    | {signal.SIGUSR1, signal.SIGUSR2}
)
_SIGNAL_BASE = 128
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_START, _UNKNOWN_START = 19, 0
# The fields utime, stime, cutime, cstime of proc(5).
_CPU = slice(11, 15)


class Starter:
    """The jobs of one client.

    Args:
        requests: the socket of the requests and their answers.
        ends: the socket for the ends of jobs of which no answer tells, and for the numbers of those that the
            client is about to end.
        children: becomes readable when a child has ended.
        ends_jobs: True if the jobs are to end with the client.
    """

    def __init__(
        self, requests: socket.socket, ends: socket.socket, children: int, *, ends_jobs: bool
    ) -> None:
        self._requests = requests
        self._ends = ends
        self._children = children
        self._ends_jobs = ends_jobs
        self._environment: dict[bytes, bytes] = {}
        self._directory = b""
        self._umask = -1
        # by pid: the number of the request, the beginning of the markers' paths, and the path of a stop
        self._jobs: dict[int, tuple[int, bytes, bytes]] = {}
        # the numbers of those that the client is about to end
        self._ending: set[int] = set()
        self._untold: list[tuple[int, int, int, bool, str]] = []
        self._last_request = 0.0
        self._poll = select.poll()
        self._poll.register(requests, select.POLLIN)
        self._poll.register(children, select.POLLIN)
        self._has_client = True
        # True once a batch system ends all processes of the pilot
        self._is_signalled = False

    def note_signal(self) -> None:
        """Take all ends from now on for those of a pilot that is ended."""
        self._is_signalled = True

    def run(self) -> None:
        """Serve the client until it is gone, and then wait for the jobs."""
        while self._has_client or self._jobs:
            if not self._jobs:
                self._leave_directory()
            for fd, _ in self._poll.poll(self._patience()):
                if fd == self._children:
                    os.read(fd, 512)
                    self._collect()
                else:
                    self._serve()
            if self._untold and not self._is_busy():
                self._tell()

    def _is_busy(self) -> bool:
        return not self._ends_jobs and time.monotonic() - self._last_request < _BUSY_SECONDS

    def _patience(self) -> int | None:
        if not self._untold:
            return None
        return _LINGER_MILLISECONDS if self._is_busy() else _RETRY_MILLISECONDS

    def _leave_directory(self) -> None:
        """Keep no file system busy while nothing runs."""
        if self._directory != b"/":
            os.chdir("/")
            self._directory = b"/"

    def _serve(self) -> None:
        try:
            data, found, _, _ = self._requests.recvmsg(
                MAX_BYTES, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC
            )
        except OSError:
            # the client has gone without having read the last answer
            data, found = b"", []
        if not data:
            self._poll.unregister(self._requests)
            if self._ends_jobs:
                # what has ended before has ended by itself
                self._collect()
                self._kill_jobs()
            self._has_client = False
            return
        answer, lock = None, _descriptor(found)
        # whatever is wrong with one request, the jobs of the others need this process
        with contextlib.suppress(Exception):
            answer = self._start(lock, *marshal.loads(data))  # noqa: S302  from the client
        if lock is not None:
            os.close(lock)
        untold, self._untold = self._untold[:_MOST_ENDS], self._untold[_MOST_ENDS:]
        try:
            self._requests.send(marshal.dumps((answer, untold)))
        except OSError:
            self._untold = untold + self._untold
        self._last_request = time.monotonic()

    def _kill_jobs(self) -> None:
        """Kill the programs that have not ended; until they are collected, the pids are theirs."""
        for pid in self._jobs:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _start(  # noqa: PLR0913, PLR0917  the parts of a request
        self,
        lock: int | None,
        number: int,
        folder: bytes,
        mark: bytes,
        stop: bytes,
        claim: bytes,
        inherited: dict[bytes, bytes] | None,
        variables: dict[bytes, bytes | None],
        directory: bytes,
        umask: int,
        paths: tuple[bytes | None, bytes | None],
        program: bytes,
        words: list[bytes],
        boot: str,
    ) -> tuple[int, int] | None:
        """Start a program, and return its pid and start time.

        Raises:
            OSError: it was not started, and nothing is left of the attempt to.
        """
        if inherited is not None:
            self._environment = inherited
        if claim and lock is None:
            return None
        merged = {**self._environment, **variables}
        environment = {name: value for name, value in merged.items() if value is not None}
        self._enter(directory, umask)
        if any(path is not None and _is_pipe(path) for path in paths):
            return None
        if claim:
            _write_new(claim, b"%s%d\n" % (CLAIM.encode(), os.getpid()))
        try:
            pid, tick = self._spawn(folder, paths, program, words, environment)
        except BaseException:
            own = (folder + name for name, path in zip(_OWN, paths, strict=True) if not path)
            for made in filter(None, (*own, claim)):
                with contextlib.suppress(OSError):
                    os.unlink(made)  # noqa: PTH108  bytes
            raise
        self._jobs[pid] = number, mark, stop
        start = _start_time(pid, tick)
        if lock is not None:
            line = b"\n%d.%d.%s" % (pid, start, boot.encode())
            # the answer says as much, and the job runs
            with contextlib.suppress(OSError):
                _append(lock, line)
        return pid, start

    def _enter(self, directory: bytes, umask: int) -> None:
        # also to the same path again, which may be another directory by now
        os.chdir(directory)
        self._directory = directory
        if umask != self._umask:
            os.umask(umask)
            self._umask = umask

    def _spawn(
        self,
        folder: bytes,
        paths: tuple[bytes | None, bytes | None],
        program: bytes,
        words: list[bytes],
        environment: dict[bytes, bytes],
    ) -> tuple[int, int]:
        out, err = paths
        actions: list[tuple[object, ...]] = [_opening(1, folder, out)]
        actions.append((os.POSIX_SPAWN_DUP2, 1, 2) if err and err == out else _opening(2, folder, err))
        tick = _now_tick()
        pid = os.posix_spawn(
            program,
            words,
            environment,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=_EVERY_SIGNAL,
        )
        return pid, tick

    def _collect(self) -> None:
        """Leave the markers of the jobs that have ended."""
        while self._jobs:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            job = self._jobs.pop(found.si_pid, None)
            if job is None:
                os.waitpid(found.si_pid, 0)
            else:
                self._end(job, found)

    def _end(self, job: tuple[int, bytes, bytes], found: os.waitid_result) -> None:
        """Leave the markers of a job that has ended, and collect its process."""
        number, mark, stop = job
        status, is_signal = found.si_status, found.si_code != os.CLD_EXITED
        if self._ends_jobs and not self._has_client and is_signal and status == signal.SIGKILL:
            # killed here: nothing but the loss of the client is the reason
            os.waitpid(found.si_pid, 0)
            return
        self._read_announcements()
        is_ending = self._is_signalled or number in self._ending or os.path.lexists(stop)
        self._ending.discard(number)
        is_marked = is_ending or (is_signal and status in _MARKED)
        code, used = _SIGNAL_BASE + status if is_signal else status, _cpu_ticks(found.si_pid)
        when = self._note(mark, code, used, is_marked=is_marked)
        # only now: once the process is gone, other clients take a missing marker for a lost one
        _, _, usage = os.wait4(found.si_pid, 0)
        # Linux counts this process for a part of it, until it has executed its program
        is_known = usage.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # clients move markers out of the directory of events, so none is renamed there
        if when and used and is_known and not self._ends_jobs:
            used_too = b"%s-%d" % (used, usage.ru_maxrss)
            with contextlib.suppress(OSError):
                os.rename(_exit_marker(mark, code, used), _exit_marker(mark, code, used_too))  # noqa: PTH104  bytes
                used = used_too
        self._untold.append((number, status if is_signal else status << 8, when, is_marked, used.decode()))

    def _read_announcements(self) -> None:
        """Read which jobs the client is about to end; it says so before it sends the signal."""
        with contextlib.suppress(OSError, ValueError):
            while number := self._ends.recv(MAX_BYTES):
                self._ending.add(int(number))

    def _note(self, mark: bytes, code: int, used: bytes, *, is_marked: bool) -> int:
        """Leave the markers of an end; return the time of that with the exit code, or 0 if it has none."""
        with contextlib.suppress(OSError):
            if is_marked:
                _write_new(mark + b".signalled", b"")
            return _write_new(_exit_marker(mark, code, used), b"")
        return 0

    def _tell(self) -> None:
        """Tell the client of ends; once it is gone, the markers do."""
        try:
            self._ends.send(marshal.dumps(self._untold[:_MOST_ENDS]))
        except OSError as e:
            if e.errno not in _GONE:
                return
        del self._untold[:_MOST_ENDS]


# How a send fails if there is no client any more.
_GONE = frozenset({errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN})
_OWN = (b"/stdout", b"/stderr")
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOCTTY


def _opening(fd: int, folder: bytes, path: bytes | None) -> tuple[int, int, bytes, int, int]:
    """Return the action that opens a stream; without a path of its own, it is in the folder of the job."""
    if path is None:
        return (os.POSIX_SPAWN_OPEN, fd, folder + _OWN[fd - 1], _FLAGS, 0o600)
    return (os.POSIX_SPAWN_OPEN, fd, path, _FLAGS, 0o666)


def _is_pipe(path: bytes) -> bool:
    """Return True if this is a named pipe: to open it would wait for its reader."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)  # noqa: PTH116  bytes
    except FileNotFoundError:
        return False


def _write_new(path: bytes, data: bytes) -> int:
    """Write a new file for the user alone, and return its time of modification."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if data:
            os.write(fd, data)
            return 0
        return os.fstat(fd).st_mtime_ns
    finally:
        os.close(fd)


def _append(fd: int, line: bytes) -> None:
    """Append to a file all of a text, or nothing."""
    size, written = os.fstat(fd).st_size, 0
    try:
        written = os.write(fd, line)
    finally:
        if written != len(line):
            os.ftruncate(fd, size)


def _descriptor(found: list[tuple[int, int, bytes]]) -> int | None:
    """Return the descriptor that came with a message; None if this process could not take one more."""
    return int.from_bytes(found[0][2][:4], sys.byteorder) if found else None


def _exit_marker(mark: bytes, code: int, used: bytes) -> bytes:
    return b"%s.exit.run%s.%d" % (mark, used, code)


def _cpu_ticks(pid: int) -> bytes:
    """Return the CPU time of an ended process, and of those it waited for, as an exit marker has it."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return b"-%d" % sum(map(int, file.read().rpartition(b")")[2].split()[_CPU]))
    except OSError:
        return b""


def _now_tick() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) * _TICKS_PER_SECOND // 1_000_000_000


def _start_time(pid: int, tick: int) -> int:
    """Return the start time of a process that was started when the time was `tick`, as proc(5) counts it."""
    if _now_tick() == tick:
        return tick
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return int(file.read().rpartition(b")")[2].split()[_START])
    except OSError:
        # it runs, and must not be started again
        return _UNKNOWN_START


def main() -> None:
    """Serve the client at the other ends of the sockets."""
    # a pipe of the client's that this process kept would not end before it
    for fd in map(int, os.listdir("/dev/fd")):  # noqa: PTH208  starts faster without pathlib
        if fd > _STDERR and fd != REQUESTS_FD:
            with contextlib.suppress(OSError):
                os.close(fd)
    os.set_inheritable(REQUESTS_FD, False)  # noqa: FBT003
    requests = socket.socket(fileno=REQUESTS_FD)
    kind, found, _, _ = requests.recvmsg(MAX_BYTES, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
    ends = socket.socket(fileno=_descriptor(found))
    ends.setblocking(False)  # noqa: FBT003
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    starter = Starter(requests, ends, reader, ends_jobs=kind == ENDS)
    if kind == ENDS:
        for number in _PILOT_END:
            signal.signal(number, lambda *_: starter.note_signal())
    requests.send(str(os.getpid()).encode())
    starter.run()

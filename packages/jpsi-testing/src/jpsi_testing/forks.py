"""Runs Python in forks of a process that has imported modules, which is most of what a short program does.

A fork has the arguments, directory, variables, umask and streams of its call: what it changes, or has killed,
is its own. It imports all other modules itself, except those of the installed executors, whose metadata it
has as well. It ends as a new process does, except that it does not take its modules apart: most of its memory
would be copied for that. What happens then shows in new processes only.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import re
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any, BinaryIO, NoReturn, Self, cast

# Python reads them once, when it begins.
_AT_START = ("LANG", "LC_", "PYTHON")
# The request itself, and the streams of the fork; through the last, its id and its exit code come back.
_DESCRIPTORS = 5
_UMASK = re.compile(r"^Umask:\s+([0-7]+)$", re.MULTILINE)


class ForkedProcess:
    """A running fork, as `subprocess.Popen` has a new process; its output is bytes."""

    def __init__(self, command: Sequence[str], report: int, stdout: int | None, stderr: int | None) -> None:
        self.args = list(command)
        self._report = os.fdopen(report, "rb", buffering=0)
        #: The pipe of its output; None if it has that of this process.
        self.stdout: BinaryIO | None = None if stdout is None else os.fdopen(stdout, "rb")
        #: The pipe of its errors; None if it has that of this process.
        self.stderr: BinaryIO | None = None if stderr is None else os.fdopen(stderr, "rb")
        self.pid = int(self._report.readline())
        #: The exit code, or the negative number of the signal that killed it; None until its end was seen.
        self.returncode: int | None = None

    def kill(self) -> None:
        """Kill it with SIGKILL, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """Send a signal to it, unless it has ended."""
        # its parent collects it, so that its id may be another's
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def poll(self) -> int | None:
        """Return its exit code as `wait` does; None if it has not ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return its exit code, or the negative number of the signal that killed it.

        Raises:
            subprocess.TimeoutExpired: it has not ended within these seconds.
        """
        if self.returncode is None:
            self._read(timeout)
        return cast("int", self.returncode)

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Read output and errors until it has closed both, close both here, and wait for its end.

        What the caller has read, and not used, of a pipe is not among them.

        Raises:
            subprocess.TimeoutExpired: this took more than these seconds.
        """
        pipes = (it for it in (self.stdout, self.stderr) if it is not None and not it.closed)
        found = self._read(timeout, *pipes)
        self._close_pipes()
        return found.get(self.stdout, b""), found.get(self.stderr, b"")

    def _read(self, timeout: float | None, *pipes: IO[bytes]) -> dict[IO[bytes] | None, bytes]:
        """Read pipes to their ends, and wait for that of the process."""
        found: dict[IO[bytes] | None, bytes] = dict.fromkeys(pipes, b"")
        deadline = None if timeout is None else time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            for it in (*pipes, *([self._report] if self.returncode is None else [])):
                selector.register(it, selectors.EVENT_READ, it)
            while selector.get_map():
                ready = selector.select(None if deadline is None else max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                for key, _ in ready:
                    data = os.read(key.fd, 65536)
                    if key.data is self._report:
                        self.returncode = int(data)
                    else:
                        found[key.data] += data
                    if not data or key.data is self._report:
                        selector.unregister(key.fd)
                    if key.data is self._report:
                        self._report.close()
        return found

    def _close_pipes(self) -> None:
        for it in (self.stdout, self.stderr):
            if it is not None:
                it.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pipes, and wait for its end."""
        self._close_pipes()
        self.wait()


class ForkServer:
    """A process that forks for each run of Python; it begins with the first, and ends with this process.

    Args:
        modules: the modules that it imports ahead, if they are installed.
    """

    def __init__(self, *modules: str) -> None:
        self._modules = modules
        self._socket: socket.socket | None = None

    def run(  # noqa: PLR0913  as subprocess.run has them
        self,
        *words: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        input: bytes = b"",  # noqa: A002  as subprocess.run has it
        stdout: int | None = subprocess.PIPE,
        stderr: int | None = subprocess.PIPE,
        timeout: float,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run Python with these words; return its exit code, output and errors.

        Args:
            words: `-c`, a program and its arguments, or `-m`, a module and its arguments.
            cwd: its directory; None for that of this process.
            env: its variables; None for those of this process.
            input: its standard input.
            stdout: `subprocess.PIPE`, or None for the output of this process.
            stderr: the same for errors.
            timeout: the seconds after which it is killed.

        Raises:
            subprocess.TimeoutExpired: it had to be killed.
        """
        with self.start(*words, cwd=cwd, env=env, input=input, stdout=stdout, stderr=stderr) as process:
            try:
                out, err = process.communicate(timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.wait(), out, err)

    def start(
        self,
        *words: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        input: bytes = b"",  # noqa: A002  as subprocess.run has it
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> ForkedProcess:
        """Start Python with these words, as `run` does, and return at once.

        Args:
            words: as of `run`.
            cwd: as of `run`.
            env: as of `run`.
            input: as of `run`.
            stdout: as of `run`.
            stderr: as of `run`.
        """
        request = {
            "words": words,
            "directory": str((cwd or Path()).absolute()),
            "variables": dict(os.environ if env is None else env),
            "umask": _umask(),
        }
        out, its_out = os.pipe() if stdout == subprocess.PIPE else (None, 1)
        err, its_err = os.pipe() if stderr == subprocess.PIPE else (None, 2)
        report, its_report = os.pipe()
        with _filled(json.dumps(request).encode()) as message, _filled(input) as stdin:
            socket.send_fds(self._connect(), [b"x"], [message, stdin, its_out, its_err, its_report])
        for it in {its_out, its_err, its_report} - {1, 2}:
            os.close(it)
        return ForkedProcess([sys.executable, *words], report, out, err)

    def _connect(self) -> socket.socket:
        if self._socket is None:
            self._socket = _start_server(self._modules)
        return self._socket


#: What each program needs that runs jobs, and no plugin but those of the engine.
MODULES = (
    "jpsi.executor",
    "jpsi.plugin",
    "jpsi.plugin.kit.shell_lines",
    "jpsi_engine.attribute_notices",
    "jpsi_engine.batch",
    "jpsi_engine.builtin.local",
    "jpsi_engine.builtin.single",
    "jpsi_engine.job_store",
    "jpsi_engine.local.local_engine",
)
#: Its forks have imported these.
PROGRAMS = ForkServer(*MODULES)


@contextlib.contextmanager
def _filled(text: bytes) -> Iterator[int]:
    """Yield a descriptor at the beginning of a file without a name that has this text."""
    with tempfile.TemporaryFile() as file:
        file.write(text)
        file.seek(0)
        yield file.fileno()


def _umask() -> int:
    with contextlib.suppress(OSError):
        if found := _UMASK.search(Path("/proc/self/status").read_text(encoding="utf-8")):
            return int(found[1], 8)
    # other threads have the other umask for a moment
    umask = os.umask(0o77)
    os.umask(umask)
    return umask


def _start_server(modules: Sequence[str]) -> socket.socket:
    """Start the process that forks, which ends with this process; return the socket for requests."""
    ours, its = socket.socketpair()
    with its:
        # Ctrl-C is for this process, which kills what runs
        server = subprocess.Popen(  # noqa: S603  no shell
            [sys.executable, __file__, str(its.fileno()), *modules],
            pass_fds=[its.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            process_group=0,
        )
    atexit.register(server.wait, 60)
    atexit.register(ours.close)
    return ours


def _of_interpreter(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith(_AT_START)}


def _serve(requests: socket.socket) -> Sequence[str]:
    """Fork for each request; return its words in the fork, which is to run them; exit with the client."""
    variables = _of_interpreter(os.environ)
    # where the exit codes of the forks go, by their ids
    reports: dict[int, int] = {}
    with _watched_ends() as ended, selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        while True:
            if any(key.fileobj is ended for key, _ in selector.select()):
                ended.recv(4096)
                _report_ends(reports)
                continue
            begun, ends, *_ = socket.recv_fds(requests, 1, _DESCRIPTORS)
            if not begun:
                sys.exit()
            process = os.fork()
            if process == 0:
                break
            *others, reports[process] = ends
            _tell(reports[process], f"{process}\n")
            _close(others)
    requests.close()
    _close(reports.values())
    return _become(ends, variables)


def _close(descriptors: Iterable[int]) -> None:
    for it in descriptors:
        os.close(it)


@contextlib.contextmanager
def _watched_ends() -> Iterator[socket.socket]:
    """Yield a socket that can be read once a process of this one has ended."""
    reading, writing = socket.socketpair()
    with reading, writing:
        writing.setblocking(False)  # noqa: FBT003  the name of the method names it
        signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            yield reading
        finally:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _report_ends(reports: dict[int, int]) -> None:
    """Tell the exit codes of the processes that have ended."""
    while reports:
        process, status = os.waitpid(-1, os.WNOHANG)
        if process == 0:
            return
        report = reports.pop(process)
        _tell(report, str(os.waitstatus_to_exitcode(status)))
        os.close(report)


def _tell(report: int, text: str) -> None:
    """Write a text to the process that waits for it, unless that was interrupted or out of time."""
    with contextlib.suppress(BrokenPipeError):
        os.write(report, text.encode())


def _become(ends: Sequence[int], variables: Mapping[str, str]) -> Sequence[str]:
    """Take the streams, the directory and the variables of a request; return its words.

    A request with other variables of the interpreter than these becomes a new interpreter.
    """
    message, *streams, report = ends
    with os.fdopen(message, "rb") as file:
        request: dict[str, Any] = json.load(file)
    for stream, end in enumerate(streams):
        os.dup2(end, stream)
    _close([*streams, report])
    os.chdir(request["directory"])
    os.umask(request["umask"])
    if _of_interpreter(request["variables"]) != variables:
        command = [sys.executable, *request["words"]]
        os.execve(sys.executable, command, request["variables"])  # noqa: S606  no shell
    os.environ.clear()
    os.environ.update(request["variables"])
    time.tzset()
    return list(request["words"])


def _run_words(words: Sequence[str]) -> None:
    """Run a program that follows -c, or a module that follows -m."""
    option, text, *arguments = words
    sys.argv[:] = [option, *arguments]
    if not sys.flags.safe_path:
        sys.path.insert(0, "" if option == "-c" else str(Path.cwd()))
    if option == "-c":
        # a module as `__main__` of a new process: what it pickles or imports of itself is its own
        sys.modules["__main__"] = program = ModuleType("__main__")
        exec(compile(text, "<string>", "exec"), vars(program))  # noqa: S102  as python -c does
    else:
        runpy.run_module(text, run_name="__main__", alter_sys=True)


def _exit_code(run: Callable[[], None]) -> int:
    """Return the exit code of what ends by itself; an error, or a message, is left to the interpreter."""
    try:
        run()
    except SystemExit as e:
        if not isinstance(e.code, int | None):
            raise
        return e.code or 0
    return 0


def _end(code: int) -> NoReturn:
    """End as the interpreter does, in its order, but do not take the modules apart."""
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001  there is no public name
    atexit._run_exitfuncs()  # noqa: SLF001  there is no public name
    for it in filter(None, (sys.stdout, sys.stderr)):
        try:
            it.flush()
        except (OSError, ValueError):
            # the interpreter finds the same, says so, and has an exit code for it
            sys.exit(code)
    os._exit(code & 0xFF)


def _import_executors() -> None:
    """Import the modules of the installed executors; forks inherit the metadata that jpsi has read."""
    from jpsi.plugin.engine import installed, load_plugin  # noqa: PLC0415  the caller may have no jpsi

    for candidate in installed().of("jpsi.executors"):
        if candidate.origin is None:
            # a fork that needs it says what is wrong with it
            with contextlib.suppress(Exception):
                load_plugin(candidate)


def _import_ahead(modules: Sequence[str]) -> None:
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(ImportError):
        _import_executors()
    # a search for garbage would copy the memory of what is imported
    gc.freeze()


if __name__ == "__main__":
    # a fork finds no module beside this one
    del sys.path[0]
    _import_ahead(sys.argv[2:])
    its_words = _serve(socket.socket(fileno=int(sys.argv[1])))
    _end(_exit_code(lambda: _run_words(its_words)))

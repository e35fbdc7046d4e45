"""Runs `jpsi`, or a program, in forks of a process that has imported it: imports take most of the time.

A fork has the arguments, directory, variables, umask and streams of a command, and ends as a new process.
It imports the modules of its command itself: only those that every command needs, and libraries, are ahead.
Tests of signals, terminals, limits and imports start new processes instead.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

# Python reads them once, when it begins.
_AT_START = ("LANG", "LC_", "PYTHON")
# No kernel passes on larger messages of this kind by default; a larger request has a new process.
_MAX_BYTES = 100_000
# What is imported ahead, if it is installed.
_MODULES = (
    "yaml",
    "sqlalchemy.dialects.sqlite",
    "alembic.command",
    "jpsi_records.records",
    "jpsi_cli.main",
    "jpsi_engine.job_store",
    "jpsi_engine.local",
)


def run_jpsi(
    *arguments: str | bytes,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    input: bytes = b"",  # noqa: A002  as subprocess.run has it
    timeout: float = 60,
) -> subprocess.CompletedProcess[bytes]:
    """Run `jpsi` with these arguments, and return its exit code, output and errors.

    Args:
        arguments: the words after `jpsi`.
        cwd: its directory.
        env: its variables; None for those of this process.
        input: its standard input.
        timeout: the seconds after which it is killed.

    Raises:
        TimeoutExpired: it had to be killed.
    """
    words = ["-m", "jpsi_cli", *map(os.fsdecode, arguments)]
    return _run(words, cwd, os.environ if env is None else env, input, timeout)


def run_program(text: str, *arguments: str | Path, timeout: float = 100) -> subprocess.CompletedProcess[str]:
    """Run a program in Python, as `python -c` does, in this directory with these variables.

    Args:
        text: the program.
        arguments: of the program.
        timeout: the seconds after which it is killed.

    Raises:
        TimeoutExpired: it had to be killed.
    """
    done = _run(["-c", text, *map(str, arguments)], Path.cwd(), os.environ, b"", timeout)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def _run(
    words: Sequence[str], cwd: Path, env: Mapping[str, str], text: bytes, timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """Run Python with these arguments; `text` is its standard input."""
    variables = dict(env)
    request = {"words": words, "directory": str(cwd), "variables": variables, "umask": _umask()}
    message = json.dumps(request).encode()
    server, its_variables = _server()
    command = [sys.executable, *words]
    if _of_interpreter(variables) != its_variables or len(message) > _MAX_BYTES:
        return subprocess.run(
            command, check=False, capture_output=True, cwd=cwd, env=variables, input=text, timeout=timeout
        )
    with tempfile.TemporaryFile() as stdin:
        stdin.write(text)
        stdin.seek(0)
        pipes = [os.pipe() for _ in range(3)]
        socket.send_fds(server, [message], [stdin.fileno(), *(writing for _, writing in pipes)])
    for _, writing in pipes:
        os.close(writing)
    out, err, report = _read_all([reading for reading, _ in pipes], timeout, command)
    _pid, code = report.split()
    return subprocess.CompletedProcess(command, int(code), out, err)


def _umask() -> int:
    umask = os.umask(0o77)
    os.umask(umask)
    return umask


def run_as_text(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run `jpsi` as `run_jpsi` does, and return its output and errors as text."""
    done = run_jpsi(*arguments, cwd=cwd, env=env, timeout=timeout)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def _of_interpreter(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith(_AT_START)}


def _read_all(ends: Sequence[int], timeout: float, command: Sequence[str]) -> list[bytes]:
    """Read pipes to their ends, the last of which tells the id of the process first; close them."""
    found = dict.fromkeys(ends, b"")
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        for it in ends:
            stack.callback(os.close, it)
            selector.register(it, selectors.EVENT_READ)
        try:
            while selector.get_map():
                ready = selector.select(max(0, deadline - time.monotonic()))
                if not ready:
                    raise subprocess.TimeoutExpired(command, timeout)  # noqa: TRY301  it is killed
                for key, _ in ready:
                    if not (data := os.read(key.fd, 65536)):
                        selector.unregister(key.fd)
                    found[key.fd] += data
        except BaseException:
            if process := found[ends[-1]].split():
                os.kill(int(process[0]), signal.SIGKILL)
            raise
    return list(found.values())


@functools.cache
def _server() -> tuple[socket.socket, dict[str, str]]:
    """Start the process that forks; return its socket, and its variables of the interpreter.

    It ends with this process.
    """
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        command = [sys.executable, __file__, str(its.fileno())]
        # Ctrl-C is for this process, which kills the command that runs
        server = subprocess.Popen(
            command,
            pass_fds=[its.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            process_group=0,
        )
    atexit.register(server.wait, 60)
    atexit.register(ours.close)
    return ours, _of_interpreter(os.environ)


def _serve(requests: socket.socket) -> Sequence[str]:
    """Fork for each request; return its words in the fork, which is to run them; exit with the client."""
    while True:
        message, ends, *_ = socket.recv_fds(requests, _MAX_BYTES, 4)
        if not message:
            sys.exit()
        if os.fork() == 0:
            requests.close()
            # it waits for its fork, other than the server
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if command := os.fork():
                _report(command, ends)
            request = json.loads(message)
            _become(request, ends)
            return list(request["words"])
        for it in ends:
            os.close(it)


def _report(command: int, ends: Sequence[int]) -> NoReturn:
    """Tell the id of the process of a command, and its exit code once it has ended."""
    *streams, report = ends
    for it in streams:
        os.close(it)
    os.write(report, f"{command} ".encode())
    _, status = os.waitpid(command, 0)
    # after a timeout nobody reads it
    with contextlib.suppress(BrokenPipeError):
        os.write(report, str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(request: Mapping[str, Any], ends: Sequence[int]) -> None:
    """Take the streams, the directory and the variables of a request."""
    for stream, end in enumerate(ends[:3]):
        os.dup2(end, stream)
    for it in ends:
        os.close(it)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["variables"])
    os.umask(request["umask"])
    time.tzset()


def _run_words(words: Sequence[str]) -> None:
    """Run a program that follows -c, or else `jpsi`, whose module follows -m."""
    option, text, *arguments = words
    if option == "-c":
        sys.argv[:] = [option, *arguments]
        # a module as `__main__` of a new process: what it pickles or imports of itself is its own
        sys.modules["__main__"] = program = ModuleType("__main__")
        exec(compile(text, "<string>", "exec"), vars(program))
    else:
        from jpsi_cli.main import main  # noqa: PLC0415

        sys.argv[:] = ["jpsi", *arguments]
        main()


if __name__ == "__main__":
    # a command finds no module among those of the tests
    del sys.path[0]
    for name in _MODULES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # its forks wait for theirs, and it for none
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _run_words(_serve(socket.socket(fileno=int(sys.argv[1]))))

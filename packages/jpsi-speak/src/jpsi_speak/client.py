"""The program behind each command: sends its call to the user's server, and prints the answer.

It is run by its path, with as few imports as possible, as programs call it very often. If there is no
server, it starts one. If the server dies before it answers, the client repeats the call under the same key:
the server knows by the key which calls it has carried out.
"""

from __future__ import annotations

import _socket  # what `socket` adds to it takes long to import
import fcntl
import os
import sys
import time

# The exit code of a command that gets no answer.
_NO_SERVER = 255
# The seconds for which a call is repeated, and between two attempts to reach a server that is starting.
_PATIENCE_SECONDS = 120.0
_INTERVAL_SECONDS = 0.02
# How often a client starts a server; one that cannot run ends at once.
_STARTS = 3


def main() -> int:
    """Run a command; the arguments are two directories, the mode, the host, and the command with its own."""
    protocol, folder, mode, host, *argv = sys.argv[1:]
    if os.uname().nodename != host:
        return _run_elsewhere(folder, host, argv)
    # at the end of the path: no file in it may shadow a module of Python
    sys.path.append(protocol)
    import client  # type: ignore[import-not-found]  # noqa: PLC0415  that of the fakes, by the line above

    directory = os.getcwd()  # noqa: PTH109  slow
    call: dict[str, object] = {
        "key": os.urandom(16).hex(),
        "is_lenient": mode == "lenient",
        "argv": argv,
        "environment": dict(os.environ),
        "directory": directory,
    }
    # the path of a socket must be short
    os.chdir(folder)
    deadline, starts, answer = time.monotonic() + _PATIENCE_SECONDS, 0, None
    while answer is None and starts <= _STARTS and time.monotonic() < deadline:
        connection = _socket.socket(_socket.AF_UNIX)
        try:
            connection.connect("socket")
            answer = client.request(connection, call)
        except OSError:
            answer = None
        if answer is None:
            starts += _start_server()
            time.sleep(_INTERVAL_SECONDS)
    os.chdir(directory)
    if answer is None:
        sys.stderr.write(f"{argv[0]}: error: jpsi's server does not answer; see {folder}/log\n")
        return _NO_SERVER
    code: int = client.carry_out(argv[0], answer, connection)
    return code


def _run_elsewhere(folder: str, host: str, argv: list[str]) -> int:
    """Run a command on another machine than that of the queue, such as the node of a job."""
    language = os.path.basename(os.path.dirname(folder))  # noqa: PTH119, PTH120  slow
    if argv[0] == "srun":
        program = [sys.executable, "-P", "-m", "jpsi_speak.steps", language]
        os.execv(sys.executable, [*program, *argv])  # noqa: S606  no shell
    sys.stderr.write(f"{argv[0]}: error: the queue of jpsi speak is on {host}\n")
    return _NO_SERVER


def _start_server() -> int:
    """Start a server in the current directory unless there is one; return 1 if one was started."""
    lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return 0
    child = os.fork()
    if child == 0:
        try:
            _become_server(lock)
        finally:
            os._exit(_NO_SERVER)
    os.waitpid(child, 0)
    os.close(lock)
    return 1


def _become_server(lock: int) -> None:
    os.setsid()
    # fork twice: the caller of the command may wait for all of its children
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # the server holds the lock as long as it lives
    os.dup2(lock, 3)
    os.closerange(4, 256)
    os.set_inheritable(3, True)  # noqa: FBT003  the only way to call it
    os.execv(sys.executable, [sys.executable, "-P", "-m", "jpsi_speak.server", os.getcwd()])  # noqa: PTH109, S606  no shell


if __name__ == "__main__":
    sys.exit(main())

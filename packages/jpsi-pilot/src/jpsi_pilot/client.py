"""The client: a program that passes one request to the agent, and starts the agent if none answers.

    client.py WORK_DIRECTORY <REQUEST >ANSWER

It runs for every submission, so that it has to be quick: it is run by its path, without site-packages, and
with as little of the standard library as it can. The agent's `server` answers it. Its
exit code is 3 if the agent did not accept the request, 4 if the agent refuses it, and 1 if an agent that
ended without an answer may have taken it.
"""

from __future__ import annotations

import os
import sys
import time

# what `socket` adds to it takes as long to import as a Python takes to start
from _socket import AF_UNIX, SHUT_WR, socket

SOCKET = "agent.socket"
LOCK = "agent.lock"
LOG = "agent.log"
UNCLEAR, NOT_SENT, REFUSED = 1, 3, 4
# The number of agents that the client tries, if one after the other ends before it has answered.
_TRIES = 3
_CONNECT_TIMEOUT = 30.0
# The seconds after which the client starts an agent again, if the one that it started does not listen.
_RESTART_DELAY = 5.0
_AGENT = "import sys; sys.path.append(sys.argv[1]); from jpsi_pilot.agent import main; main(sys.argv[2])"


def main() -> int:
    """Pass the request on standard input to the agent, and print its answer."""
    folder = agent_directory(sys.argv[1])
    message = render_message(sys.stdin.buffer.read())
    # the agents that may have taken the request, and ended without an answer
    ended = 0
    try:
        enter_directory(folder)
        while ended < _TRIES:
            agent = connect_agent(folder)
            code, _, answer = send_request(agent, message).partition(b"\n")
            if answer.endswith(b"\n"):
                (sys.stderr if int(code) else sys.stdout).buffer.write(answer)
                return UNCLEAR if ended and int(code) else int(code)
            ended += 1
    except OSError as e:
        sys.stderr.write(f"the pilots' agent in {folder} cannot be reached: {e}; {_location_hint()}\n")
        return UNCLEAR if ended else NOT_SENT
    sys.stderr.write("the pilots' agent ended before it answered\n")
    return UNCLEAR


def send_request(agent: socket, message: bytes) -> bytes:
    """Return the answer of an agent, and close its connection; an incomplete one if the agent ends meanwhile.

    The caller may then send the same message to the next agent, which recognises a submission by its tag.
    """
    text = b""
    try:
        agent.sendall(message)
        agent.shutdown(SHUT_WR)
        while chunk := agent.recv(1 << 16):
            text += chunk
    except OSError:
        return text
    finally:
        agent.close()
    return text


def render_message(request: bytes) -> bytes:
    """Return the message for a request, which is one line.

    The umask, the client and each variable of the environment come first, each with a NUL after it.
    """
    umask = os.umask(0o077)
    variables = (name + b"=" + value for name, value in os.environb.items())
    return b"\0".join([f"{umask:o}".encode(), process_name(os.getppid()).encode(), *variables, request])


def agent_directory(work_directory: str) -> str:
    """Return the agent's directory: `pilots` in the work directory, else in the user's state directory."""
    if work_directory:
        return os.path.abspath(os.path.join(os.path.expanduser(work_directory), "pilots"))  # noqa: PTH100, PTH111, PTH118  as above
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111
    return os.path.join(state, "jpsi", "work", "pilots")  # noqa: PTH118


def enter_directory(folder: str) -> None:
    """Change into the agent's directory, and create it if it is missing.

    A socket's path is at most 107 characters, so that the client uses the name alone. From then on nothing
    depends on the directories above it; the executor checks those before it submits anything.

    Raises:
        OSError: the directory cannot be entered, or other users could put their own agent there.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103  no pathlib: it takes a while to import
    os.chdir(folder)
    status = os.stat(".")  # noqa: PTH116  as above
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        msg = "other users have access to it; choose another work_directory or run: chmod go-rwx"
        raise PermissionError(msg)


def process_name(pid: int) -> str:
    """Return a unique name of a process: its pid, and its start time where /proc shows it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123
            return f"{pid}.{file.read().rpartition(')')[2].split()[19]}"
    except (OSError, IndexError):
        return f"{pid}."


def connect_agent(folder: str) -> socket:
    """Return a connection to the agent; start the agent if none answers.

    Raises:
        OSError: there is no agent.
    """
    deadline = time.monotonic() + _CONNECT_TIMEOUT
    started = float("-inf")
    while True:
        agent = socket(AF_UNIX)
        try:
            agent.connect(SOCKET)
        except (FileNotFoundError, ConnectionRefusedError):
            agent.close()
            now = time.monotonic()
            if now > deadline:
                raise
            if now > started + _RESTART_DELAY:
                start_agent(folder)
                started = now
            time.sleep(0.02)
        else:
            return agent


def start_agent(folder: str) -> None:
    """Start an agent that shares nothing with this process; it ends at once if there is one already."""
    import subprocess  # noqa: PLC0415  it takes a while, and mostly an agent runs already

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    with open(LOG, "ab", opener=open_private) as log:
        subprocess.Popen(  # noqa: S603  a program of our own
            [sys.executable, "-c", _AGENT, package, folder],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _location_hint() -> str:
    """Return a hint at where the agent runs; clients reach it only from its own machine."""
    try:
        with open(LOCK, encoding="utf-8") as file:  # noqa: PTH123  as above
            pid, _, host = file.read().strip().partition(" ")
    except OSError:
        return f"see {LOG} there"
    return f"see {LOG} there; the last agent was process {pid} on {host}, and only that machine can reach it"


def open_private(path: str, flags: int) -> int:
    """Open a file, as an opener for `open`, with access for the user alone."""
    return os.open(path, flags, 0o600)


if __name__ == "__main__":
    sys.exit(main())

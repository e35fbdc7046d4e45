"""Starts the control master of a connection, unless one is running already.

Its socket, by which a user's processes share the connection, is in a private directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping

from jpsi.plugin import ConfigError, TransportError
from jpsi_engine import make_private_directory, open_private

from ..address import Address
from .client import check_command, connect_command
from .error_messages import explain_failure

# The timeout for connecting without prompts.
_CONNECT_SECONDS = 60.0
# The timeout if ssh may prompt, as the user may have to find a phone for a second factor.
_PROMPT_SECONDS = 600.0
_CHECK_SECONDS = 10.0
_LOCK_POLL_SECONDS = 0.05


def connect(address: Address, control_path: str, *, may_prompt: bool) -> None:
    """Ensure that a connection exists; a lock file lets one process at a time open it.

    Args:
        address: the remote host.
        control_path: the socket through which processes share the connection.
        may_prompt: True if ssh may ask the user for a password, provided that there is a terminal.

    Raises:
        TransportError: the connection could not be opened.
    """
    prompts = may_prompt and _has_terminal()
    seconds = _PROMPT_SECONDS if prompts else _CONNECT_SECONDS
    with _locked(f"{control_path}.lock", seconds) as is_locked:
        if not is_locked:
            msg = f"another process has been connecting to {address} for {seconds:.0f} seconds"
            raise TransportError(msg, transient=True)
        if _is_connected(address, control_path):
            return
        with contextlib.suppress(FileNotFoundError):
            # the process behind an old socket has ended, or no longer responds
            os.unlink(control_path)  # noqa: PTH108  text
        messages_text = _start(
            connect_command(address, control_path, may_prompt=prompts), seconds, is_foreground=prompts
        )
        if not _is_connected(address, control_path):
            raise TransportError(explain_failure(address, messages_text), transient=True)


def _is_connected(address: Address, control_path: str) -> bool:
    try:
        completed = subprocess.run(  # noqa: S603  no shell takes part
            check_command(address, control_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CHECK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    except OSError as e:
        raise _client_error(e) from e
    return completed.returncode == 0


def _start(command: list[str], seconds: float, *, is_foreground: bool) -> str:
    """Run ssh until it is in the background, and return its messages.

    The messages go to a file, as the background process may keep its output open.
    """
    with tempfile.TemporaryFile() as messages:
        try:
            process = subprocess.Popen(  # noqa: S603  no shell takes part
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=messages,
                # ssh needs the terminal to ask for a password; otherwise Ctrl-C must not end ssh
                start_new_session=not is_foreground,
            )
        except OSError as e:
            raise _client_error(e) from e
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            _kill(process, is_group=not is_foreground)
            messages.seek(0)
            return (
                f"Connection timed out after {seconds:.0f} seconds {messages.read().decode(errors='replace')}"
            )
        except BaseException:
            _kill(process, is_group=not is_foreground)
            raise
        messages.seek(0)
        return messages.read().decode(errors="replace")


def _kill(process: subprocess.Popen[bytes], *, is_group: bool) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if is_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _client_error(error: OSError) -> TransportError:
    return TransportError(f"the OpenSSH client cannot be run: {error}", error, transient=True)


def _has_terminal() -> bool:
    """Return True if this process has a terminal and may read from it."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


@contextlib.contextmanager
def _locked(path: str, seconds: float) -> Iterator[bool]:
    """Hold a file lock; yield False if another process keeps it for longer than `seconds`."""
    fd = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        deadline = time.monotonic() + seconds
        while not (is_locked := _lock(fd)) and time.monotonic() < deadline:
            time.sleep(_LOCK_POLL_SECONDS)
        yield is_locked
    finally:
        os.close(fd)


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# A socket's path may have 108 bytes (unix(7)), on other systems 104; ssh appends 17 at first.
_LONGEST = 86
_NAME_LENGTH = 16


def control_path(address: Address, slot: int, environment: Mapping[str, str] = os.environ) -> str:
    """Return the socket of one of the connections to an address; make its directory if needed.

    Raises:
        TransportError: the directory cannot be made, or other users may enter it.
    """
    return f"{_directory(environment)}/{_name(address)}.{slot}"


def _name(address: Address) -> str:
    text = repr((address.host, address.user, address.port))
    return hashlib.sha256(text.encode()).hexdigest()[:_NAME_LENGTH]


def _directory(environment: Mapping[str, str]) -> str:
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    private = f"{runtime}/jpsi-ssh"
    if runtime.startswith("/") and os.path.isdir(runtime) and _fits(private):  # noqa: PTH112  text, as ssh takes it
        return _make_directory(private)
    temporary = f"{tempfile.gettempdir()}/jpsi-ssh-{os.geteuid()}"
    return _make_directory(temporary if _fits(temporary) else f"/tmp/jpsi-ssh-{os.geteuid()}")  # noqa: S108  made as it must be


def _fits(directory: str) -> bool:
    return len(os.fsencode(directory)) + _NAME_LENGTH + len("/.0") <= _LONGEST


def _make_directory(directory: str) -> str:
    """Make the directory and return it; only the user may enter it, as its sockets give access to hosts."""
    try:
        make_private_directory(directory, "the directory for connections of ssh")
        found = os.lstat(directory)
    except ConfigError as e:
        raise TransportError(str(e), e) from e
    except OSError as e:
        msg = f"the directory {directory} for connections of ssh cannot be made: {e}"
        raise TransportError(msg, e, transient=True) from e
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077:
        msg = f"{directory} must be a directory that you alone can enter, for the connections of ssh"
        raise TransportError(msg, transient=True)
    return directory

"""Makes the connection that everything goes by, or finds that there is one already."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator

from jpsi.plugin import TransportError
from jpsi.plugin.kit import open_private

from ..address import Address
from .client import check_command, connect_command
from .error_messages import explain_failure

# Where nobody is asked for anything.
_CONNECT_SECONDS = 60.0
# Where somebody may have to find their phone.
_PROMPT_SECONDS = 600.0
_CHECK_SECONDS = 10.0
_LOCK_POLL_SECONDS = 0.05


def connect(address: Address, control_path: str, *, may_prompt: bool) -> None:
    """See to it that there is a connection; at most one process makes it at a time.

    Args:
        address: where to.
        control_path: the socket by which it is shared.
        may_prompt: whether the user may be asked for a password, where there is a terminal to do so.

    Raises:
        TransportError: there is none.
    """
    asks = may_prompt and _has_terminal()
    seconds = _PROMPT_SECONDS if asks else _CONNECT_SECONDS
    with _locked(f"{control_path}.lock", seconds) as is_locked:
        if not is_locked:
            msg = f"another process has been connecting to {address} for {seconds:.0f} seconds"
            raise TransportError(msg, transient=True)
        if _is_connected(address, control_path):
            return
        with contextlib.suppress(FileNotFoundError):
            # whoever answered there is gone, or answers no more
            os.unlink(control_path)  # noqa: PTH108  text
        words = _start(connect_command(address, control_path, may_prompt=asks), seconds, is_foreground=asks)
        if not _is_connected(address, control_path):
            raise TransportError(explain_failure(address, words), transient=True)


def _is_connected(address: Address, control_path: str) -> bool:
    try:
        checked = subprocess.run(  # noqa: S603  no shell takes part
            check_command(address, control_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CHECK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    except OSError as e:
        raise _no_client(e) from e
    return checked.returncode == 0


def _start(command: list[str], seconds: float, *, is_foreground: bool) -> str:
    """Run ssh until it is in the background, and return what it said.

    Its output is a file: what goes to the background may keep it open.
    """
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(  # noqa: S603  no shell takes part
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                # what asks for a password needs the terminal; anything else is not to be ended by its Ctrl-C
                start_new_session=not is_foreground,
            )
        except OSError as e:
            raise _no_client(e) from e
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            _kill(process, is_group=not is_foreground)
            said.seek(0)
            return f"Connection timed out after {seconds:.0f} seconds {said.read().decode(errors='replace')}"
        except BaseException:
            _kill(process, is_group=not is_foreground)
            raise
        said.seek(0)
        return said.read().decode(errors="replace")


def _kill(process: subprocess.Popen[bytes], *, is_group: bool) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if is_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _no_client(error: OSError) -> TransportError:
    return TransportError(f"the OpenSSH client cannot be run: {error}", error, transient=True)


def _has_terminal() -> bool:
    """Whether there is a terminal that this process may read from."""
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
    """Hold a lock; yields False if somebody else keeps it for longer than that."""
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

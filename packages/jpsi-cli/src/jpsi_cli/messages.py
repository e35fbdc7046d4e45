"""What jpsi itself writes: `jpsi: ...` lines on standard error, and what was asked for on standard output."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys

STDOUT, STDERR = 1, 2


# How long the line on standard error is that the next one takes the place of.
_passing = 0


class UnwritableError(Exception):
    """Standard output is closed, or what was asked for has no room there."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output cannot be written to: {error.strerror}")


def error(text: str) -> None:
    """Say why something does not work, or not yet."""
    write(f"jpsi: {printable(text)}\n")


def warning(text: str) -> None:
    """Say what somebody should look at; each line of `text` is a warning."""
    for line in text.splitlines():
        write(f"jpsi: warning: {printable(line)}\n")


def passing(text: str) -> None:
    """Say what is so for a moment, on a terminal: what is written next takes the place of this line."""
    global _passing  # noqa: PLW0603  there is one standard error
    line = f"jpsi: {printable(text)}"[: shutil.get_terminal_size().columns - 1]
    write(f"{line}\r")
    _passing = len(line)


def write(text: str) -> None:
    """Write to standard error; nothing happens if that is closed or nobody reads it."""
    global _passing  # noqa: PLW0603  there is one standard error
    if text and _passing:
        text = f"{' ' * _passing}\r{text}"
        _passing = 0
    encoding = "utf-8" if sys.stderr is None else sys.stderr.encoding
    # Not through sys.stderr, which raises when a signal handler interrupts somebody who writes to it.
    with contextlib.suppress(OSError):
        os.write(STDERR, text.encode(encoding, "backslashreplace"))


def show(text: str) -> None:
    """Write to standard output.

    Raises:
        BrokenPipeError: nobody reads it.
        UnwritableError: it cannot be written to.
    """
    encoding = "utf-8" if sys.stdout is None else sys.stdout.encoding
    left = memoryview(text.encode(encoding, "backslashreplace"))
    # Not through sys.stdout, which tries again at the end of the process what could not be written.
    try:
        while left:
            left = left[os.write(STDOUT, left) :]
    except BrokenPipeError:
        raise
    except OSError as e:
        raise UnwritableError(e) from e


def printable(text: str) -> str:
    r"""The text with what would do something to a terminal, but for line ends, as escapes.

    >>> printable("a\x1b[31mb\n")
    'a\\x1b[31mb\n'
    """
    if text.isprintable():
        return text
    # most messages need nothing of the library
    from jpsi.plugin import printable as escaped  # noqa: PLC0415

    return escaped(text)


def show_library_warnings() -> None:
    """Show what the library logs for users, without the traceback that goes with some of it.

    A person at a terminal sees at once why a job waits to be submitted, which is no warning yet.
    """
    for library in ("jpsi", "jpsi_engine"):
        logging.getLogger(library).addHandler(_Warnings(logging.WARNING))
    if os.isatty(STDERR):
        submit_queue = logging.getLogger("jpsi_engine.host.submit_queue")
        submit_queue.setLevel(logging.INFO)
        submit_queue.addHandler(_Notes())


class _Warnings(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        warning(record.getMessage())


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING:
            error(record.getMessage())

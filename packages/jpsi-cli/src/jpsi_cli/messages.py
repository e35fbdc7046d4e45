"""Writes all output of `jpsi` to the user: messages to standard error, and results to standard output.

Control characters in texts of jobs and batch systems are escaped, so that they cannot change the terminal.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import sys
from typing import TextIO

STDOUT, STDERR = 1, 2
#: The user attribute of the jobs of `jpsi doctor`, which lists of jobs leave out.
PROBE_MARK = "jpsi.doctor"

# The length of the transient line on standard error, which the next message replaces; 0 if there is none.
_transient_length = 0


class UnwritableError(Exception):
    """Standard output is closed, or has no room for the result."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output cannot be written to: {error.strerror}")


def error(text: str) -> None:
    """Report why something does not work, or does not work yet."""
    write(f"jpsi: {printable(text)}\n")


def warning(text: str) -> None:
    """Warn the user; each line of `text` is a warning."""
    for line in text.splitlines():
        write(f"jpsi: warning: {printable(line)}\n")


def transient(text: str) -> None:
    """Show a temporary state on a terminal: the next message replaces this line."""
    global _transient_length  # noqa: PLW0603  there is one standard error
    line = f"jpsi: {printable(text)}"[: shutil.get_terminal_size().columns - 1]
    write(f"{line}\r")
    _transient_length = len(line)


def write(text: str) -> None:
    """Write to standard error, in place of a bar; do nothing if it is closed or no process reads it."""
    global _transient_length  # noqa: PLW0603  there is one standard error
    if text and _proxied(sys.stderr) is not sys.stderr:
        # rich draws its bar again below
        text = f"\r\x1b[2K{text}"
    if text and _transient_length:
        text = f"{' ' * _transient_length}\r{text}"
        _transient_length = 0
    # Not through sys.stderr, which raises if a signal handler interrupts another write to it.
    with contextlib.suppress(OSError):
        os.write(STDERR, _encode(text, sys.stderr))


def show(text: str) -> None:
    """Write to standard output.

    Raises:
        BrokenPipeError: no process reads it.
        UnwritableError: it cannot be written to.
    """
    remaining = memoryview(_encode(text, sys.stdout))
    # Not through sys.stdout, which would retry failed writes at the end of the process.
    try:
        while remaining:
            remaining = remaining[os.write(STDOUT, remaining) :]
    except BrokenPipeError:
        raise
    except OSError as e:
        raise UnwritableError(e) from e


def _encode(text: str, stream: TextIO | None) -> bytes:
    stream = _proxied(stream)
    return text.encode("utf-8" if stream is None else stream.encoding, "backslashreplace")


def _proxied(stream: TextIO | None) -> TextIO | None:
    # While rich draws a bar, it puts an object without an encoding in place of the stream.
    return getattr(stream, "rich_proxied_file", stream)


def show_json(content: object, indent: int | None = 2) -> None:
    """Write a value as JSON to standard output, by default on several lines."""
    show(json.dumps(content, indent=indent, default=str) + "\n")


def printable(text: str) -> str:
    r"""Return the text with control characters, except line ends, as escapes.

    >>> printable("a\x1b[31mb\n")
    'a\\x1b[31mb\n'
    """
    if text.isprintable():
        return text
    # most messages do not need the library
    from jpsi.plugin import printable as escaped  # noqa: PLC0415

    return escaped(text)


def show_library_warnings() -> None:
    """Show what the library logs for users, without the tracebacks that go with some of it.

    A user at a terminal sees at once why a job waits to be submitted, which is no warning yet.
    """
    for library in ("jpsi", "jpsi_engine"):
        logging.getLogger(library).addHandler(_Warnings(logging.WARNING))
    if os.isatty(STDERR):
        submit_queue = logging.getLogger("jpsi_engine.scheduler.submit_queue")
        submit_queue.setLevel(logging.INFO)
        submit_queue.addHandler(_InfoMessages())


class _Warnings(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        warning(record.getMessage())


class _InfoMessages(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING:
            error(record.getMessage())

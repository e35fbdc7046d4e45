"""Finds out if standard output is a terminal, and its width and colours.

The tables of `jpsi ls`, `show` and `plugins` use it; in a pipe they are neither cut nor coloured.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import click

from .. import messages

#: Takes a text and the name of a colour; returns the coloured text, or the text unchanged without colours.
Paint = Callable[[str, str], str]


def is_terminal() -> bool:
    """Return True if standard output is a terminal."""
    return os.isatty(messages.STDOUT)


def width() -> int | None:
    """Return the number of columns; None if standard output is no terminal."""
    return shutil.get_terminal_size().columns if is_terminal() else None


def height() -> int:
    """Return the number of lines."""
    return shutil.get_terminal_size().lines


def choose_paint() -> Paint:
    """Return the function that colours texts for standard output."""
    # https://no-color.org
    is_plain = not is_terminal() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return plain if is_plain else _painted


def plain(text: str, _: str) -> str:
    """Return the text without colours."""
    return text


def _painted(text: str, colour: str) -> str:
    if colour == "bold":
        return click.style(text, bold=True)
    return click.style(text, fg=colour) if colour else text

"""Properties of standard output: a terminal with a width, with or without colours, or something else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import click

from .. import messages

#: Returns a text in the colour of this name, or unchanged.
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

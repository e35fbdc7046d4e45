"""What standard output is: a terminal of some width, with or without colours, or something else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import click

from .. import messages

#: Gives a text the colour of this name, or leaves it alone.
Paint = Callable[[str, str], str]


def is_terminal() -> bool:
    """Whether somebody looks at it."""
    return os.isatty(messages.STDOUT)


def width() -> int | None:
    """How many columns there are; None if nobody looks."""
    return shutil.get_terminal_size().columns if is_terminal() else None


def height() -> int:
    """How many lines there are."""
    return shutil.get_terminal_size().lines


def paint() -> Paint:
    """How texts are given colours there."""
    # https://no-color.org
    is_plain = not is_terminal() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return plain if is_plain else _painted


def plain(text: str, _: str) -> str:
    """No colours."""
    return text


def _painted(text: str, colour: str) -> str:
    if colour == "bold":
        return click.style(text, bold=True)
    return click.style(text, fg=colour) if colour else text

"""What goes wrong in a command is told in a sentence, with an exit code that says whose fault it is."""

from __future__ import annotations

from collections.abc import Callable

import jpsi

from . import exit_codes, messages


class SelectionError(Exception):
    """A word on the command line means no job, or several."""


def fenced(command: Callable[[], int]) -> int:
    """Do what a command does; every failure that jpsi knows is told in a sentence."""
    messages.show_library_warnings()
    try:
        return command()
    except SelectionError as e:
        messages.error(str(e))
        return exit_codes.USAGE
    except jpsi.InvalidJobException as e:
        messages.error(in_options(e.problems[0] if len(e.problems) == 1 else str(e)))
        return exit_codes.USAGE
    except jpsi.JpsiError as e:
        messages.error(in_options(str(e)))
        return exit_codes.JPSI


def in_options(message: str) -> str:
    """A message of the library in the words of the command line.

    >>> in_options("make it, or set create_directory")
    'make it, or give --create-dir'
    """
    return message.replace("set create_directory", "give --create-dir")

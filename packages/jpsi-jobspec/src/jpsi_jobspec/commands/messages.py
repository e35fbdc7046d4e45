"""Messages on standard error, and the exit codes that failures have."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from jpsi import InvalidJobException, JpsiError
from jpsi.plugin import printable

from ..document import WorkflowError
from ..running import EXIT_JPSI, EXIT_MISTAKE


def fenced(command: Callable[[], int]) -> int:
    """Do what a command does; every failure that jpsi knows is told in a sentence."""
    try:
        return command()
    except WorkflowError as e:
        # a key that nobody knows may be all of the reason for the rest
        warn(e.loose)
        # of what is no YAML, the line is shown with a caret below it
        complain(printable(str(it)) for it in e.found)
        return EXIT_MISTAKE
    except InvalidJobException as e:
        complain(e.problems if len(e.problems) > 1 else [str(e)])
        return EXIT_MISTAKE
    except JpsiError as e:
        complain([str(e)])
        return EXIT_JPSI


def complain(sentences: Iterable[str]) -> None:
    """Tell what is wrong, on standard error."""
    for sentence in sentences:
        click.echo(f"jpsi: {sentence}", err=True)


def warn(sentences: Iterable[object]) -> None:
    """Tell what somebody should look at, on standard error."""
    for sentence in sentences:
        click.echo(f"jpsi: warning: {sentence}", err=True)

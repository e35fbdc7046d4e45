"""Messages on standard error, and the exit codes of failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from jpsi import InvalidJobException, JpsiError
from jpsi.plugin import printable

from ..document import WorkflowError
from ..running import EXIT_JPSI, EXIT_MISTAKE


def fenced(command: Callable[[], int]) -> int:
    """Run a command; report each failure that jpsi knows in a sentence, and return its exit code."""
    try:
        return command()
    except WorkflowError as e:
        # an unknown key may be the whole reason for the other problems
        warn(e.loose)
        # for a syntax error in YAML, the message shows the line with a caret below it
        complain(printable(str(it)) for it in e.found)
        return EXIT_MISTAKE
    except InvalidJobException as e:
        complain(e.problems if len(e.problems) > 1 else [str(e)])
        return EXIT_MISTAKE
    except JpsiError as e:
        complain([str(e)])
        return EXIT_JPSI


def complain(sentences: Iterable[str]) -> None:
    """Write errors to standard error."""
    for sentence in sentences:
        click.echo(f"jpsi: {sentence}", err=True)


def warn(sentences: Iterable[object]) -> None:
    """Write warnings to standard error."""
    for sentence in sentences:
        click.echo(f"jpsi: warning: {sentence}", err=True)

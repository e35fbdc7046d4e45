"""Messages on standard error, and the exit codes of failures.

Every command of `jpsi workflow` runs within `handle_errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from jpsi import InvalidJobException, JpsiError, PluginError
from jpsi.plugin import line, printable

from ..document import WorkflowError
from ..running import EXIT_JPSI, EXIT_USAGE
from .preparation import target_names


def handle_errors(command: Callable[[], int], executor: str | None = None) -> int:
    """Run a command; report each failure that jpsi knows in a sentence, and return its exit code.

    Args:
        command: the command.
        executor: the executor or target that the user named, if one was.
    """
    try:
        return command()
    except WorkflowError as e:
        # an unknown key may be the whole reason for the other problems
        print_warnings(e.warnings)
        # for a syntax error in YAML, the message shows the line with a caret below it
        print_errors(printable(str(it)) for it in e.errors)
        return EXIT_USAGE
    except InvalidJobException as e:
        print_errors(e.problems if len(e.problems) > 1 else [str(e)])
        return EXIT_USAGE
    except PluginError as e:
        print_errors([str(e)])
        # an executor that cannot be loaded is no mistake of the user
        is_known = executor is None or executor.lower() in target_names()
        return EXIT_JPSI if is_known else EXIT_USAGE
    except JpsiError as e:
        print_errors([str(e)])
        return EXIT_JPSI


def workflow_command(name: str, file: str) -> str:
    """Return a command of `jpsi workflow` about a document, as the user can type it."""
    return line("jpsi", "workflow", name, file)


def print_errors(sentences: Iterable[str]) -> None:
    """Write errors to standard error."""
    for sentence in sentences:
        click.echo(f"jpsi: {sentence}", err=True)


def print_warnings(sentences: Iterable[object]) -> None:
    """Write warnings to standard error."""
    for sentence in sentences:
        click.echo(f"jpsi: warning: {sentence}", err=True)

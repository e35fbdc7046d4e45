"""Turns errors of a command into a message and an exit code: a usage error (2), or a failure of jpsi (125).

Every command runs within `run_reporting_errors`, so that users see a sentence and no traceback.
"""

from __future__ import annotations

from collections.abc import Callable

import jpsi

from . import exit_codes, messages


class SelectionError(Exception):
    """A JOB argument that means no job, or is not unique."""


def run_reporting_errors(command: Callable[[], int], executor: str | None = None) -> int:
    """Run a command; report each failure that jpsi knows in a sentence, and return its exit code.

    Args:
        command: the command.
        executor: the executor or target that the user named, if one was.
    """
    messages.show_library_warnings()
    try:
        return command()
    except SelectionError as e:
        messages.error(str(e))
        return exit_codes.USAGE
    except jpsi.InvalidJobException as e:
        messages.error(translate_to_options(e.problems[0] if len(e.problems) == 1 else str(e)))
        return exit_codes.USAGE
    except jpsi.PluginError as e:
        messages.error(translate_to_options(str(e)))
        # an executor that cannot be loaded is no mistake of the user
        is_unknown = executor is not None and executor.lower() not in executor_names()
        return exit_codes.USAGE if is_unknown else exit_codes.JPSI
    except jpsi.JpsiError as e:
        messages.error(translate_to_options(str(e)))
        return exit_codes.JPSI


def executor_names() -> set[str]:
    """Return all names of the executors that are installed, and of the targets that are configured."""
    executors = (it for it in jpsi.plugins(load=False) if it.kind == "executor")
    return {name for it in executors for name in (it.name, *it.aliases)} | set(jpsi.configuration().targets)


def translate_to_options(message: str) -> str:
    """Return a message of the library in the words of the command line.

    >>> translate_to_options("make it, or set create_directory")
    'make it, or use --create-dir'
    """
    texts = {
        "set create_directory": "use --create-dir",
        "this executor has no dependencies": "this executor has no dependencies; with --after, jpsi waits",
    }
    for text, typed in texts.items():
        message = message.replace(text, typed)
    return message

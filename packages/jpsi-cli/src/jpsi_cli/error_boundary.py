"""Turns errors of a command into a message and an exit code: a usage error (2), or a failure of jpsi (125).

Every command runs within `run_reporting_errors`, so that users see a sentence and no traceback.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar

import jpsi

from . import exit_codes, messages


class SelectionError(Exception):
    """A JOB argument that means no job, or is not unique."""


# The options that were typed beside a job document; None if the command read none.
_TYPED: ContextVar[frozenset[str] | None] = ContextVar("_TYPED", default=None)


def run_reporting_errors(command: Callable[..., int], arguments: Mapping[str, object]) -> int:
    """Run a command; report each failure that jpsi knows in a sentence, and return its exit code.

    Args:
        command: the command.
        arguments: all of its arguments, by the names of its parameters. Of a command that reads a job
            document, messages name an option if it was typed, and else the field of the document.
    """
    messages.show_library_warnings()
    documents, executor = _documents(arguments), arguments.get("executor")
    token = _TYPED.set(_typed_options(arguments) if documents else None)
    try:
        return command(**arguments)
    except SelectionError as e:
        messages.error(str(e))
        return exit_codes.USAGE
    except jpsi.InvalidJobException as e:
        message = translate_to_options(e.problems[0] if len(e.problems) == 1 else str(e))
        messages.error(_locate(message, documents))
        return exit_codes.USAGE
    except jpsi.PluginError as e:
        messages.error(translate_to_options(str(e)))
        # an executor that cannot be loaded is no mistake of the user
        is_unknown = executor is not None and str(executor).lower() not in executor_names()
        return exit_codes.USAGE if is_unknown else exit_codes.JPSI
    except jpsi.JpsiError as e:
        messages.error(translate_to_options(str(e)))
        return exit_codes.JPSI
    finally:
        _TYPED.reset(token)


def executor_names() -> set[str]:
    """Return all names of the executors that are installed, and of the targets that are configured."""
    executors = (it for it in jpsi.plugins(load=False) if it.kind == "executor")
    return {name for it in executors for name in (it.name, *it.aliases)} | set(jpsi.configuration().targets)


def _documents(arguments: Mapping[str, object]) -> list[str]:
    """Return the names in messages of the files with job documents that a command reads."""
    files = arguments.get("files")
    named = [*(files if isinstance(files, tuple) else ()), arguments.get("file"), arguments.get("many")]
    return ["standard input" if it == "-" else str(it) for it in named if it is not None]


def _typed_options(arguments: Mapping[str, object]) -> frozenset[str]:
    """Return the options that were typed, in their long forms."""
    # 0 equals False, and is typed
    typed = (name for name, it in arguments.items() if it is not None and it is not False and it != ())
    return frozenset("--time" if name == "t" else f"--{name.replace('_', '-')}" for name in typed)


def _locate(message: str, documents: Sequence[str]) -> str:
    """Return a message behind the name of the document whose field it names, unless it has it already."""
    if len(documents) != 1 or _has_name(message, documents[0]) or not _FIELD.search(message):
        return message
    return f"{documents[0]}: {message}"


def _has_name(message: str, document: str) -> bool:
    """Return True if a line of a message begins with the name of a document: its name may be any word."""
    pattern = rf"^(?:  - )?{re.escape(document)}(?:[:,]| is not valid:)"
    return re.search(pattern, message, re.MULTILINE) is not None


def translate_to_options(message: str) -> str:
    """Return a message of the library in the words of the command line.

    What stands in a document that the command has read, and was not typed, keeps its name.

    >>> translate_to_options("make it, or set create_directory")
    'make it, or use --create-dir'
    >>> translate_to_options("attributes.queue_name: no queue takes a job that asks for 100 nodes")
    '--queue: no queue takes a job that asks for 100 nodes'
    """
    for text, words in _TEXTS.items():
        message = message.replace(text, _word_for(text, words))
    return _FIELD.sub(lambda it: _word_for(it[0], _OPTIONS.get(it[1], it[0])), message)


def _word_for(text: str, words: str) -> str:
    """Return the words with an option that stand for the library's, or these if it was not typed."""
    typed, options = _TYPED.get(), _OPTION.findall(words)
    return words if typed is None or typed.issuperset(options) else text


_TEXTS = {
    "set create_directory": "use --create-dir",
    "before whose end it could be warned; set duration": "before whose end it could be warned; use --time",
    "attributes.retry: grow_memory": "--grow: memory",
    "attributes.retry: grow_duration": "--grow: time",
    "resources.memory of one kind": "--memory",
    "no effect without out_of_memory or 137": "no effect without --retry oom=N",
    "no effect without timeout": "no effect without --retry timeout=N",
}
# Not in the path of a document, such as attributes.system.jpsi.resources.memory.
_FIELD = re.compile(r"(?<![\w.])(?:attributes|resources)\.(\w+)")
_OPTION = re.compile(r"--[\w-]+")
_OPTIONS = {
    "queue_name": "--queue",
    "project_name": "--project",
    "reservation_id": "--reservation",
    "duration": "--time",
    "gpu_type": "--gpu-type",
    **{it: f"--{it}" for it in ("after", "licenses", "mail", "memory", "qos", "retry", "warn")},
    "memory_per_cpu": "--mem-per-cpu",
    "memory_per_gpu": "--mem-per-gpu",
    "node_count": "--nodes",
    "process_count": "--processes",
    "processes_per_node": "--processes-per-node",
    "cpu_cores_per_process": "--cores",
    "gpu_cores_per_process": "--gpus",
    "exclusive_node_use": "--exclusive",
}

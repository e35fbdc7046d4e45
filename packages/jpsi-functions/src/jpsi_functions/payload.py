"""Pickles calls; an error names the part that cannot be pickled."""

from __future__ import annotations

import pickle
import platform
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]  # it has no types

#: The positional arguments and the keywords of one call.
Arguments = tuple[Sequence[Any], Mapping[str, Any]]


def pickle_function(function: Callable[..., Any]) -> bytes:
    """Return the pickle of a function; TypeError if it cannot be pickled."""
    return _pickle(function, lambda: f"the function {name_of(function)}")


def pickle_arguments(function: Callable[..., Any], calls: Sequence[Arguments]) -> bytes:
    """Return the pickle of the arguments of some calls.

    Raises:
        TypeError: an argument cannot be pickled; the message names it.
    """
    return _pickle(calls, lambda: f"{_first_unpicklable(calls)} of {name_of(function)}")


def _pickle(value: object, describe: Callable[[], str]) -> bytes:
    try:
        data: bytes = cloudpickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as e:
        msg = f"{describe()} cannot be pickled, so that nothing was submitted: {type(e).__name__}: {e}"
        raise TypeError(msg) from e
    return data


def _first_unpicklable(calls: Sequence[Arguments]) -> str:
    for number, (arguments, keywords) in enumerate(calls):
        parts = [(f"the argument {position}", value) for position, value in enumerate(arguments, 1)]
        parts += [(f"the argument {name}", value) for name, value in keywords.items()]
        for what, value in parts:
            try:
                cloudpickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
            except Exception:  # noqa: BLE001  `__reduce__` of any class may raise anything
                which = f" in call {number}" if len(calls) > 1 else ""
                return f"{what} ({type(value).__name__}){which}"
    return "an argument"


def name_of(function: Callable[..., Any]) -> str:
    """Return a name of a function for messages."""
    return getattr(function, "__qualname__", None) or type(function).__name__


def describe_client(
    directory: str | None, checkpoint_after: float | None, *, shares_files: bool, retries: bool
) -> dict[str, Any]:
    """Return what the worker must know about this Python and its jobs.

    Args:
        directory: the working directory of the calls.
        checkpoint_after: the seconds after which it asks a callable for its checkpoint.
        shares_files: True if the job sees the files of this machine: it imports modules from the places that
            this process has added to the path. Installed packages it has from its own installation.
        retries: True if a job that runs again makes calls again that raised an exception.
    """
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "host": socket.gethostname(),
        "cloudpickle": cloudpickle.__version__,
        "directory": directory,
        "checkpoint_after": checkpoint_after,
        "path": list(_own_path()) if shares_files else [],
        "retries": retries,
    }


def _own_path() -> Iterator[str]:
    installed = [Path(it) for it in (sys.prefix, sys.base_prefix)]
    for entry in sys.path:
        place = Path(entry or ".").absolute()
        if not any(it in place.parents for it in installed):
            yield str(place)

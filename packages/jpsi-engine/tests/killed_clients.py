"""Clients that are killed at a step: the functions that such a program calls, and the one that runs it."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jpsi_testing.forks import PROGRAMS

#: The seconds that a client may take.
PATIENCE = 60.0
_FILE_EVENTS = {"open", "os.rename", "os.link", "os.remove", "os.mkdir"}
_START_EVENTS = {"subprocess.Popen", "os.posix_spawn"}


def run_client(
    script: str, *words: object, text: bytes = b"", stdout: int | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a Python program, which can import this module.

    Args:
        script: the program.
        words: its arguments.
        text: its standard input.
        stdout: `subprocess.PIPE` to return its output.
    """
    importing = f"import sys; sys.path.append({str(Path(__file__).parent)!r})"
    command = ["-c", f"{importing}\n{script}", *map(str, words)]
    return PROGRAMS.run(*command, input=text, stdout=stdout, stderr=None, timeout=PATIENCE)


def kill_around(
    module: str,
    path: str,
    when: str,
    call: int = 1,
    *,
    counts: Callable[[], bool] = lambda: True,
    first: Callable[[], object] = lambda: None,
) -> None:
    """Have this program killed before or after the n-th call of a function.

    Args:
        module: the module of the function.
        path: the function, such as `Class.method`.
        when: `before` or `after`.
        call: the number of the call.
        counts: returns False for a call that does not count.
        first: called just before the kill.
    """
    owner = importlib.import_module(module)
    *names, last = path.split(".")
    for name in names:
        owner = getattr(owner, name)
    original, left = getattr(owner, last), call

    def killed(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        left -= counts()
        if left > 0:
            return original(*args, **kwargs)
        if when == "after":
            original(*args, **kwargs)
        first()
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    is_static = isinstance(vars(owner)[last], staticmethod)
    setattr(owner, last, staticmethod(killed) if is_static else killed)


def kill_at(step: int, folder: str) -> Callable[[], int]:
    """Have this program killed before its n-th access to a folder or start of a process.

    Return a function that returns how many are left.
    """
    left = step

    def audit(event: str, args: tuple[Any, ...]) -> None:
        nonlocal left
        if event in _START_EVENTS or (event in _FILE_EVENTS and str(args[0]).startswith(folder)):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(audit)
    return lambda: left

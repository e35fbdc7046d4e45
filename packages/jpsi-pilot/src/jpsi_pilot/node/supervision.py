"""The two ends of the link between a node's supervisor and its worker: start the worker, and notice the end.

The supervisor holds the worker's standard input open. Once that ends, the worker ends its jobs and itself, so
that no job outlives its pilot.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

# The package may be in a directory of the plugin path, which Python itself does not know.
_RUN = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__')"
)


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module of this package, as `python -m` does."""
    return [sys.executable, "-c", _RUN, str(Path(__file__).parents[2]), module, *arguments]


def watch_supervisor(on_gone: Callable[[], object]) -> None:
    """Have a thread call this function once the supervisor has closed the worker's input, or is gone."""

    def watch() -> None:
        while sys.stdin.buffer.read(1):
            pass
        on_gone()

    # a daemon thread: the process does not wait for it at its end
    threading.Thread(target=watch, daemon=True).start()

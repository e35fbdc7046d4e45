"""Command lines that run modules of this package, wherever it was imported from."""

from __future__ import annotations

import sys
from pathlib import Path

# The package may be in a directory of the plugin path, which Python itself does not know.
_RUN = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__')"
)


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module of this package, as `python -m` does."""
    return [sys.executable, "-c", _RUN, str(Path(__file__).parents[2]), module, *arguments]

"""Runs a notebook while the docs are built, and writes its cells and their outputs as a page."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient

# However busy the machine is.
_SECONDS_PER_CELL = 600


def page(path: Path) -> Iterator[str]:
    """Run a notebook, and yield the lines of its page but for the title.

    Raises:
        CellExecutionError: a cell raised an exception.
    """
    notebook = nbformat.read(path, as_version=4)
    # its jobs are not among those of the user
    with tempfile.TemporaryDirectory() as state:
        client = NotebookClient(notebook, timeout=_SECONDS_PER_CELL, kernel_name="python3")
        client.execute(cwd=state, env={**os.environ, "XDG_STATE_HOME": state, "XDG_CONFIG_HOME": state})
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield from (line for line in cell.source.splitlines() if not line.startswith("# "))
            yield ""
        elif cell.cell_type == "code":
            yield from _block("python", cell.source)
            shown = "\n".join(filter(None, map(_text, cell.outputs)))
            yield from _block("text", shown) if shown else ()


def _text(output: nbformat.NotebookNode) -> str:
    text: str = output.text if output.output_type == "stream" else output.data["text/plain"]
    return text.rstrip()


def _block(language: str, text: str) -> Iterator[str]:
    yield from (f"```{language}", *text.splitlines(), "```", "")

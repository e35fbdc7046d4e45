"""Support for the tests with a browser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import attrs
from selenium.webdriver import Chrome

#: Opens a browser, by default with scripts.
Browse = Callable[..., Chrome]


@attrs.frozen
class RecordsServer:
    """Records that `jpsi request serve` serves."""

    folder: Path
    link: str

    def jpsi(self, *arguments: str) -> str:
        """Return the output of a command of `jpsi request`."""
        command = [sys.executable, "-m", "jpsi_cli", "request", *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=self.folder).stdout

    def write(self, name: str, text: str) -> str:
        """Write a file in the folder and return its name."""
        (self.folder / name).write_text(text)
        return name

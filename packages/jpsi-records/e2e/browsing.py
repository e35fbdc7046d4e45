"""What the tests with a browser share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import attrs
from selenium.webdriver import Chrome

#: Opens a browser; without scripts if asked to.
Browse = Callable[..., Chrome]


@attrs.frozen
class Shown:
    """Records that `jpsi request serve` shows."""

    folder: Path
    link: str

    def jpsi(self, *arguments: str) -> str:
        """What a command of `jpsi request` writes."""
        command = [sys.executable, "-m", "jpsi_cli", "request", *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=self.folder).stdout

    def write(self, name: str, text: str) -> str:
        """A file in the folder; returns its name."""
        (self.folder / name).write_text(text)
        return name

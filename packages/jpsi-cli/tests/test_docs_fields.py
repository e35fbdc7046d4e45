"""The page about what backends write is what they write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FIELDS = Path(__file__).parents[3] / "docs/fields.py"


def test_the_page_is_what_the_backends_say() -> None:
    command = [sys.executable, str(FIELDS), "--check"]

    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

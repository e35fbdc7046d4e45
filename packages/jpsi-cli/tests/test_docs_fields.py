"""The page with the output of all backends, compared with that output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FIELDS = Path(__file__).parents[3] / "docs/fields.py"


def test_the_page_has_the_output_of_the_backends() -> None:
    command = [sys.executable, str(FIELDS), "--check"]

    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

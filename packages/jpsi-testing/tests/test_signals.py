"""What nohup(1) ignores: the tests of every package, and what they start, heed it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

_CONFTEST = Path(__file__).parents[2] / "conftest.py"
_TEST = """
import subprocess

def test_programs_heed_signals():
    status = subprocess.run(["cat", "/proc/self/status"], check=True, capture_output=True, text=True).stdout
    (ignored,) = [int(it.split()[1], 16) for it in status.splitlines() if it.startswith("SigIgn:")]
    assert [it for it in range(1, 32) if ignored >> (it - 1) & 1] == []
"""


def test_programs_of_tests_heed_what_their_worker_was_started_to_ignore(tmp_path: Path) -> None:
    shutil.copy(_CONFTEST, tmp_path)
    (tmp_path / "test_it.py").write_text(_TEST)
    pytest_words = [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", tmp_path]

    done = subprocess.run(
        ["/bin/sh", "-c", "trap '' HUP INT QUIT TERM ALRM USR1 USR2; exec \"$@\"", "sh", *pytest_words],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )

    assert "1 passed" in done.stdout, done.stdout

"""The PBS or Torque server on PATH."""

from __future__ import annotations

import shutil
import subprocess

import pytest


@pytest.fixture(scope="session")
def system() -> str:
    """Return the name of the system on PATH that answers; skip the tests on a machine without either."""
    if shutil.which("qstat") is None or shutil.which("qsub") is None:
        pytest.skip("no qsub and qstat on PATH")
    # Grid Engine and others have commands of these names
    result = subprocess.run(["qstat", "--version"], capture_output=True, text=True, timeout=60, check=False)
    version = result.stdout + result.stderr
    if "pbs_version" in version:
        found = "pbs"
    elif "Commit:" in version:
        found = "torque"
    else:
        pytest.skip("the qstat on PATH is neither PBS's nor Torque's")
    server = subprocess.run(["qstat", "-B"], capture_output=True, text=True, timeout=60, check=False)
    if server.returncode != 0:
        pytest.skip(f"its server does not answer: {server.stderr.strip()}")
    if found == "pbs" and "job_history_enable = True" not in _output("qstat", "-B", "-f"):
        pytest.skip("this PBS keeps no finished jobs (job_history_enable), and cannot tell how they ended")
    return found


def _output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False).stdout

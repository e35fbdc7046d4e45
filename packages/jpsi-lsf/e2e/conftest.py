"""The LSF on PATH: what it offers to the tests."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from jpsi_testing.long_option import pytest_addoption, pytest_collection_modifyitems, pytest_configure

# pytest finds them here
__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]


def node_cores() -> list[int] | str:
    """Return the number of slots of each host that is up, or the reason why there is no LSF to test with."""
    if shutil.which("bsub") is None:
        return "no bsub is on PATH"
    listed = subprocess.run(["bhosts", "-w"], capture_output=True, text=True, check=False, timeout=60)
    if listed.returncode != 0:
        return f"LSF does not answer: {listed.stderr.strip()}"
    # HOST_NAME STATUS JL/U MAX ...
    rows = [line.split() for line in listed.stdout.splitlines()[1:]]
    return [int(it[3]) for it in rows if it[1] in {"ok", "closed_Full"} and it[3].isdecimal()]


def pytest_report_collectionfinish() -> list[str]:
    """Say what the tests need, and what LSF has; `-q` leaves out the header of a session."""
    found = node_cores()
    if isinstance(found, str):
        return []
    slots = ", ".join(map(str, found))
    return [f"lsf: {len(found)} hosts with {slots} slots; tests that need 2 hosts are skipped without them"]


@pytest.fixture(scope="session")
def cores() -> list[int]:
    """Return the number of slots of each host; skip the tests without LSF."""
    found = node_cores()
    return pytest.skip(found) if isinstance(found, str) else found


@pytest.fixture(scope="session", autouse=True)
def _require_lsf(cores: list[int]) -> None:
    """Skip the tests without LSF."""

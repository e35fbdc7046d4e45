"""The Flux instance of the environment: what it offers to the tests."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from jpsi_testing.long_option import pytest_addoption, pytest_collection_modifyitems, pytest_configure

# pytest finds them here
__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]


def node_cores() -> list[int] | str:
    """Return the number of cores of each node, or the reason why there is no Flux to test with."""
    if shutil.which("flux") is None:
        return "there is no flux on PATH"
    command = [
        "flux",
        "resource",
        "list",
        "--states=free,allocated",
        "--no-header",
        "-o",
        "{nnodes} {ncores}",
    ]
    listed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if listed.returncode != 0:
        return f"no Flux instance answers: {listed.stderr.strip()}"
    counts = [[int(it) for it in line.split()] for line in listed.stdout.splitlines()]
    return [cores // nodes for nodes, cores in counts for _ in range(nodes)]


def pytest_report_collectionfinish() -> list[str]:
    """Say what the tests need, and what the instance has; `-q` leaves out the header of a session."""
    found = node_cores()
    if isinstance(found, str):
        return []
    cores = ", ".join(map(str, found))
    return [f"flux: {len(found)} nodes with {cores} cores; tests that need 2 nodes are skipped without them"]


@pytest.fixture(scope="session")
def cores() -> list[int]:
    """Return the number of cores of each node; skip the tests without an instance."""
    found = node_cores()
    return pytest.skip(found) if isinstance(found, str) else found


@pytest.fixture(scope="session", autouse=True)
def _require_instance(cores: list[int]) -> None:
    """Skip the tests without an instance; `flux start pytest ...` starts one for them."""

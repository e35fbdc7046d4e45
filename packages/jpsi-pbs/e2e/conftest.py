"""The PBS or Torque server on PATH: what it offers to the tests, and the removal of what they leave."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator

import pytest

from jpsi_testing import long_option
from jpsi_testing.long_option import is_long, pytest_addoption  # noqa: F401  pytest finds them here

# Each job of this session has it in its environment, and qstat shows it: other jobs of the user stay.
_SESSION = "JPSI_E2E_SESSION"
_NODES = re.compile(r"^ *np = (\d+)$", re.MULTILINE)
_DOWN = re.compile(r"down|offline|unknown")
# What the widest layouts of the tests need: a pair of nodes with so many cores each.
_NODE_COUNT, _CORES = 2, 4
# How often the jobs that the tests leave are deleted.
_DELETIONS = 20


def pytest_configure(config: pytest.Config) -> None:
    long_option.pytest_configure(config)
    os.environ[_SESSION] = uuid.uuid4().hex


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the conformance tests of the system that is not there, and skip long tests."""
    found, _ = find_system()
    others = [it for it in items if found not in {None, getattr(_class(it), "executor_name", found)}]
    config.hook.pytest_deselected(items=others)
    items[:] = [it for it in items if it not in others]
    long_option.pytest_collection_modifyitems(config, items)


def _class(item: pytest.Item) -> type | None:
    return item.cls if isinstance(item, pytest.Function) else None


def pytest_report_collectionfinish() -> list[str]:
    """Say what the tests need, and what the batch system has; `-q` leaves out the header of a session."""
    found, _ = find_system()
    if found is None:
        return []
    cores = node_cores(found)
    has = f"{len(cores)} nodes with {', '.join(map(str, cores))} cores" if cores else "no node that is up"
    needs = f"some tests need {_NODE_COUNT} nodes with {_CORES} cores each, and are skipped without them"
    return [f"{found}: {has}; {needs}"]


def find_system() -> tuple[str | None, str]:
    """Return the name of the system on PATH that answers, or None and the reason."""
    if shutil.which("qstat") is None or shutil.which("qsub") is None:
        return None, "no qsub and qstat on PATH"
    # Grid Engine and others have commands of these names
    version = _run("qstat", "--version")
    text = version.stdout + version.stderr
    if "pbs_version" in text:
        found = "pbs"
    elif "Commit:" in text:
        found = "torque"
    else:
        return None, "the qstat on PATH is neither PBS's nor Torque's"
    server = _run("qstat", "-B")
    if server.returncode != 0:
        return None, f"its server does not answer: {server.stderr.strip()}"
    if found == "pbs" and "job_history_enable = True" not in _run("qstat", "-B", "-f").stdout:
        return None, "this PBS keeps no finished jobs (job_history_enable), and cannot tell how they ended"
    return found, ""


def node_cores(system: str) -> list[int]:
    """Return the number of cores of each node that is up, the largest first."""
    if system == "torque":
        nodes = [text for text in _run("pbsnodes", "-a").stdout.split("\n\n") if "state = " in text]
        is_up = [it for it in nodes if not _DOWN.search(it.partition("state = ")[2].partition("\n")[0])]
        cores = [int(match[1]) for it in is_up if (match := _NODES.search(it))]
    else:
        listed = json.loads(_run("pbsnodes", "-a", "-F", "json").stdout or "{}").get("nodes", {})
        cores = [
            int(it["resources_available"].get("ncpus", 0))
            for it in listed.values()
            if not _DOWN.search(it["state"])
        ]
    return sorted(cores, reverse=True)


@pytest.fixture(scope="session")
def server_system() -> str:
    """Return the name of the system on PATH that answers; skip the tests on a machine without either."""
    found, why = find_system()
    return found or pytest.skip(why)


@pytest.fixture(scope="session")
def cores(server_system: str) -> list[int]:
    """Return the number of cores of each node."""
    return node_cores(server_system)


@pytest.fixture(scope="session", autouse=True)
def _delete_leftovers() -> Iterator[None]:
    """Delete the jobs of this session that have not ended; Torque may skip those that are just starting."""
    yield
    found, _ = find_system()
    for deletion in range(_DELETIONS if found else 0):
        left = unfinished()
        if not left:
            return
        # OpenPBS deletes elements that it was starting when it was killed by force alone
        by_force = ["-W", "force"] if found == "pbs" and deletion else []
        for native_id in left:
            with contextlib.suppress(subprocess.TimeoutExpired):
                _run("qdel", *by_force, native_id, timeout=10.0)
        time.sleep(2)


def unfinished() -> list[str]:
    """Return the native ids of the jobs and array elements of this session that have not ended."""
    mark = f"{_SESSION}={os.environ[_SESSION]}"
    # lines that qstat has wrapped begin with a tab
    listing = _run("qstat", "-f", "-t").stdout.replace("\n\t", "")
    jobs = [text for text in listing.split("Job Id: ")[1:] if mark in text]
    return [text.split()[0] for text in jobs if not re.search(r"job_state = [CFX]", text)]


def _run(*argv: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, timeout=timeout, check=False)

"""The modules that a job imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOCAL_JOB = """\
import json, sys
import jpsi

executor = jpsi.JobExecutor.get_instance("local")
job = jpsi.Job(jpsi.JobSpec("/bin/sh", ["-c", "echo done"]))
executor.submit(job)
status = job.wait(60)
assert status is not None and status.state is jpsi.JobState.COMPLETED, status
assert job.streams.stdout.read_text() == "done\\n"
assert [it.id for it in jpsi.JobExecutor.get_instance("local").recover()] == []
print("\\n".join(sorted(sys.modules)))
"""

#: What a job of this machine has no use for. `spool.arrays` is none of it: it reads what is on disk.
NOT_NEEDED = (
    "jpsi_engine.batch",
    "jpsi_engine.monitor.event_stream",
    "jpsi_engine.remote",
    "jpsi_engine.runner.arrays",
    "jpsi_engine.submission.bulk",
    "jpsi_engine.submission.recovery",
    "jpsi_engine.transfer.remote_commands",
    "jpsi_engine.transfer.remote_copy",
    "jpsi_engine.transfer.remote_files",
    "jpsi_engine.transfer.remote_shell",
    "jpsi_engine.transfer.remote_plan",
    "jpsi_testing",
)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the modules that an interpreter imports for a local job from its submission to its end."""
    home = tmp_path_factory.mktemp("home")
    directories = {f"XDG_{kind}_HOME": str(home) for kind in ("CACHE", "CONFIG", "STATE")}
    done = subprocess.run(
        [sys.executable, "-c", LOCAL_JOB],
        check=True,
        cwd=home,
        env={**os.environ, **directories, "XDG_CONFIG_DIRS": str(home)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("module", NOT_NEEDED)
def test_local_job_does_without(imported: set[str], module: str) -> None:
    assert not {it for it in imported if it == module or it.startswith(f"{module}.")}


def test_modules_that_a_local_job_does_without_exist() -> None:
    """A module that was renamed would be imported unnoticed."""
    packages = Path(__file__).parents[2]
    sources = [packages / "jpsi-engine/src", packages / "jpsi-testing/src"]

    for module in NOT_NEEDED:
        stems = [source.joinpath(*module.split(".")) for source in sources]
        assert any(stem.is_dir() or stem.with_suffix(".py").exists() for stem in stems), module


def test_local_job_needs_its_engine(imported: set[str]) -> None:
    assert "jpsi_engine.local.local_engine" in imported

"""The same job in a real container on Slurm and on this machine; `ci/containers/up` installs the runtimes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

import jpsi

# runc works where cgroups of both versions are mounted; limits above those of this machine are refused.
_PODMAN = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
_NAME = "localhost/jpsi-e2e:1"
_PROGRAM = 'cat in.txt; pwd; echo "$A, $B" >out.txt; [ ! -e /usr/share ] || exit 8; exit 7'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make an image from programs of this machine; return its directory."""
    root = tmp_path / "image"
    for name in ("sh", "cat"):
        program = Path(shutil.which(name) or "/bin/sh").resolve()
        needed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
        libraries = re.findall(r"/\S+", needed)
        for source, target in ((program, f"/bin/{name}"), *((Path(it), it) for it in libraries)):
            place = root / target.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, place)
    for name in ("tmp", "proc", "sys", "dev", "etc"):
        (root / name).mkdir()
    for name in ("passwd", "group", "hosts", "resolv.conf"):
        (root / "etc" / name).touch()
    return root


@pytest.fixture(params=["charliecloud", "podman"])
def container(request: pytest.FixtureRequest, tree: Path, tmp_path: Path) -> jpsi.Container:
    """Return a container of that image, for each runtime that is installed."""
    runtime = request.param
    if not shutil.which({"charliecloud": "ch-run"}.get(runtime, runtime)):
        pytest.skip(f"{runtime} is not installed; ci/containers/up does it")
    if runtime == "charliecloud":
        _require(["ch-run", str(tree), "--", "sh", "-c", ":"], dict(os.environ))
        return jpsi.Container(tree, runtime)
    (tmp_path / "containers.conf").write_text(_PODMAN)
    with tarfile.open(tmp_path / "image.tar", "w") as archive:
        archive.add(tree, ".")
    environment = {**os.environ, "CONTAINERS_CONF": str(tmp_path / "containers.conf")}
    _require(["podman", "import", "--quiet", str(tmp_path / "image.tar"), _NAME], environment)
    _require(["podman", "run", "--rm", _NAME, "sh", "-c", ":"], environment)
    return jpsi.Container(f"docker://{_NAME}", runtime)


def _require(command: list[str], environment: dict[str, str]) -> None:
    """Skip the test if a runtime cannot do that on this machine by itself."""
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"{' '.join(command[:2])} does not work here: {done.stderr.strip()}")


@pytest.mark.parametrize("executor", ["local", "slurm"])
def test_a_job_runs_in_a_real_container(executor: str, container: jpsi.Container, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("staged\n")
    directory = tmp_path / "work, here"
    container.environment = {"B": '"b" of ${A}'}
    job = jpsi.Job(
        jpsi.JobSpec(
            "sh",
            ["-c", _PROGRAM],
            directory=directory,
            create_directory=True,
            environment={"A": "a, a", "CONTAINERS_CONF": str(tmp_path / "containers.conf")},
            container=container,
            stage_in=[jpsi.StageIn(tmp_path / "given", "in.txt")],
        )
    )

    jpsi.JobExecutor.get_instance(executor).submit(job)
    status = job.wait()

    assert job.streams is not None
    assert status.exit_code == 7, (status, job.streams.stderr.read_text())
    assert job.streams.stdout.read_text() == f"staged\n{directory}\n"
    assert (directory / "out.txt").read_text() == 'a, a, "b" of a, a\n'


def test_a_launcher_starts_a_container_for_each_process(container: jpsi.Container, tmp_path: Path) -> None:
    job = jpsi.Job(
        jpsi.JobSpec(
            "sh",
            ["-c", 'echo "rank $SLURM_PROCID"'],
            directory=tmp_path,
            environment={"CONTAINERS_CONF": str(tmp_path / "containers.conf")},
            container=container,
            launcher="srun",
            resources=jpsi.ResourceSpecV1(process_count=2),
        )
    )

    jpsi.JobExecutor.get_instance("slurm").submit(job)
    status = job.wait()

    assert job.streams is not None
    assert status.exit_code == 0, (status, job.streams.stderr.read_text())
    assert sorted(job.streams.stdout.read_text().splitlines()) == ["rank 0", "rank 1"]

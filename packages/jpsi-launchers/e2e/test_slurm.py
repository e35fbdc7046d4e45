"""Each launcher that has a business in Slurm starts real MPI programs on two nodes of it."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
from mpi_program import compiled, on_path, processes_of, told

from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState, JobStatus, ResourceSpecV1

PATIENCE = 120
# What srun must be told of an MPI; see facts of Slurm's guide to MPI.
PMI = {"openmpi": "pmix", "mpich": "pmi2"}
WAYS = [(mpi, launcher) for mpi in ("openmpi", "mpich") for launcher in ("mpirun", "mpiexec", "srun")]
TWO_BY_TWO = ResourceSpecV1(node_count=2, processes_per_node=2)
HOSTILE = [
    "exit 3",
    "set -eu",
    "cd /",
    "trap - TERM INT HUP; trap '' USR1",
    "set -- a b c",
    "IFS=/",
]


@attrs.frozen
class Site:
    """A program of an MPI, a launcher for it, and a directory with a strange name."""

    executor: JobExecutor
    program: Path
    path: Path
    mpi: str
    launcher: str
    directory: Path

    def spec(self, *arguments: str, **fields: Any) -> JobSpec:
        custom = {"srun.mpi": PMI[self.mpi]} if self.launcher == "srun" else {}
        given = {
            "resources": TWO_BY_TWO,
            "environment": {"PATH": f"{self.path}:/usr/bin:/bin"},
            "launcher": self.launcher,
            "directory": self.directory,
            "attributes": JobAttributes(duration=timedelta(minutes=2), custom_attributes=custom),
        }
        return JobSpec(str(self.program), list(arguments), **(given | fields))

    def script(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(f"{text}\n")
        return path

    def run(self, spec: JobSpec) -> tuple[JobStatus, Job]:
        job = Job(spec)
        self.executor.submit(job)
        status = job.wait(PATIENCE)
        assert status is not None
        return status, job

    def completed(self, spec: JobSpec) -> Job:
        status, job = self.run(spec)
        assert status.state is JobState.COMPLETED, (status, _text(job, "stderr"))
        return job


def _text(job: Job, stream: str) -> str:
    assert job.streams is not None
    return str(getattr(job.streams, stream).read_text())


@pytest.fixture(params=WAYS, ids="-".join)
def site(request: pytest.FixtureRequest, executor: JobExecutor, tmp_path: Path) -> Site:
    mpi, launcher = request.param
    directory = tmp_path / 'it\'s a "place"'
    directory.mkdir()
    program = compiled(directory, mpi)
    return Site(executor, program, on_path(tmp_path / "bin", mpi), mpi, launcher, directory)


def test_ranks_are_on_both_nodes_with_what_pre_launch_set(site: Site) -> None:
    value = "a;b, 'c' \"d\" \\ $HOME"
    script = site.script("pre launch", f"FROM_PRE_LAUNCH={_quoted(value)}; export FROM_PRE_LAUNCH")

    job = site.completed(site.spec(pre_launch=script))

    assert told(_text(job, "stdout")) == [(rank, 4, f"node0{1 + rank // 2}", value) for rank in range(4)]
    assert not _text(job, "stderr")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def test_ranks_of_an_empty_environment_find_each_other(site: Site) -> None:
    script = site.script("pre", "export FROM_PRE_LAUNCH=here")
    spec = site.spec(pre_launch=script, inherit_environment=False)

    # the launcher is found on the system's own PATH, and it is one MPI's only
    if site.launcher != "srun" and site.mpi != "openmpi":
        spec.pre_launch = site.script("pre", f"export FROM_PRE_LAUNCH=here PATH='{site.path}':$PATH")
    job = site.completed(spec)

    assert [(rank, size, value) for rank, size, _, value in told(_text(job, "stdout"))] == [
        (rank, 4, "here") for rank in range(4)
    ]


def test_nodes_may_be_uneven(site: Site) -> None:
    resources = ResourceSpecV1(process_count=3, processes_per_node=2)

    job = site.completed(site.spec(resources=resources))

    assert [host for _, _, host, _ in told(_text(job, "stdout"))] == ["node01", "node01", "node02"]


def test_the_node_file_names_the_node_of_each_rank(site: Site) -> None:
    script = site.script("pre", 'cp "$JPSI_NODEFILE" nodes; cp "$PSIJ_NODEFILE" again')

    job = site.completed(site.spec(pre_launch=script))

    hosts = [host for _, _, host, _ in told(_text(job, "stdout"))]
    assert (site.directory / "nodes").read_text().split() == hosts
    assert (site.directory / "again").read_text().split() == hosts


def test_a_rank_that_fails_fails_the_job_with_its_code(site: Site) -> None:
    status, _ = site.run(site.spec("2", "7"))

    assert (status.state, status.exit_code) == (JobState.FAILED, 7)


def test_a_cancelled_job_leaves_no_process(site: Site) -> None:
    there = site.directory / "there"
    there.mkdir()
    job = Job(site.spec("0", "0", str(there)))
    site.executor.submit(job)
    _until(lambda: len(list(there.iterdir())) == 4)
    assert len(processes_of(site.program)) == 4

    job.cancel()

    status = job.wait(PATIENCE)
    assert status is not None
    assert status.state is JobState.CANCELED
    _until(lambda: processes_of(site.program) == [], 15)


def _until(is_true: Any, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("text", HOSTILE, ids=str)
def test_a_hostile_post_launch_changes_no_code(executor: JobExecutor, tmp_path: Path, text: str) -> None:
    directory = tmp_path / "place"
    directory.mkdir()
    program, path = compiled(directory, "openmpi"), on_path(tmp_path / "bin", "openmpi")
    site = Site(executor, program, path, "openmpi", "mpirun", directory)
    pre = text if text != "exit 3" else ":"

    status, _ = site.run(
        site.spec("1", "7", pre_launch=site.script("pre", pre), post_launch=site.script("post", text))
    )

    assert (status.state, status.exit_code) == (JobState.FAILED, 7)


def test_a_failing_pre_launch_fails_the_job(executor: JobExecutor, tmp_path: Path) -> None:
    script = tmp_path / "pre"
    script.write_text("exit 3\n")
    job = Job(JobSpec("/bin/echo", ["never"], pre_launch=script, launcher="srun", resources=TWO_BY_TWO))
    executor.submit(job)

    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.exit_code) == (JobState.FAILED, 3)
    assert "pre_launch" in str(status.message)
    assert _text(job, "stdout") == ""


def test_standard_input_is_for_rank_0_and_a_colon_is_a_word(executor: JobExecutor, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("put in")
    text = 'printf "%s\\n" "$SLURM_PROCID [$(cat)] $1"'
    job = Job(
        JobSpec(
            "/bin/sh",
            ["-c", text, "sh", ":"],
            stdin_path=tmp_path / "in",
            launcher="srun",
            resources=TWO_BY_TWO,
        )
    )
    executor.submit(job)

    assert job.wait(PATIENCE) is not None
    assert sorted(_text(job, "stdout").splitlines()) == ["0 [put in] :", *(f"{it} [] :" for it in (1, 2, 3))]

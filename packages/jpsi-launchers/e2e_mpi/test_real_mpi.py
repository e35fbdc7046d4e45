"""Real MPI programs on this host; Open MPI needs an option if root runs the tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpi_program import compiled, on_path, parse_ranks, processes_of

from jpsi import ExecutorConfig, Job, JobExecutor, JobSpec, JobState, JobStatus, ResourceSpecV1
from launchers_support import lines_of, script_of, spec_of

TIMEOUT_SECONDS = 60
COUNT = 4
WAYS = [(mpi, launcher) for mpi in ("openmpi", "mpich") for launcher in ("mpirun", "mpiexec")]


@pytest.fixture(params=WAYS, ids="-".join)
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> JobSpec:
    """Run four ranks of a program in a directory whose name needs quoting."""
    mpi, launcher = request.param
    directory = tmp_path / 'it\'s a "place"'
    directory.mkdir()
    return JobSpec(
        str(compiled(directory, mpi)),
        launcher=launcher,
        directory=directory,
        environment={"PATH": f"{on_path(tmp_path / 'bin', mpi)}:/usr/bin:/bin"},
        resources=ResourceSpecV1(process_count=COUNT),
    )


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[JobExecutor]:
    with JobExecutor.get_instance(
        "local", config=ExecutorConfig(work_directory=tmp_path / "work")
    ) as executor:
        yield executor


def ended(executor: JobExecutor, spec: JobSpec) -> tuple[JobStatus, str]:
    job = Job(spec)
    executor.submit(job)
    status = job.wait(TIMEOUT_SECONDS)
    assert status is not None
    assert job.streams is not None
    return status, job.streams.stdout.read_text()


def test_ranks_connect_and_have_the_variables_of_pre_launch(executor: JobExecutor, spec: JobSpec) -> None:
    assert spec.directory is not None
    spec.pre_launch = spec.directory / "pre launch"
    spec.pre_launch.write_text("FROM_PRE_LAUNCH='a;b, \"c\"'; export FROM_PRE_LAUNCH\n")

    status, output = ended(executor, spec)

    assert status.state is JobState.COMPLETED
    found = parse_ranks(output)
    assert [rank for rank, _, _, _ in found] == list(range(COUNT))
    assert {(size, value) for _, size, _, value in found} == {(COUNT, 'a;b, "c"')}


def test_a_rank_that_fails_fails_the_job_with_its_code(executor: JobExecutor, spec: JobSpec) -> None:
    spec.arguments = ["2", "7"]

    status, _ = ended(executor, spec)

    assert (status.state, status.exit_code) == (JobState.FAILED, 7)


def test_a_cancelled_job_leaves_no_process(executor: JobExecutor, spec: JobSpec, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    spec.arguments = ["0", "0", str(there)]
    job = Job(spec)
    executor.submit(job)
    while len(list(there.iterdir())) < COUNT:
        assert job.wait(0.1) is None

    job.cancel()

    status = job.wait(TIMEOUT_SECONDS)
    assert status is not None
    assert status.state is JobState.CANCELED
    assert processes_of(Path(str(spec.executable))) == []


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_one_rank_that_is_ended_is_no_success(tmp_path: Path, mpi: str) -> None:
    """Hydra itself ends with 0 when it and its only process were ended by TERM."""
    compiled(tmp_path, mpi)
    script = script_of(lines_of(spec_of("mpirun")), tmp_path / "launch")
    # the lines as the shell itself, so that its pid is known
    script.write_text(script.read_text().replace("\n(\n", "\n{\n", 1).removesuffix(")\n") + "}\n")
    path = {"PATH": f"{on_path(tmp_path / 'bin', mpi)}:/usr/bin:/bin", "_jpsi_folder": str(tmp_path)}
    command = ["/bin/sh", str(script), "/bin/sh", "-c", "echo up; exec sleep 1000"]

    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=path, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.terminate()

        assert process.wait(TIMEOUT_SECONDS) != 0


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_the_environment_reaches_other_nodes(tmp_path: Path, mpi: str) -> None:
    """The other node is played by what is run in place of ssh: this machine, with a bare environment."""
    compiled(tmp_path, mpi)
    ssh = tmp_path / "ssh"
    ssh.write_text(
        "#!/bin/sh\n"
        "while :; do case $1 in -*) shift ;; *) break ;; esac; done\n"
        f"other=$1; shift; mkdir -p '{tmp_path}'/tmp\n"
        f"exec env -i PATH=/usr/bin:/bin HOME=/ TMPDIR='{tmp_path}'/tmp OTHER=$other /bin/sh -c \"$*\"\n"
    )
    ssh.chmod(0o755)
    (tmp_path / "nodes").write_text(f"{_this_machine()}\nanother\n")
    script = script_of(lines_of(spec_of("mpirun", process_count=2)), tmp_path / "launch")
    value = 'a;b,c=\n"d" \\n'

    done = subprocess.run(
        ["/bin/sh", script, "/bin/sh", "-c", 'printf "%s|%s." "$OTHER" "$VALUE"'],
        check=True,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT_SECONDS,
        env={
            "PATH": f"{on_path(tmp_path / 'bin', mpi)}:/usr/bin:/bin",
            "JPSI_NODEFILE": str(tmp_path / "nodes"),
            "VALUE": value,
            "_jpsi_folder": str(tmp_path),
            "OMPI_MCA_plm_rsh_agent": str(ssh),
            "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXEC": str(ssh),
        },
    )

    assert f"another|{value}." in done.stdout
    assert f"|{value}." in done.stdout.replace(f"another|{value}.", "")


def _this_machine() -> str:
    return subprocess.run(["uname", "-n"], check=True, capture_output=True, text=True).stdout.strip()

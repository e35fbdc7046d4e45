"""Each launcher that has a business in Slurm starts real MPI programs on two nodes of it."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
from mpi_program import compiled, on_path, parse_ranks, processes_of

from jpsi import (
    Evidence,
    HeterogeneousResources,
    Job,
    JobAttributes,
    JobExecutor,
    JobSpec,
    JobState,
    JobStatus,
    ResourceSpecV1,
)

TIMEOUT_SECONDS = 120
# The option --mpi of srun for each MPI; "MPI Guide" of Slurm.
PMI = {"openmpi": "pmix", "mpich": "pmi2"}
# The others go the same ways under another name.
WAYS = [
    ("openmpi", "mpirun"),
    ("mpich", "mpiexec"),
    ("openmpi", "srun"),
    ("mpich", "srun"),
    pytest.param(("openmpi", "mpiexec"), marks=pytest.mark.long),
    pytest.param(("mpich", "mpirun"), marks=pytest.mark.long),
]
TWO_BY_TWO = ResourceSpecV1(node_count=2, processes_per_node=2)
HOSTILE = [
    "exit 3",
    "set -eu",
    "cd /",
    "trap - TERM INT HUP; trap '' USR1",
    "set -- a b c",
    "IFS=/",
]
# The rank of a process, whatever started it.
RANK = "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$SLURM_PROCID}}"


@attrs.frozen
class Site:
    """A program of an MPI, a launcher for it, and a directory with a strange name."""

    executor: JobExecutor
    program: Path
    path: Path
    mpi: str
    launcher: str
    directory: Path

    def spec(self, *arguments: str, executable: str | None = None, **fields: Any) -> JobSpec:
        custom = {"srun.mpi": PMI[self.mpi]} if self.launcher == "srun" else {}
        given = {
            "resources": TWO_BY_TWO,
            "environment": {"PATH": f"{self.path}:/usr/bin:/bin"},
            "launcher": self.launcher,
            "directory": self.directory,
            "attributes": JobAttributes(duration=timedelta(minutes=2), custom_attributes=custom),
        }
        return JobSpec(executable or str(self.program), list(arguments), **(given | fields))

    def script(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(f"{text}\n")
        return path

    def run(self, spec: JobSpec) -> tuple[JobStatus, Job]:
        job = Job(spec)
        self.executor.submit(job)
        status = job.wait(TIMEOUT_SECONDS)
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


def test_ranks_are_on_both_nodes_with_the_variables_of_pre_launch(site: Site) -> None:
    value = "a;b, 'c' \"d\" \\ $HOME"
    script = site.script("pre launch", f"FROM_PRE_LAUNCH={_quoted(value)}; export FROM_PRE_LAUNCH")

    job = site.completed(site.spec(pre_launch=script))

    assert parse_ranks(_text(job, "stdout")) == [
        (rank, 4, f"node0{1 + rank // 2}", value) for rank in range(4)
    ]
    assert not _text(job, "stderr")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def test_ranks_with_an_empty_environment_connect(site: Site) -> None:
    script = site.script("pre", "export FROM_PRE_LAUNCH=here")
    spec = site.spec(pre_launch=script, inherit_environment=False)

    # the launcher is found on the system's own PATH, and it is one MPI's only
    if site.launcher != "srun" and site.mpi != "openmpi":
        spec.pre_launch = site.script("pre", f"export FROM_PRE_LAUNCH=here PATH='{site.path}':$PATH")
    job = site.completed(spec)

    assert [(rank, size, value) for rank, size, _, value in parse_ranks(_text(job, "stdout"))] == [
        (rank, 4, "here") for rank in range(4)
    ]


def test_nodes_may_be_uneven(site: Site) -> None:
    resources = ResourceSpecV1.uneven(process_count=4, processes_per_node=3)
    script = site.script("pre", 'cp "$JPSI_NODEFILE" nodes')

    job = site.completed(site.spec(resources=resources, pre_launch=script))

    hosts = [host for _, _, host, _ in parse_ranks(_text(job, "stdout"))]
    assert hosts == ["node01", "node01", "node01", "node02"]
    assert (site.directory / "nodes").read_text().split() == hosts
    assert not _text(job, "stderr")


def test_the_node_file_names_the_node_of_each_rank(site: Site) -> None:
    script = site.script("pre", 'cp "$JPSI_NODEFILE" nodes; cp "$PSIJ_NODEFILE" again')

    job = site.completed(site.spec(pre_launch=script))

    hosts = [host for _, _, host, _ in parse_ranks(_text(job, "stdout"))]
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

    status = job.wait(TIMEOUT_SECONDS)
    assert status is not None
    assert status.state is JobState.CANCELED
    _until(lambda: processes_of(site.program) == [], 15)


def _until(is_true: Any, seconds: float = TIMEOUT_SECONDS) -> None:
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_hostile_scripts_change_no_code(site: Site) -> None:
    """All at once; `exit`, which ends the job in pre_launch, only after it."""
    *others, _ = reversed(HOSTILE)
    pre, post = "\n".join(others), "\n".join([*others, "exit 3"])

    _ends_with_its_code(site, pre, post)


@pytest.mark.long
@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_script_changes_no_code(site: Site, text: str) -> None:
    _ends_with_its_code(site, text if text != "exit 3" else ":", text)


def _ends_with_its_code(site: Site, pre: str, post: str) -> None:
    status, _ = site.run(
        site.spec("1", "7", pre_launch=site.script("pre", pre), post_launch=site.script("post", post))
    )

    assert (status.state, status.exit_code) == (JobState.FAILED, 7)
    assert status.evidence is Evidence.MARKER


def test_processes_have_the_default_signal_dispositions(site: Site) -> None:
    job = site.completed(site.spec("/proc/self/status", executable="/bin/cat"))

    assert _blocked_signals(job) == ["0"] * 4


@pytest.mark.parametrize(("launcher", "count"), [("single", 1), ("multiple", 3)])
def test_processes_of_one_node_have_the_default_signal_dispositions(
    executor: JobExecutor, launcher: str, count: int
) -> None:
    resources = ResourceSpecV1(process_count=count, node_count=1)
    job = Job(JobSpec("/bin/cat", ["/proc/self/status"], launcher=launcher, resources=resources))
    executor.submit(job)

    assert job.wait(TIMEOUT_SECONDS) is not None
    assert _blocked_signals(job) == ["0"] * count


def _blocked_signals(job: Job) -> list[str]:
    """Return the POSIX signals that each process ignores or blocks, as a mask without real-time signals."""
    masks = re.findall(r"^SigBlk:\t(\w+)\nSigIgn:\t(\w+)$", _text(job, "stdout"), re.MULTILINE)
    return [f"{(int(blocked, 16) | int(ignored, 16)) & 0x7FFFFFFF:x}" for blocked, ignored in masks]


def test_paths_may_have_any_characters(site: Site) -> None:
    program = site.program.rename(site.directory / 'my "program" it\'s')
    (site.directory / "in $x").write_text("")
    post = site.script('post "it\'s"', ": >ended")

    site.completed(
        site.spec(
            executable=str(program),
            stdin_path=Path("in $x"),
            stdout_path=Path("out 'put"),
            stderr_path=site.directory / 'err "or',
            post_launch=post,
        )
    )

    assert len(parse_ranks((site.directory / "out 'put").read_text())) == 4
    assert (site.directory / 'err "or').read_text() == ""
    assert (site.directory / "ended").exists()


def test_a_failing_pre_launch_fails_the_job(executor: JobExecutor, tmp_path: Path) -> None:
    script = tmp_path / "pre"
    script.write_text("exit 3\n")
    job = Job(JobSpec("/bin/echo", ["never"], pre_launch=script, launcher="srun", resources=TWO_BY_TWO))
    executor.submit(job)

    status = job.wait(TIMEOUT_SECONDS)

    assert status is not None
    assert (status.state, status.exit_code) == (JobState.FAILED, 3)
    assert "pre_launch" in str(status.message)
    assert _text(job, "stdout") == ""


def test_standard_input_is_for_rank_0_and_a_colon_is_a_word(site: Site) -> None:
    (site.directory / "in").write_text("put in")
    text = f'printf "%s\\n" "{RANK} [$(cat)] $1"'

    job = site.completed(site.spec("-c", text, "sh", ":", executable="/bin/sh", stdin_path=Path("in")))

    assert sorted(_text(job, "stdout").splitlines()) == ["0 [put in] :", *(f"{it} [] :" for it in (1, 2, 3))]


KINDS = HeterogeneousResources(
    [ResourceSpecV1(cpu_cores_per_process=2), ResourceSpecV1(node_count=1, processes_per_node=3)]
)


def test_ranks_of_all_components_are_one_world(site: Site) -> None:
    if site.launcher != "srun":
        pytest.skip("of these launchers srun alone starts processes in all components of Slurm")

    job = Job(site.spec(resources=KINDS))
    site.executor.submit(job)

    # not the end of the job: after all processes of several components have ended, srun of Slurm 22.05 may
    # hang in its PMIx plugin (pmixp_abort_agent_stop), as a loop of srun alone, without jpsi, shows
    _until(lambda: len(_ranks_printed(job)) == 4)
    job.cancel()
    found = _ranks_printed(job)
    assert [(rank, size) for rank, size, _, _ in found] == [(rank, 4) for rank in range(4)]
    first, *others = (node for _, _, node, _ in found)
    assert {first, *others} == {"node01", "node02"}
    assert len({*others}) == 1


def _ranks_printed(job: Job) -> list[tuple[int, int, str, str]]:
    """Return the ranks whose lines the job has printed; none while its output does not exist."""
    if job.streams is None or not job.streams.stdout.exists():
        return []
    whole_lines, _, _ = _text(job, "stdout").rpartition("\n")
    return parse_ranks(whole_lines)


def test_a_process_that_fails_in_the_last_component_fails_the_job(
    executor: JobExecutor, tmp_path: Path
) -> None:
    text = 'echo "$SLURM_PROCID"; [ "$SLURM_PROCID" != 3 ] || exit 7'
    job = Job(JobSpec("/bin/sh", ["-c", text], launcher="srun", resources=KINDS, directory=tmp_path))
    executor.submit(job)

    status = job.wait(TIMEOUT_SECONDS)

    assert status is not None
    assert (status.state, status.exit_code) == (JobState.FAILED, 7)
    assert sorted(_text(job, "stdout").split()) == ["0", "1", "2", "3"]

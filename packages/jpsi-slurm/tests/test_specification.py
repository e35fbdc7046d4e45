"""The examples of the specification's Appendix C that request many processes, as directives for Slurm."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi as psij
from jpsi_testing.fake import FakeScheduler, on_path


@pytest.fixture(autouse=True)
def _fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path / name))
    for name in ("JPSI_CONFIG", "JPSI_PLUGIN_PATH"):
        monkeypatch.delenv(name, raising=False)
    with FakeScheduler() as scheduler, on_path("slurm", scheduler):
        yield


def requested_options(job_spec: psij.JobSpec) -> set[str]:
    """Return the options in the script."""
    preview = psij.JobExecutor.get_instance("slurm").preview(psij.Job(job_spec))
    assert preview.script is not None
    lines = preview.script.splitlines()
    return {line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH ")}


@pytest.mark.clause("resources-cores", "resources-gpus", "resources-processes", "example-processes")
def test_p_processes_get_c_cores_and_g_gpus_each() -> None:
    res_spec = psij.ResourceSpecV1()
    res_spec.process_count = 10
    res_spec.cpu_cores_per_process = 4
    res_spec.gpu_cores_per_process = 1
    job_spec = psij.JobSpec()
    job_spec.executable = "echo"
    job_spec.arguments = ["foo", "bar", "buz"]
    job_spec.directory = Path("/tmp/")
    job_spec.stdin_path = Path("/dev/null")
    job_spec.stdout_path = Path("work.out")
    job_spec.stderr_path = Path("work.err")
    job_spec.resources = res_spec
    job_spec.launcher = "single"

    assert {"--ntasks=10", "--cpus-per-task=4", "--gpus-per-task=1"} <= requested_options(job_spec)


@pytest.mark.clause("resources-exclusive-node", "resources-per-node", "example-exclusive")
def test_n_exclusive_nodes_have_p_processes_each() -> None:
    res_spec = psij.ResourceSpecV1()
    res_spec.exclusive_node_use = True
    res_spec.process_count = 10
    res_spec.processes_per_node = 2
    job_spec = psij.JobSpec()
    job_spec.executable = "workload.py"
    job_spec.arguments = ["foo", "bar", "buz"]
    job_spec.resources = res_spec
    job_spec.launcher = "single"

    assert {"--nodes=5", "--ntasks=10", "--ntasks-per-node=2", "--exclusive"} <= requested_options(job_spec)


@pytest.mark.clause("example-knobs")
def test_every_attribute_is_rendered() -> None:
    res_spec = psij.ResourceSpecV1()
    res_spec.exclusive_node_use = False  # other jobs can run on the job's nodes
    res_spec.process_count = 10  # run a total of 10 ranks
    res_spec.processes_per_node = 3  # place 3 ranks per node
    res_spec.cpu_cores_per_process = 4  # each rank obtains 4 cores
    res_spec.gpu_cores_per_process = 2  # ... and 2 GPUs
    job_spec = psij.JobSpec()
    job_spec.name = "psij_example"
    job_spec.directory = Path("/tmp")
    job_spec.executable = "workload.py"
    job_spec.arguments = ["foo", "bar", "buz"]
    job_spec.resources = res_spec
    job_spec.inherit_environment = True
    job_spec.environment = {"FOO": "foo", "BAR": "bar"}
    job_spec.launcher = "single"
    job_spec.attributes.duration = timedelta(seconds=1000)
    job_spec.attributes.queue_name = "debug"
    job_spec.attributes.project_name = "psij_devel"
    job_spec.attributes.reservation_id = "R123_456"

    options = requested_options(job_spec)

    assert {
        "--nodes=4",
        "--ntasks=10",
        "--ntasks-per-node=3",
        "--cpus-per-task=4",
        "--gpus-per-task=2",
        "--partition=debug",
        "--account=psij_devel",
        "--reservation=R123_456",
        "--job-name=psij_example",
    } <= options
    assert "--exclusive" not in options
    assert any(it.startswith("--time=") and it != "--time=10" for it in options)

"""How the resources of rules become specs of jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from snakemake_interface_common.exceptions import WorkflowError

import jpsi
from snakemake_executor_plugin_jpsi.job_spec import make_job_spec


def _spec(threads: int = 1, environment: dict[str, str] | None = None, **resources: Any) -> jpsi.JobSpec:
    return make_job_spec("run it", "make", threads, resources, environment or {})


def _resources(threads: int = 1, **resources: Any) -> jpsi.ResourceSpecV1:
    found = _spec(threads, **resources).resources
    assert isinstance(found, jpsi.ResourceSpecV1)
    return found


def test_the_line_of_snakemake_reaches_the_shell_as_it_is() -> None:
    spec = make_job_spec("echo ${HOME} $HOME 'a b'", "make", 1, {}, {"SECRET": "${x}"})

    assert (spec.executable, spec.arguments) == ("/bin/sh", ["-c", jpsi.escape("echo ${HOME} $HOME 'a b'")])
    assert spec.environment == {"SECRET": jpsi.escape("${x}")}
    assert spec.name == "make"


def test_threads_are_the_cores_of_a_job() -> None:
    assert _resources(4).cpu_cores_per_process == 4
    assert _resources(4, cpus_per_task=2).cpu_cores_per_process == 2


def test_memory_is_in_megabytes_and_time_in_minutes() -> None:
    assert _resources(mem_mb=300).memory == 300_000_000
    assert _resources(4, tasks=2, mem_mb_per_cpu=100).memory == 800_000_000
    assert _spec(runtime=90).attributes.duration == timedelta(hours=1.5)
    assert _spec().attributes.duration is None


def test_a_job_with_mpi_has_tasks_and_starts_them_itself() -> None:
    spec = _spec(mpi="mpirun", tasks=6, nodes=2)

    assert spec.resources == jpsi.ResourceSpecV1(process_count=6, node_count=2, cpu_cores_per_process=1)
    assert spec.launcher == "single"


def test_tasks_may_be_shared_unevenly_by_nodes() -> None:
    assert _resources(tasks=5, nodes=2).computed_processes_per_node == 3


def test_gpus_are_shared_by_the_tasks() -> None:
    assert _resources(gpu=4, tasks=2).gpu_cores_per_process == 2
    with pytest.raises(WorkflowError, match="rule make: gpu=3 cannot be shared equally by tasks=2"):
        _resources(gpu=3, tasks=2)


def test_queue_and_account_have_the_names_of_the_plugin_for_slurm_too() -> None:
    attributes = _spec(slurm_partition="long", slurm_account="physics").attributes

    assert (attributes.queue_name, attributes.project_name) == ("long", "physics")
    assert _spec(slurm_partition="long", jpsi_queue="night").attributes.queue_name == "night"


def test_custom_attributes_are_separated_by_commas() -> None:
    spec = _spec(jpsi_attributes="slurm.qos=debug, slurm.requeue")

    assert spec.attributes.custom_attributes == {"slurm.qos": "debug", "slurm.requeue": ""}


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"mem_mb": "much"}, "rule make: mem_mb='much' is not a whole number"),
        ({"nodes": 1.5}, r"rule make: nodes=1\.5 is not a whole number"),
        ({"tasks": -1}, "rule make: tasks=-1 is not a whole number"),
        ({"runtime": "long"}, "rule make: runtime='long' is not a number of minutes"),
    ],
    ids=["text", "fraction", "negative", "time"],
)
def test_a_resource_that_no_job_can_request_is_an_error(resources: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkflowError, match=message):
        _spec(**resources)

"""Conversion of jobs, from documents and submit scripts, to workflows, with reports of losses."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

import jpsi
from jobspec_support import planned
from jpsi_jobspec.conversion import from_job
from jpsi_jobspec.document.shape import as_resources
from jpsi_jobspec.planning.plan import Entry, Kind
from jpsi_jobspec.running.job_specs import submitted_spec


def entry_of(spec: jpsi.JobSpec) -> Entry:
    (entry,) = planned(yaml.safe_dump(dict(from_job(spec).content))).entries
    return entry


@pytest.mark.parametrize(
    "resources",
    [
        jpsi.ResourceSpecV1(process_count=3, cpu_cores_per_process=2),
        jpsi.ResourceSpecV1(node_count=2, processes_per_node=2, cpu_cores_per_process=3),
        jpsi.ResourceSpecV1(
            node_count=2, processes_per_node=2, cpu_cores_per_process=1, gpu_cores_per_process=1, memory=2**32
        ),
        jpsi.ResourceSpecV1(
            node_count=1, processes_per_node=1, cpu_cores_per_process=1, exclusive_node_use=True
        ),
    ],
    ids=str,
)
def test_a_job_becomes_a_workflow_with_the_same_requests(resources: jpsi.ResourceSpecV1) -> None:
    entry = entry_of(jpsi.JobSpec("app", ["-v"], name="fit", resources=resources))

    assert (entry.id, entry.command) == ("fit", ("app", "-v"))
    assert entry.shape is not None
    assert as_resources(entry.shape) == resources


def test_other_fields_of_a_job_are_converted_or_listed_as_lost() -> None:
    spec = jpsi.JobSpec(
        "app",
        ["${HOME}/a", "$${x} $y"],
        directory=Path("/data"),
        environment={"A": "b", "B": None},
        stdout_path=Path("/out"),
        launcher="mpirun",
        container=jpsi.Container("docker://debian", binds=["/data:/in:ro"]),
        environment_setup=["module:gcc/12"],
        attributes=jpsi.JobAttributes(
            duration=timedelta(0),
            queue_name="long",
            warn=("USR1", 60),
            retry={"timeout": 1},
            custom_attributes={"slurm.qos": "high"},
            user={"mine": 1},
        ),
    )

    converted = from_job(spec)

    assert converted.content["tasks"] == [
        {
            "name": "task",
            "command": ["app", "${HOME}/a", "${x} $y"],
            "resources": "task",
            "attributes": {
                "duration": 0,
                "cwd": "/data",
                "environment": {"A": "b", "B": None},
                "slurm.qos": "high",
                "environment_setup": ["module:gcc/12"],
                "container": {
                    "image": "docker://debian",
                    "binds": [{"source": "/data", "target": "/in", "read_only": True}],
                },
                "queue_name": "long",
                "warn": ["USR1", 60],
                "retry": {"timeout": 1},
            },
        }
    ]
    assert converted.content["user"] == {"mine": 1}
    assert converted.lost == (
        "stdout_path has no place in a workflow: /out",
        "${HOME} in the command stays as it is: in a workflow only a shell expands it",
        "launcher is mpirun; a workflow leaves it to the executor",
    )
    assert entry_of(spec).attributes.duration == timedelta(0)
    again = submitted_spec(entry_of(spec))
    assert again is not None
    assert (again.container, again.environment_setup) == (spec.container, spec.environment_setup)
    assert (again.attributes.warn, again.attributes.retry) == (("USR1", 60), {"timeout": 1})
    assert again.attributes.queue_name == "long"


def test_processes_that_do_not_fill_their_nodes_are_listed() -> None:
    resources = jpsi.ResourceSpecV1.uneven(process_count=10, processes_per_node=3)

    assert from_job(jpsi.JobSpec("app", resources=resources)).lost == (
        "10 processes become 12, 3 on each of 4 nodes",
    )


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_memory_for_each_core_or_gpu_is_kept(kind: str) -> None:
    each: dict[str, Any] = {f"memory_per_{kind}": 2**30}
    counts: dict[str, Any] = {"process_count": 3, "cpu_cores_per_process": 2, "gpu_cores_per_process": 2}
    entry = entry_of(jpsi.JobSpec("app", resources=jpsi.ResourceSpecV1(**counts, **each)))

    assert entry.shape is not None
    assert as_resources(entry.shape) == jpsi.ResourceSpecV1(**counts, memory=6 * 2**30)


def test_attributes_that_the_job_of_a_group_cannot_have_are_listed() -> None:
    spec = jpsi.JobSpec(
        "app",
        launcher="single",
        resources=jpsi.ResourceSpecV1(process_count=2, cpu_cores_per_process=1),
        attributes=jpsi.JobAttributes(retry={"timeout": 1}, qos="high"),
    )

    assert from_job(spec).lost == ("attributes.retry has no place in a group: {'timeout': 1}",)
    group = submitted_spec(entry_of(spec))
    assert group is not None
    assert group.attributes.qos == "high"


def test_processes_of_a_group_have_its_container_and_its_job_has_none() -> None:
    text = (
        "version: 1\nresources: {r: {type: node, count: 1}}\ngroups:\n- name: g\n  resources: r\n"
        "  attributes: {container: {image: a}, environment_setup: [module:gcc], queue_name: auto}\n"
        "  tasks:\n  - {name: t, command: [a]}\n  - {local: true, command: [b]}\n"
    )
    (entry,) = planned(text).entries

    outer, *inner = (submitted_spec(it) for it in (entry, *entry.inside))

    assert outer is not None
    assert (outer.container, outer.environment_setup) == (None, None)
    assert outer.attributes.queue_name == "auto"
    for spec in inner:
        assert spec is not None
        assert (spec.container, spec.environment_setup) == (jpsi.Container("a"), ["module:gcc"])
        assert spec.attributes.queue_name is None


def test_a_job_that_starts_its_own_processes_is_a_task_that_runs_once_in_its_group() -> None:
    resources = jpsi.ResourceSpecV1(node_count=2, processes_per_node=4)
    spec = jpsi.JobSpec("/bin/sh", ["job.sh"], name="fit", launcher="single", resources=resources)

    entry = entry_of(spec)

    assert (entry.kind, entry.shape and entry.shape.slots) == (Kind.ALLOCATION, 8)
    assert [(it.kind, it.command) for it in entry.inside] == [(Kind.LOCAL, ("/bin/sh", "job.sh"))]

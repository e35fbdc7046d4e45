"""Conversion of scripts that were written for the qsub of PBS or of Torque."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from jpsi.plugin import (
    Dependency,
    DependencyKind,
    ForeignScript,
    HeterogeneousResources,
    JobSpec,
    ResourceSpecV1,
    components,
)
from jpsi_pbs.hooks import Hooks
from jpsi_testing import heterogeneous_resources
from pbs_support import CONTEXT, PBS, SITE, TORQUE, spec

_GIB = 1 << 30
_FOUR = {"node_count": 2, "processes_per_node": 4}
_BOTH = pytest.mark.parametrize("hooks", [PBS, TORQUE], ids=["pbs", "torque"])


def _read(hooks: Hooks, *directives: str) -> ForeignScript:
    return hooks.read_script("\n".join(["#!/bin/bash", *(f"#PBS {it}" for it in directives), "mpirun ./a"]))


def _resources(hooks: Hooks, *directives: str) -> ResourceSpecV1:
    script = _read(hooks, *directives)
    assert isinstance(script.spec.resources, ResourceSpecV1)
    return script.spec.resources


def _custom(script: ForeignScript) -> dict[str, Any] | None:
    assert script.spec.attributes is not None
    return script.spec.attributes.custom_attributes


@_BOTH
def test_a_whole_script(hooks: Hooks) -> None:
    script = _read(
        hooks,
        "-N sim -q main -A proj1",
        "-l walltime=36:00:00",
        "-o out.txt -e host:err.txt",
        "-S /bin/ksh -V",
        "-m abe -M me@example.org -r n",
        "-W umask=022",
    )

    assert (script.directives, script.lost, script.is_output_here) == (6, (), True)
    spec = script.spec
    assert (spec.name, spec.executable, str(spec.directory)) == ("sim", "/bin/ksh", "~")
    assert (spec.stdout_path, spec.stderr_path) == (Path("out.txt"), Path("err.txt"))
    assert spec.attributes is not None
    assert (spec.attributes.queue_name, spec.attributes.project_name) == ("main", "proj1")
    assert spec.attributes.duration == timedelta(hours=36)
    assert spec.attributes.mail == "begin,end:me@example.org"
    values = {"r": "n", "W.umask": "022"}
    assert _custom(script) == {f"{hooks.name}.{name}": value for name, value in values.items()}


@pytest.mark.parametrize(
    ("directive", "expected"),
    [
        ("-l select=1:ncpus=8", {"process_count": 1, "cpu_cores_per_process": 8}),
        ("-l select=4:ncpus=2:mpiprocs=1:mem=1gb", {"process_count": 4, "cpu_cores_per_process": 2}),
        (
            "-l select=2:ncpus=8:mpiprocs=4:ngpus=4:mem=3gb -l place=scatter:excl",
            {
                "node_count": 2,
                "processes_per_node": 4,
                "cpu_cores_per_process": 2,
                "gpu_cores_per_process": 1,
                "exclusive_node_use": True,
                "memory": 6 * _GIB,
            },
        ),
        ("-l select=2:ncpus=2 -l place=scatter:shared", {"node_count": 2, "exclusive_node_use": False}),
        ("-l select=ncpus=2:ompthreads=2", {"process_count": 1, "cpu_cores_per_process": 2}),
        ("-l ncpus=4,mem=2GB", {"cpu_cores_per_process": 4, "memory": 2 * _GIB}),
        ("-l nodes=2:ppn=8", {"node_count": 2, "processes_per_node": 8}),
    ],
)
def test_query_commands_of_pbs(directive: str, expected: dict[str, Any]) -> None:
    found = _resources(PBS, directive)

    assert _read(PBS, directive).lost == ()
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("directive", "expected"),
    [
        (
            "-l nodes=2:ppn=8:gpus=8,mem=4gb",
            {"node_count": 2, "processes_per_node": 8, "gpu_cores_per_process": 1, "memory": 4 * _GIB},
        ),
        ("-l nodes=3", {"node_count": 3, "processes_per_node": 1}),
        ("-l procs=12", {"process_count": 12}),
        ("-n", {"exclusive_node_use": True}),
    ],
)
def test_query_commands_of_torque(directive: str, expected: dict[str, Any]) -> None:
    assert _read(TORQUE, directive).lost == ()
    assert _resources(TORQUE, directive) == ResourceSpecV1.uneven(**expected)


@pytest.mark.parametrize(
    ("directive", "custom"),
    [
        ("-l select=1:ncpus=2+2:model=x", {"pbs.l.select": "1:ncpus=2+2:model=x"}),
        ("-l nodes=1:ppn=2+node01:ppn=1", {"pbs.l.nodes": "1:ppn=2+node01:ppn=1"}),
        ("-l nodes=1:ppn=2+2:ppn=4,ncpus=2", {"pbs.l.nodes": "1:ppn=2+2:ppn=4"}),
        ("-l nodes=1:ppn=2+2:ppn=4 -l place=scatter -l select=2", {"pbs.l.select": "2"}),
        ("-l select=1:ncpus=3:mpiprocs=2", {"pbs.l.select": "1:ncpus=3:mpiprocs=2"}),
        ("-l select=1:ncpus=2:accelerator_model=x", {"pbs.l.select": "1:ncpus=2:accelerator_model=x"}),
        (
            "-l select=1:ngpus=1:accelerator_model=x+1:ngpus=1:ncpus=2",
            {"pbs.l.select": "1:ngpus=1:accelerator_model=x+1:ngpus=1:ncpus=2"},
        ),
        ("-l select=1:ncpus=2:model=x", {"pbs.l.select": "1:ncpus=2:model=x"}),
        ("-l place=pack", {"pbs.l.place": "pack"}),
        ("-l nodes=node01:ppn=2", {"pbs.l.nodes": "node01:ppn=2"}),
        ("-l software=x,walltime=60", {"pbs.l.software": "x"}),
        ("-W depend=on:2", {"pbs.W.depend": "on:2"}),
        ("-h -p 10", {"pbs.h": True, "pbs.p": "10"}),
    ],
)
def test_options_that_jpsi_cannot_express_become_custom_attributes(directive: str, custom: object) -> None:
    script = _read(PBS, directive)

    assert (script.lost, _custom(script)) == ((), custom)


@_BOTH
@pytest.mark.parametrize(
    ("directive", "why"),
    [
        ("-o out.$PBS_JOBID", "-o out.$PBS_JOBID: jpsi has no patterns in paths"),
        ("-o out/", "-o out/: a path of jpsi is that of a file"),
        ("-W block=true", "-W block=true: qsub would not return"),
        ("-z", "-z: qsub would not print the job's id"),
        ("-I", "-I: an interactive job has no script"),
    ],
)
def test_lost_options_are_reported(hooks: Hooks, directive: str, why: str) -> None:
    (lost,) = _read(hooks, directive).lost

    assert lost.startswith(why)


@pytest.mark.parametrize(
    ("directive", "kinds"),
    [
        (
            "-l select=1:ncpus=2:mem=4gb+2:ncpus=8:mpiprocs=4:ngpus=4 -l place=scatter:exclhost",
            [
                {"cpu_cores_per_process": 2, "memory": 4 * _GIB},
                {
                    "node_count": 2,
                    "processes_per_node": 4,
                    "cpu_cores_per_process": 2,
                    "gpu_cores_per_process": 1,
                },
            ],
        ),
        ("-l nodes=1:ppn=2:gpus=2+2:ppn=4", [{"processes_per_node": 2, "gpu_cores_per_process": 1}, _FOUR]),
    ],
)
def test_chunks_and_nodes_of_several_kinds(directive: str, kinds: list[dict[str, Any]]) -> None:
    script = _read(PBS, directive)

    assert (script.lost, _custom(script)) == ((), None)
    alone = "excl" in directive
    usual = {"node_count": 1, "processes_per_node": 1, "exclusive_node_use": alone}
    assert script.spec.resources == HeterogeneousResources(
        [ResourceSpecV1.uneven(**{**usual, **it}) for it in kinds]
    )


def test_memory_of_a_whole_job_is_shared_by_its_processes() -> None:
    script = _read(TORQUE, "-l nodes=1:ppn=2:gpus=2+2:ppn=4,mem=10gb -n")

    found = components(script.spec.resources)
    assert (script.lost, _custom(script)) == ((), None)
    assert [(it.memory, it.exclusive_node_use) for it in found] == [(2 * _GIB, True), (8 * _GIB, True)]


@pytest.mark.parametrize(
    ("resources", "nodes"),
    [
        ({"process_count": 10, "processes_per_node": 3, "memory": 10 * _GIB}, "3:ppn=3+1:ppn=1,mem=10gb"),
        ({"process_count": 9, "node_count": 4}, "1:ppn=3+3:ppn=2"),
    ],
)
def test_nodes_that_are_filled_unevenly_are_of_one_kind(resources: dict[str, Any], nodes: str) -> None:
    requested = {**resources, "cpu_cores_per_process": 2}
    chunks = PBS.read_script(PBS.render_script(spec(requested), CONTEXT).text)

    assert chunks.spec.resources == ResourceSpecV1.uneven(**requested)
    assert _read(TORQUE, f"-l nodes={nodes}").spec.resources == ResourceSpecV1.uneven(**resources)


@given(heterogeneous_resources())
@_BOTH
def test_slots_of_several_kinds_are_read_as_jpsi_renders_them(
    hooks: Hooks, resources: HeterogeneousResources
) -> None:
    requested = JobSpec("/bin/true", resources=resources)
    if hooks.check_spec(requested, SITE):
        return
    found = hooks.read_script(hooks.render_script(requested, CONTEXT).text)

    assert found.lost == ()
    assert _nodes(hooks, found.spec) == _nodes(hooks, requested)


def _nodes(hooks: Hooks, requested: JobSpec) -> list[tuple[str, str]]:
    """Return the requested number of nodes and the cores of each."""
    found = re.search(r"-l (?:nodes|select)=(.*)", hooks.render_script(requested, CONTEXT).text)
    assert found is not None
    return re.findall(r"(?:\A|\+)([0-9]+):(?:ncpus|ppn)=([0-9]+)", found[1])


def test_chunks_that_pbs_may_put_on_one_node_are_reported() -> None:
    (lost,) = _read(PBS, "-l select=2:ncpus=4:mpiprocs=4").lost

    assert lost == "-l select=2:ncpus=4:mpiprocs=4: jpsi has each chunk on a node of its own"
    assert _read(PBS, "-l select=1:ncpus=2+2:ncpus=1").lost != ()
    assert _read(PBS, "-l select=1:ncpus=2+2:ncpus=1 -l place=free").lost == ()


def test_the_kind_of_gpus_and_quality_of_service() -> None:
    one = _read(PBS, "-l select=2:ncpus=1:ngpus=1:accelerator_model=a100")
    two = _read(PBS, "-l select=1:ngpus=1:accelerator_model=a100+1:ngpus=1:accelerator_model=h100")

    assert (one.lost, one.spec.attributes.gpu_type) == ((), "a100")
    assert (two.spec.attributes.gpu_type, list(_custom(two) or ())) == (None, ["pbs.l.select"])
    assert _read(TORQUE, "-l nodes=1,qos=high").spec.attributes.qos == "high"


@_BOTH
def test_mail_that_jpsi_cannot_express_remains(hooks: Hooks) -> None:
    assert _custom(_read(hooks, "-m a -M ann")) == {f"{hooks.name}.m": "a", f"{hooks.name}.M": "ann"}
    assert _custom(_read(hooks, "-m n")) == {f"{hooks.name}.m": "n"}


def test_torque_refuses_options_of_pbs() -> None:
    (lost,) = _read(TORQUE, "-l select=2").lost

    assert lost == "-l select=2: it is for PBS, and not for Torque"


@_BOTH
def test_joined_streams_are_one_file(hooks: Hooks) -> None:
    spec = _read(hooks, "-j oe -o all.txt -e ignored.txt").spec

    assert (spec.stdout_path, spec.stderr_path) == (Path("all.txt"), Path("all.txt"))


@_BOTH
def test_streams_joined_without_a_file_are_lost(hooks: Hooks) -> None:
    assert _read(hooks, "-j oe").lost == ("-j oe: without -o, jpsi keeps output and errors in a file each",)


@_BOTH
def test_dependencies_and_variables(hooks: Hooks) -> None:
    script = _read(hooks, "-W depend=afterok:1.node01:2,afterany:3 -v A=1,B,C=${D}")

    assert script.lost == ()
    assert script.spec.attributes is not None
    assert script.spec.attributes.after == [
        Dependency("1.node01"),
        Dependency("2"),
        Dependency("3", DependencyKind.ANY),
    ]
    assert script.spec.environment == {"A": "1", "C": "$${D}"}


@pytest.mark.parametrize(
    ("hooks", "directive", "variable"),
    [(PBS, "-J 0-9:3%2", "PBS_ARRAY_INDEX"), (TORQUE, "-t 0-9:3%2", "PBS_ARRAYID")],
)
def test_an_array_is_retained(hooks: Hooks, directive: str, variable: str) -> None:
    script = _read(hooks, directive)

    assert script.lost == ()
    assert script.spec.attributes.custom_attributes == {"jpsi.array": "0-9:3%2"}
    assert script.spec.environment == {variable: "${JPSI_ARRAY_INDEX}"}


def test_the_directory_of_the_submission_is_read_from_a_variable() -> None:
    script = PBS.read_script('#PBS -N a\ncd "${PBS_O_WORKDIR}"; run $PBS_JOBID\n')

    assert script.directory_variables == ("PBS_O_WORKDIR",)
    assert script.lost == ("the script reads variables that no other batch system sets: PBS_JOBID",)

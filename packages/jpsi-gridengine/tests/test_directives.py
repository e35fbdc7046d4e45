"""The rendered directives, and the specs that are refused before rendering."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given

from gridengine_support import CONTEXT, SITE, site
from jpsi.plugin import Dependency, DependencyKind, JobAttributes, JobSpec, ResourceSpecV1, Site
from jpsi_gridengine import hooks
from jpsi_gridengine.config import GridEngineConfig
from jpsi_testing import specs

_MIB = 1 << 20
_SEVERAL = site(parallel_environment="orte", node_environment="smp")
_FAMILY = site(parallel_environment="mpi-{slots}")


def _spec(resources: dict[str, Any] | None = None, name: str | None = None, **attributes: Any) -> JobSpec:
    return JobSpec(
        "/bin/true",
        name=name,
        resources=None if resources is None else ResourceSpecV1.uneven(**resources),
        attributes=JobAttributes(**attributes),
    )


def _lines(spec: JobSpec, site: Site = SITE) -> list[str]:
    assert hooks.check_spec(spec, site) == []
    written = hooks.render_script(spec, attrs.evolve(CONTEXT, site=site))
    return [directive.text.removeprefix("#$ ") for directive in written.directives]


@pytest.mark.clause("attributes-duration", "attributes-queue", "attributes-project")
def test_a_plain_job() -> None:
    assert hooks.render_script(_spec(), CONTEXT).text.splitlines() == [
        "#!/bin/sh",
        "#$ -N jpsi-abc-1",
        "#$ -S /bin/sh",
        "#$ -wd /",
        "#$ -o /dev/null",
        "#$ -e /dev/null",
        "#$ -V",
        "#$ -l h_rt=600",
        "",
    ]


@pytest.mark.clause(
    "resources-exclusive-node",
    "resources-gpus",
    "attributes-queue",
    "attributes-project",
    "attributes-reservation",
)
def test_every_attribute_is_rendered() -> None:
    spec = _spec(
        {"process_count": 4, "memory": 4 * _MIB + 1, "exclusive_node_use": True, "gpu_cores_per_process": 2},
        name="my run",
        duration=timedelta(seconds=61.5),
        queue_name="long.q",
        project_name="proj1",
        reservation_id="17",
    )
    lines = _lines(
        spec,
        site(
            parallel_environment="orte",
            memory_resource="h_vmem,mem_free",
            gpu_resource="gpu",
            exclusive_resource="alone",
            requeue=False,
        ),
    )

    assert lines[:2] == ["-N my_run.jpsi-abc-1", "-ac jpsi_name=my%20run"]
    assert lines[6:] == [
        "-V",
        "-q long.q",
        "-P proj1",
        "-ar 17",
        "-l h_rt=62,h_vmem=2M,mem_free=2M,gpu=2,alone=true",
        "-pe orte 4",
        "-r no",
    ]


def test_a_duration_of_zero_leaves_the_limit_to_the_queue() -> None:
    assert not any(line.startswith("-l") for line in _lines(_spec(duration=timedelta(0))))


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("plain", "plain"),
        ("2nd", "_2nd"),
        ("-dash", "_-dash"),
        ("a/b:c@d*e|f,g h", "a_b_c_d_e_f_g_h"),
        ("é\n#$ -N evil", "_____-N_evil"),
        ("x" * 1000, "x" * 160),
    ],
)
def test_a_name_is_made_legal_and_retained(name: str, legal: str) -> None:
    lines = _lines(_spec(name=name))

    assert lines[0] == f"-N {legal}.jpsi-abc-1"
    assert lines[1].startswith("-ac jpsi_name=")
    assert lines[1].isascii()
    assert "," not in lines[1]


@pytest.mark.clause("spec-resources", "resources-nodes", "resources-processes", "resources-cores")
@pytest.mark.parametrize(
    ("resources", "where", "line"),
    [
        ({"process_count": 1}, SITE, None),
        ({"node_count": 1, "process_count": 1}, SITE, None),
        ({"process_count": 6}, _SEVERAL, "-pe orte 6"),
        ({"process_count": 6}, site(node_environment="smp"), "-pe smp 6"),
        ({"process_count": 6}, _FAMILY, "-pe mpi-6 6"),
        ({"process_count": 6, "node_count": 1}, _SEVERAL, "-pe smp 6"),
        ({"process_count": 1, "cpu_cores_per_process": 6}, _SEVERAL, "-pe smp 6"),
        ({"process_count": 3, "cpu_cores_per_process": 2}, _SEVERAL, "-pe smp 6"),
        ({"node_count": 3, "processes_per_node": 2}, _FAMILY, "-pe mpi-2 6"),
        ({"node_count": 3, "processes_per_node": 2, "cpu_cores_per_process": 2}, _FAMILY, "-pe mpi-4 12"),
    ],
)
def test_the_parallel_environment(resources: dict[str, Any], where: Site, line: str | None) -> None:
    assert [it for it in _lines(_spec(resources), where) if it.startswith("-pe")] == ([line] if line else [])


@pytest.mark.parametrize(
    ("resources", "where", "message"),
    [
        ({"process_count": 6}, SITE, "as `parallel_environment` in the executor's configuration"),
        ({"node_count": 1, "process_count": 6}, SITE, "as `node_environment` in"),
        ({"cpu_cores_per_process": 2}, site(parallel_environment="orte"), "2 slots on one node"),
        ({"node_count": 2, "process_count": 6}, _SEVERAL, "has no option for the slots of each node"),
        ({"process_count": 5, "processes_per_node": 2}, _FAMILY, "5 slots are no multiple of 2"),
        ({"gpu_cores_per_process": 1}, SITE, "gpu_resource"),
        (
            {"cpu_cores_per_process": 2, "gpu_cores_per_process": 1},
            site(node_environment="smp", gpu_resource="gpu"),
            "1 GPUs cannot be shared equally among 2 slots",
        ),
    ],
)
def test_a_layout_that_grid_engine_cannot_express_is_refused(
    resources: dict[str, Any], where: Site, message: str
) -> None:
    (problem,) = hooks.check_spec(_spec(resources), where)

    assert message in problem


def test_dependencies_are_ids_with_commas() -> None:
    after = tuple(Dependency(native_id, DependencyKind.ANY) for native_id in ("7", "8"))

    assert "#$ -hold_jid 7,8" in hooks.render_script(_spec(), attrs.evolve(CONTEXT, after=after)).text


def test_a_dependency_on_a_task_waits_for_its_array() -> None:
    """Grid Engine's master finds no other job of that name."""
    after = tuple(Dependency(native_id, DependencyKind.ANY) for native_id in ("8.2", "7", "8.3"))

    assert hooks.check_spec(_spec(after=["8.2"]), SITE) == []
    assert "#$ -hold_jid 8,7" in hooks.render_script(_spec(), attrs.evolve(CONTEXT, after=after)).text


def test_requested_resources_are_shared_among_the_users_slots() -> None:
    spec = _spec(
        {"process_count": 2, "memory": 64 * _MIB, "gpu_cores_per_process": 16},
        custom_attributes={"gridengine.pe": "mpi 32"},
    )

    assert _lines(spec, site(gpu_resource="gpu"))[-2:] == [
        "-l h_rt=600,mem_free=2M,gpu=1",
        "-pe mpi 32",
    ]


def test_processes_fit_into_the_slots_that_a_user_chooses() -> None:
    spec = _spec(
        {"process_count": 4, "cpu_cores_per_process": 2}, custom_attributes={"gridengine.pe": "mpi 7"}
    )

    (problem,) = hooks.check_spec(spec, SITE)

    assert "has 7 slots, and the job's processes need 8" in problem


def test_an_option_uses_one_of_the_executors_names() -> None:
    spec = _spec(custom_attributes={"gridengine.l": "a=1", "sge.l": "b=1"})

    assert hooks.check_spec(spec, SITE) == [
        "custom attribute sge.l is the same option as gridengine.l; give only one of them"
    ]


def test_a_dependency_is_an_id_and_no_name_pattern() -> None:
    with pytest.raises(ValueError, match=r"'\*' is no job id of Grid Engine's"):
        hooks.canonical_id("*")


def test_custom_attributes_add_replace_and_remove_options() -> None:
    custom = {
        "gridengine.l": "scratch=1G",
        "sge.pe": "mpi 8",
        "gridengine.notify": True,
        "gridengine.V": None,
    }
    spec = _spec({"node_count": 2, "processes_per_node": 4}, custom_attributes={**custom, "slurm.qos": "x"})

    assert "gridengine.V cannot be set" in next(iter(hooks.check_spec(spec, SITE)))
    del custom["gridengine.V"]
    lines = _lines(attrs.evolve(spec, attributes=JobAttributes(custom_attributes=custom)))

    assert lines[-4:] == ["-l h_rt=600", "-l scratch=1G", "-notify", "-pe mpi 8"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("t", "1-3", "submit_many"),
        ("sync", True, "Job.wait"),
        ("N", "x", "JobSpec.name"),
        ("pe", "mpi\n#$ -N evil 8", "a name and a number"),
        ("pe", "mpi 1-8", "a name and a number"),
        ("w", "v", "submits nothing"),
        ("not-one", 1, "whole name"),
        ("js", [1], "must be text"),
        ("m", "a\nb", "line breaks"),
    ],
)
def test_custom_attributes_that_would_break_jpsi_are_refused(name: str, value: Any, message: str) -> None:
    problems = hooks.check_spec(_spec(custom_attributes={f"gridengine.{name}": value}), SITE)

    assert any(message in problem for problem in problems), problems


def test_a_repeated_dependency_is_rendered_once() -> None:
    spec = _spec(after=["7"], custom_attributes={"gridengine.hold_jid": "8"})

    assert any("both" in problem for problem in hooks.check_spec(spec, SITE))


@pytest.mark.parametrize("text", ["a b", "é", "a\nb", "a'b", ""])
@pytest.mark.parametrize("field", ["queue_name", "project_name", "reservation_id"])
def test_names_that_grid_engine_cannot_have_are_refused(field: str, text: str) -> None:
    assert any(field in it or "cannot be" in it for it in hooks.check_spec(_spec(**{field: text}), SITE))


@given(spec=specs())
def test_a_spec_without_problems_can_be_rendered(spec: JobSpec) -> None:
    where = site(parallel_environment="orte", node_environment="smp", gpu_resource="gpu")
    if hooks.check_spec(spec, where):
        return

    directives = hooks.render_script(spec, attrs.evolve(CONTEXT, site=where)).directives

    assert all(len(it.text.splitlines()) == 1 and it.text.startswith("#$ -") for it in directives)


@pytest.mark.parametrize(
    "fields",
    [
        {"parallel_environment": "a b"},
        {"node_environment": "a\n"},
        {"memory_resource": "h_vmem=1G"},
        {"gpu_resource": ""},
    ],
)
def test_configured_names_are_names(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        GridEngineConfig(**fields)  # type: ignore[arg-type]  # nonsense


def test_the_tag_is_in_the_script() -> None:
    script = hooks.render_script(JobSpec("/bin/true", name="a b"), CONTEXT)

    assert "a_b.jpsi-abc-1" in script.text

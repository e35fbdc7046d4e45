"""Requests for slots of several kinds, on targets whose jobs can have them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import jpsi
from jobspec_support import found, planned
from jpsi import HeterogeneousResources, JobExecutor, JobSpec, ResourceSpecV1
from jpsi_jobspec.commands.arguments import Arguments
from jpsi_jobspec.commands.preparation import prepare_plan
from jpsi_jobspec.conversion import from_job, to_canonical
from jpsi_jobspec.planning.site import Site
from jpsi_jobspec.reporting.plan_text import plan_to_dict
from jpsi_jobspec.run_store import runs
from jpsi_jobspec.running.driver import Driver
from jpsi_jobspec.running.job_specs import job_spec
from jpsi_testing.fake import FakeScheduler

HEAD = """\
version: 1
resources:
  head: {type: slot, count: 1, with: [{type: core, count: 4}, {type: memory, size: 4, unit: GiB}]}
  workers: {type: node, count: 2, with: [{type: slot, count: 3, with: [{type: gpu, count: 1}]}]}
"""
TASK = f"{HEAD}tasks: [{{command: a, resources: head&workers}}]\n"
GROUP = f"{HEAD}groups: [{{name: g, resources: head&workers, tasks: [{{command: a}}]}}]\n"
INSIDE = f"""\
{HEAD}  whole: {{type: node, count: 3}}
groups: [{{name: g, resources: whole, tasks: [{{command: a, resources: head&workers}}]}}]
"""
ABLE = Site(target="slurm", is_heterogeneous=True)


def test_pieces_become_components_in_their_order() -> None:
    (entry,) = planned(TASK, ABLE).entries

    assert job_spec(entry).resources == HeterogeneousResources(
        [
            ResourceSpecV1(process_count=1, cpu_cores_per_process=4, memory=4 * 2**30),
            ResourceSpecV1(node_count=2, processes_per_node=3, gpu_cores_per_process=1),
        ]
    )
    assert entry.why[0] == (
        "'head&workers' is 1 slot anywhere, 4 cores each, 4 GiB of memory & 6 slots on 2 nodes, 1 gpu each"
    )


@pytest.mark.parametrize(
    ("text", "site"),
    [(TASK, Site(target="flux")), (GROUP, ABLE), (INSIDE, ABLE)],
    ids=["executor", "group", "in a group"],
)
def test_other_targets_refuse_pieces_of_several_kinds(text: str, site: Site) -> None:
    problems = [it for it in found(text, site=site) if it.code == "JS090"]

    assert len(problems) == 1
    assert "its pieces differ, and a job has one kind of slot (unsupported_feature)" in str(problems[0])


def test_an_alternative_with_unavailable_pieces_is_left_out() -> None:
    text = TASK.replace("head&workers", "head&workers|head")

    assert [planned(text, it).entries[0].resources for it in (ABLE, Site())] == ["head&workers", "head"]


def test_each_piece_must_be_one_that_a_job_can_have() -> None:
    spread = "  head: {type: slot, count: 1, with: [{type: node, count: 2}]}"
    text = "\n".join(spread if line.startswith("  head:") else line for line in TASK.splitlines())

    (problem,) = (it for it in found(text, site=ABLE) if it.is_error)

    assert (problem.code, "each of its slots has several nodes" in str(problem)) == ("JS090", True)


def test_pieces_that_are_alike_are_one_kind() -> None:
    more = "  head2: {type: slot, count: 2}\n  workers"
    text = TASK.replace("head&workers", "head&head2").replace("  workers", more)

    (entry,) = planned(text, ABLE).entries

    assert isinstance(job_spec(entry).resources, ResourceSpecV1)


def test_on_one_machine_nodes_are_that_machine() -> None:
    (entry,) = planned(TASK, Site(is_heterogeneous=True, is_one_machine=True)).entries

    resources = job_spec(entry).resources
    assert isinstance(resources, HeterogeneousResources)
    assert [it.node_count for it in resources.components] == [None, None]
    assert entry.lost == ("its 2 nodes are all this machine",)


@pytest.mark.parametrize(("executor", "is_able"), [("slurm", True), ("local", True), ("flux", False)])
def test_the_executor_is_queried_and_the_run_stores_the_result(
    tmp_path: Path, fake_commands: Callable[..., FakeScheduler], executor: str, is_able: bool
) -> None:
    fake_commands("slurm")
    file = tmp_path / "flow.yaml"
    file.write_text(TASK)
    given = Arguments(file=str(file), executor=executor)

    if not is_able:
        with pytest.raises(jpsi.InvalidJobException, match="JS090"):
            prepare_plan(given)
        return
    plan, _, site = prepare_plan(given)

    assert site.is_heterogeneous
    assert runs.create_run(str(file), TASK, site, {}).plan == plan
    file.write_text(TASK.replace("head&workers", "head"))
    assert not prepare_plan(given)[2].is_heterogeneous


def test_a_plan_lists_the_resources_of_each_piece() -> None:
    (entry,) = plan_to_dict(planned(TASK, ABLE))["entries"]

    first, second = entry["shape"]["components"]
    assert (first["cpu_cores_per_process"], second["node_count"]) == (4, 2)


def test_a_jobspec_of_flux_has_the_first_piece_only_with_a_note() -> None:
    converted = to_canonical(planned(TASK, ABLE).entries[0])

    assert [it["type"] for it in converted.content["resources"]] == ["slot"]
    assert any(it.startswith("only the first of its pieces is requested") for it in converted.lost)


def test_a_job_with_slots_of_several_kinds_becomes_a_workflow_with_the_same_requests() -> None:
    resources = HeterogeneousResources(
        [
            ResourceSpecV1(process_count=1, cpu_cores_per_process=4, memory=2**30),
            ResourceSpecV1(node_count=2, processes_per_node=3, cpu_cores_per_process=1),
        ]
    )

    converted = from_job(JobSpec("a", resources=resources))
    (entry,) = planned(json.dumps(converted.content), ABLE).entries

    assert job_spec(entry).resources == resources
    assert converted.lost == ()


def test_a_job_that_starts_its_own_processes_in_slots_of_several_kinds_has_a_note() -> None:
    resources = HeterogeneousResources([ResourceSpecV1(), ResourceSpecV1(cpu_cores_per_process=2)])

    converted = from_job(JobSpec("a", launcher="single", resources=resources))

    assert any(it.startswith("a group has one kind of slot") for it in converted.lost)


def test_a_process_starts_in_each_slot_of_every_piece(tmp_path: Path, log: Callable[[], list[str]]) -> None:
    text = """\
version: 1
resources:
  head: {type: slot, count: 1, with: [{type: core, count: 2}]}
  workers: {type: slot, count: 2, with: [{type: core, count: 1}]}
tasks: [{name: a, command: ior, resources: head&workers}]
"""

    site = Site(is_heterogeneous=True, is_one_machine=True)
    journal = runs.create_run(str(tmp_path / "flow.yaml"), text, site, {})

    Driver(journal, JobExecutor("local"), lambda *_: None).run()

    journal = runs.read_run(journal.path)
    assert [it.value for it in journal.states["a"]] == ["COMPLETED"]
    assert len([line for line in log() if line.startswith("begin a ")]) == 3

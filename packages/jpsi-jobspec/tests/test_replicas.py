"""Replicas of a task outside of groups, which run in one allocation, each in a slot of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from example_runs import FAKE_SIZE, begun_tasks, runnable
from jobspec_support import SYSTEMS, drive_run, example, found, planned
from jpsi import JobState, ResourceSpecV1
from jpsi_jobspec.commands import WORKFLOW
from jpsi_jobspec.conversion import to_canonical
from jpsi_jobspec.document.shape import Shape, as_resources
from jpsi_jobspec.planning.plan import Entry, Kind, Plan
from jpsi_jobspec.planning.site import Site
from jpsi_jobspec.reporting.plan_text import render_plan
from jpsi_jobspec.running.job_specs import submitted_spec

Log = Callable[[], list[str]]
HEAD = "version: 1\nresources:\n  r: {type: core, count: 1}\n  two: {type: core, replicas: 2}\n"
MANY = "- {name: many, command: ior, resources: two, replicas: 3}\n"


def allocation(plan: Plan) -> tuple[Entry, Entry]:
    """Return the one job of a plan, and its inner plan."""
    (outer,) = plan.entries
    (inner,) = outer.inside
    return outer, inner


@pytest.mark.clause("ng-replicas", "ng-count", "ng-replicas-resource")
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("07-count", ResourceSpecV1(node_count=4, processes_per_node=1, cpu_cores_per_process=4)),
        ("08-replicas", ResourceSpecV1(process_count=4, cpu_cores_per_process=4)),
    ],
    ids=["07-count", "08-replicas"],
)
def test_examples_with_replicas_are_one_job_with_the_resource(
    name: str, expected: ResourceSpecV1, system: str
) -> None:
    """The job has 4 nodes, not 4 for each replica; each replica has one of the 4 slots."""
    plan = planned(example(name), Site(target=system))
    outer, inner = allocation(plan)
    spec = submitted_spec(outer)

    assert (plan.requests, outer.kind, outer.replicas) == (1, Kind.ALLOCATION, 1)
    assert spec is not None
    assert spec.resources == expected
    assert (inner.id, inner.kind, inner.replicas) == ("task-1/task-1", Kind.TASK, 4)
    assert inner.shape == Shape(nodes=1 if name == "07-count" else None, cores=4, is_detailed=True)
    assert inner.command == ("echo", "hello", "world")


def test_the_plan_shows_the_allocation_and_its_replicas() -> None:
    text = list(render_plan(planned(example("07-count"), Site(target="slurm")), is_explained=True))

    assert text == [
        "flow.yaml on slurm: 1 job",
        "  task-1: allocation, 4 slots on 4 nodes, 4 cores each",
        "    because its 4 replicas run in one allocation, 4 at a time",
        "    task-1: task x 4, 1 slot on 1 node, 4 cores each",
        "      because each replica has one slot of the allocation",
    ]


@pytest.mark.clause("ng-replicas")
@pytest.mark.parametrize("system", SYSTEMS, indirect=True)
@pytest.mark.parametrize("name", ["07-count", "08-replicas"])
def test_all_replicas_run_in_one_job(name: str, system: str, tmp_path: Path, log: Log) -> None:
    journal = drive_run(runnable(name, FAKE_SIZE, tmp_path), system, tmp_path)

    assert journal.states == {"task-1": [JobState.COMPLETED]}
    assert len(log()) == 2 * FAKE_SIZE.replicas
    assert len({job for _, job in begun_tasks(log(), "job")}) == 1


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (
            "{type: node, count: 2, with: [{type: memory, size: 4GB}]}",
            ResourceSpecV1(node_count=1, processes_per_node=1, memory=4 * 2**30),
        ),
        (
            "{type: node, count: 1, with: [{type: slot, count: 4, with: [{type: gpu, count: 1}]}]}",
            ResourceSpecV1(process_count=1, gpu_cores_per_process=1),
        ),
        (
            "{type: node, count: 2, exclusive: true, with: [{type: core, count: 8}]}",
            ResourceSpecV1(node_count=1, processes_per_node=1, cpu_cores_per_process=8),
        ),
    ],
    ids=["memory", "gpus", "exclusive"],
)
def test_a_replica_has_the_resources_of_a_slot(resource: str, expected: ResourceSpecV1) -> None:
    _, inner = allocation(
        planned(f"{HEAD}  x: {resource}\ntasks: [{{command: a, replicas: 9, resources: x}}]\n")
    )

    assert inner.shape is not None
    assert as_resources(inner.shape) == expected


@pytest.mark.parametrize(
    ("attributes", "resource", "whole", "each"),
    [
        ("", "", None, None),
        ("", "duration: 2h", timedelta(hours=2), None),
        ("duration: 1h", "", timedelta(hours=2, minutes=1), timedelta(hours=1)),
        ("duration: 1h", "duration: 5m", timedelta(hours=2, minutes=1), timedelta(hours=1)),
        ("duration: 0", "duration: 5m", timedelta(0), timedelta(0)),
    ],
    ids=["none", "of the resource", "of the task", "of both", "no limit"],
)
def test_a_time_of_the_task_is_that_of_each_replica_and_the_allocation_lasts_for_all(
    attributes: str, resource: str, whole: timedelta | None, each: timedelta | None
) -> None:
    """The allocation lasts a minute longer, in which remaining processes are ended."""
    text = (
        f"version: 1\nresources: {{two: {{type: core, replicas: 2, attributes: {{{resource}}}}}}}\n"
        f"tasks: [{{command: a, replicas: 3, resources: two, attributes: {{{attributes}}}}}]\n"
    )

    outer, inner = allocation(planned(text))

    assert (outer.attributes.duration, inner.attributes.duration) == (whole, each)


def test_variables_are_set_for_replicas_and_not_for_their_runner() -> None:
    attributes = "attributes: {cwd: /data, environment: {PYTHONHOME: x}}"
    text = f"{HEAD}tasks: [{{command: a, replicas: 3, resources: two, {attributes}}}]\n"

    outer, inner = allocation(planned(text))

    assert (outer.attributes.environment, inner.attributes.environment) == ({}, {"PYTHONHOME": "x"})
    assert (outer.attributes.cwd, inner.attributes.cwd) == ("/data", "/data")


def test_a_dependant_of_a_task_waits_for_all_its_replicas_and_for_their_success(
    tmp_path: Path, log: Log
) -> None:
    text = (
        f"{HEAD}tasks:\n{MANY.replace('ior', 'exit $((JPSI_REPLICA / 2 * 3))')}"
        "- {name: never, command: ior, resources: r, depends_on: [many]}\n"
        "- {name: mend, command: spack, resources: r, depends_on: [{name: many, when: failed}]}\n"
    )

    journal = drive_run(text, "local", tmp_path)

    assert {name: it[0].value for name, it in journal.states.items()} == {
        "many": "FAILED",
        "never": "CANCELED",
        "mend": "COMPLETED",
    }
    assert journal.parts["many"][0].exit_code == 3


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Log) -> Callable[..., tuple[int, str]]:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(WORKFLOW, list(arguments), standalone_mode=False)
        assert result.exception is None
        return result.return_value, result.stdout

    return run


def run_all(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(WORKFLOW, list(arguments), standalone_mode=False)
    assert result.exception is None
    return result.return_value, result.stdout, result.stderr


def test_replicas_are_named_and_shown_as_those_of_their_task(
    run: Callable[..., tuple[int, str]], tmp_path: Path, log: Log
) -> None:
    task = MANY.replace("ior", "echo $JPSI_TASK $JPSI_REPLICA")
    text = f"{HEAD}tasks:\n{task}"
    (tmp_path / "flow.yaml").write_text(text)

    assert run("run", "flow.yaml")[0] == 0
    assert run("status", "flow.yaml")[1].splitlines() == [
        "COMPLETED  many",
        f"COMPLETED  {'many/many':<30}  3 of 3 have ended",
    ]
    assert run("logs", "flow.yaml", "many.2")[1] == "many 2\n"
    assert run("logs", "flow.yaml", "many")[1] == (
        "==> many.1 <==\nmany 1\n==> many.2 <==\nmany 2\n==> many.3 <==\nmany 3\n"
    )


def test_a_replica_that_fails_is_named(run: Callable[..., tuple[int, str]], tmp_path: Path, log: Log) -> None:
    task = MANY.replace("ior", "exit $((JPSI_REPLICA % 2))").replace("3", "4")
    (tmp_path / "flow.yaml").write_text(f"{HEAD}tasks:\n{task}")

    code, _, err = run_all("run", "flow.yaml")

    assert (code, err) == (1, "many: FAILED: replicas 1, 3: exit code 1\n")
    outer, inner = run("status", "flow.yaml")[1].splitlines()
    assert re.fullmatch(r"FAILED     many +exit code 1 \(job [0-9a-f]{8}\)", outer)
    assert inner == f"FAILED     {'many/many':<30}  4 of 4 have ended  replicas 1, 3: exit code 1"


def test_a_canonical_jobspec_describes_one_replica() -> None:
    (entry,) = planned(example("07-count")).entries

    converted = to_canonical(entry)

    assert converted.content["tasks"][0]["command"] == ["echo", "hello", "world"]
    assert "it is one of 4 replicas, which have one allocation" in converted.lost


def test_single_replicas_cannot_be_depended_on_if_each_task_has_an_allocation() -> None:
    more = MANY.replace("many", "more").replace("}", ", depends_on: [{name: many, each: true}]}")
    text = f"{HEAD}tasks:\n{MANY}{more}"

    (problem,) = found(text)

    assert (problem.code, problem.is_error, problem.at.line) == ("JS055", True, 7)
    assert "put both into a group" in problem.do


def test_on_a_remote_host_replicas_are_jobs_with_a_note() -> None:
    site = Site(target="remote", is_remote=True)
    text = f"{HEAD}tasks:\n{MANY}"

    (entry,) = planned(text, site).entries

    assert (entry.kind, entry.replicas, entry.shape) == (Kind.ARRAY, 3, Shape(cores=1, is_detailed=True))
    (problem,) = found(text, site=site)
    assert (problem.code, problem.is_error) == ("JS093", False)
    assert "jobs of their own, with one slot each" in problem.says


def test_a_task_that_is_alone_is_a_job() -> None:
    (entry,) = planned(f"{HEAD}tasks: [{{command: a, resources: two, replicas: 1}}]\n").entries

    assert (entry.kind, entry.inside) == (Kind.JOB, ())

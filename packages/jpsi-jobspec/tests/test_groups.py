"""Groups, whose tasks run in their order in one job, without a client."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jobspec_support import begin_run, drive_run, entries, example, found, planned
from jpsi import JobExecutor, JobState
from jpsi_engine import job_store
from jpsi_jobspec.planning.allocations import flatten
from jpsi_jobspec.planning.capacity import Capacity
from jpsi_jobspec.planning.site import Site
from jpsi_jobspec.run_store import journal as journals
from jpsi_jobspec.run_store import runs
from jpsi_jobspec.run_store.journal import Journal
from jpsi_jobspec.running.driver import Driver
from jpsi_jobspec.running.job_specs import job_spec

Log = Callable[[], list[str]]


def inside(journal: Journal) -> dict[str, list[str]]:
    (allocation,) = journal.plan.entries
    found = journals.inner_journal(journal.path, allocation)
    return {name: [it.value for it in states] for name, states in found.states.items()}


def order(lines: list[str]) -> list[str]:
    """Return the programs in the order in which they began."""
    return [f"{it.split()[1].rpartition('/')[2]} {it.split()[3]}" for it in lines if it.startswith("begin")]


HEAD = "version: 1\nresources:\n  g: {type: core, replicas: 2}\n  r: {type: core, count: 1}\n"
GROUP = f"{HEAD}groups:\n- name: g\n  resources: g\n  tasks:\n"


@pytest.mark.clause("ng-group-commands")
def test_commands_of_a_group_are_lines_of_shell_that_run_before_its_tasks(tmp_path: Path, log: Log) -> None:
    text = (
        f'{HEAD}groups:\n- name: g\n  resources: g\n  commands:\n  - kubectl "$JPSI_TASK" && spack\n'
        "  - [ior, $JPSI_TASK]\n  tasks: [{name: a, command: munch}]\n"
    )

    journal = drive_run(text, "local", tmp_path)

    assert journal.states == {"g": [JobState.COMPLETED]}
    assert order(log()) == [
        "g-command-1 kubectl",
        "g-command-1 spack",
        "g-command-2 ior",
        "a munch",
        "a munch",
    ]
    began = [it for it in log() if it.startswith("begin")]
    assert "kubectl g/g-command-1 " in began[0]
    assert "ior $JPSI_TASK " in began[2]


def test_cleanup_runs_after_a_failure_and_the_group_has_failed(tmp_path: Path, log: Log) -> None:
    text = (
        f"{GROUP}  - {{name: bad, command: [sh, -c, exit 4], resources: r}}\n"
        "  - {name: never, command: ior, resources: r, depends_on: [bad]}\n"
        "  - {name: clean, local: true, command: spack}\n"
        "- {name: after, resources: g, depends_on: [g], tasks: [{command: ior}]}\n"
    )

    journal = drive_run(text, "local", tmp_path)

    assert {name: it[0].value for name, it in journal.states.items()} == {"g": "FAILED", "after": "CANCELED"}
    assert journal.parts["g"][0].exit_code == 4
    assert order(log()) == ["clean spack"]


def test_cleanup_runs_if_the_group_is_cancelled(tmp_path: Path, log: Log) -> None:
    text = (
        f"{GROUP}  - {{name: long, command: [sh, -c, 'ior; sleep 600'], resources: r}}\n"
        "  - {name: clean, local: true, command: spack}\n"
    )
    journal = begin_run(text, "local", tmp_path)
    executor = JobExecutor("local")

    class Watched(Driver):
        """A driver that cancels once the inner task has begun."""

        def _process_updates(self) -> None:
            super()._process_updates()
            if log() and not journal.is_cancelled:
                journal.cancel()

    Watched(journal, executor, lambda *_: None).run()

    assert journal.states == {"g": [JobState.CANCELED]}
    assert inside(journal) == {"g/long": ["CANCELED"], "g/clean": ["COMPLETED"]}
    assert order(log()) == ["long ior", "clean spack"]


def test_a_group_runs_on_without_the_client_that_submitted_it(tmp_path: Path, log: Log) -> None:
    text = f"{GROUP}  - {{name: a, command: ior, resources: r}}\n"
    text += "  - {name: b, command: spack, depends_on: [a]}\n"
    journal = begin_run(text, "local", tmp_path)
    (allocation,) = journal.plan.entries
    program = (
        "import sys, os; from pathlib import Path; from jpsi import JobExecutor;"
        "from jpsi_jobspec.run_store import runs;"
        "from jpsi_jobspec.running.driver import Driver; run = runs.read_run(Path(sys.argv[1]));"
        "driver = Driver(run, JobExecutor('local'), print); driver._proceed(driver._entries); os._exit(9)"
    )

    subprocess.run([sys.executable, "-c", program, str(journal.path)], check=False, capture_output=True)
    # a later client only reads the result
    (job_id,) = [it.job_id for it in runs.read_run(journal.path).parts["g"]]
    (job,) = JobExecutor("local").recall([str(job_id)])
    status = job.wait(60)

    assert status is not None
    assert status.state is JobState.COMPLETED
    assert order(log()) == ["a ior", "b spack", "b spack"]
    assert journals.inner_journal(journal.path, allocation).is_over


def test_the_jobs_of_a_group_name_its_job(tmp_path: Path, log: Log) -> None:
    journal = drive_run(
        f"{GROUP}  - {{name: a, command: ior, resources: r, replicas: 2}}\n", "local", tmp_path
    )

    (group_id,) = [it.job_id for it in journal.parts["g"]]
    allocations = {it.id: it.allocation for it in job_store.jobs()}
    assert allocations.pop(str(group_id)) is None
    assert list(allocations.values()) == [group_id] * 2


def test_concurrent_entries_fit_into_the_allocation() -> None:
    (allocation,) = planned(f"{GROUP}  - {{name: a, command: ior, resources: r, replicas: 3}}\n").entries
    room, (entry,) = Capacity(allocation), flatten(allocation)

    assert [room.reserve(entry, number) is not None for number in (1, 2, 3)] == [True, True, False]
    room.release(entry, 1)
    assert room.reserve(entry, 3) is not None


@pytest.mark.clause("ng-or")
def test_the_first_free_alternative_is_used() -> None:
    plan = planned(
        "version: 1\nresources:\n"
        "  all: {type: node, count: 1, with: [{type: core, count: 4}, {type: gpu, count: 1}]}\n"
        "  fast: {type: core, count: 1, with: [{type: gpu, count: 1}]}\n  slow: {type: core, count: 2}\n"
        "groups:\n- name: g\n  resources: all\n"
        "  tasks: [{name: t, command: a, resources: fast|slow, replicas: 3}]\n"
    )
    room, (entry,) = Capacity(plan.entries[0]), flatten(plan.entries[0])

    taken = [room.reserve(entry, number) for number in (1, 2, 3)]

    assert [None if it is None else (it.cores, it.gpus) for it in taken] == [(1, 1), (2, 0), None]


def test_a_task_too_large_for_the_nodes_of_its_group_fails_with_a_message(tmp_path: Path, log: Log) -> None:
    """Slots may be on any nodes: the slots of each are known only in the allocation."""
    text = (
        "version: 1\nresources: {g: {type: core, replicas: 4}, big: {type: core, replicas: 3}}\n"
        "groups: [{name: g, resources: g, tasks: [{name: a, command: ior, resources: big}]}]\n"
    )
    run = begin_run(text, "local", tmp_path)
    (allocation,) = run.plan.entries
    journal = journals.inner_journal(run.path, allocation)

    Driver(journal, JobExecutor("local"), lambda *_: None, Capacity(allocation, [2, 2])).run()

    (part,) = journal.parts["g/a"]
    assert (part.state, part.reason) == (JobState.FAILED, "room")
    assert part.message == "it needs more than the group has"
    assert log() == []


def test_a_task_that_does_not_fit_beside_services_fails(tmp_path: Path, log: Log) -> None:
    text = (
        f"{GROUP}  - {{name: s, command: [sleep, infinity], resources: g, service: true}}\n"
        "  - {name: a, command: ior, resources: r, depends_on: [s]}\n"
    )

    journal = drive_run(text, "local", tmp_path)

    assert inside(journal) == {"g/s": ["CANCELED"], "g/a": ["FAILED"]}


@pytest.mark.clause("ng-group")
def test_the_job_of_a_group_is_one_process_with_all_resources_of_the_group() -> None:
    (allocation,) = planned(example("06-mini-mummi-mended"), Site(target="slurm")).entries
    words = ("runner",)
    spec = job_spec(type(allocation)(id="g", kind=allocation.kind, command=words, shape=allocation.shape))

    assert spec.launcher == "single"
    assert spec.resources is not None
    assert getattr(spec.resources, "node_count", None) == 8


@pytest.mark.clause("ng-inherit")
@pytest.mark.parametrize(
    "resource",
    ["{type: node, count: 3, with: [{type: core, count: 2}]}", "{type: core, replicas: 5}"],
    ids=["nodes", "slots"],
)
def test_a_task_without_resources_has_all_of_its_group(resource: str) -> None:
    (allocation,) = planned(
        f"version: 1\nresources: {{g: {resource}}}\n"
        "groups: [{name: g, resources: g, tasks: [{command: a}]}]\n"
    ).entries

    (task,) = flatten(allocation)

    assert allocation.shape is not None
    assert task.shape == allocation.shape


@pytest.mark.clause("ng-nested")
def test_dependents_of_a_nested_group_wait_for_all_its_tasks() -> None:
    (allocation,) = planned(example("17-nested")).entries
    found = {it.id.rpartition("/")[2]: it for it in flatten(allocation)}

    assert {it.id.rpartition("/")[2] for it in found["machine-learning-task-4"].after} == {
        "generate-data-task-1",
        "eat-data",
        "machine-learning-task-1",
    }
    assert [it.id for it in found["eat-data"].after] == ["machine-learning/machine-learning-task-1"]
    assert entries(planned(example("17-nested")))["machine-learning/generate-data"].inside


@pytest.mark.clause("ng-service")
def test_files_of_a_group_are_written_before_their_dependents_and_take_no_slots(
    tmp_path: Path, log: Log
) -> None:
    text = (
        f"{GROUP}  - {{name: serve, command: [sh, -c, 'ior; sleep 600'], resources: r, service: true}}\n"
        f"  - {{name: made, steps: [{{name: write, path: {tmp_path}/made, content: it is there}}]}}\n"
        f"  - {{name: b, command: [test, -s, {tmp_path}/made], depends_on: [made], resources: r}}\n"
    )

    journal = drive_run(text, "local", tmp_path)

    assert inside(journal) == {"g/serve": ["CANCELED"], "g/made": ["COMPLETED"], "g/b": ["COMPLETED"]}


SIZES = """\
version: 1
resources:
  two: {type: node, count: 2}
  anywhere: {type: core, replicas: 2}
  slots: {type: core, replicas: 3}
  one: {type: core, count: 1}
  wide: {type: node, count: 3}
"""


@pytest.mark.clause("ng-subset")
@pytest.mark.parametrize(
    ("of_group", "of_task"),
    [
        ("two", "slots"),
        ("anywhere", "slots"),
        ("two", "wide"),
        ("two", "wide|slots"),
        ("two|anywhere", "wide"),
    ],
)
@pytest.mark.parametrize("system", ["local", "slurm"])
def test_a_task_too_large_for_its_group_is_refused_before_any_submission(
    of_group: str, of_task: str, system: str
) -> None:
    tasks = f"tasks: [{{command: a, resources: {of_task}}}]"
    text = f"{SIZES}groups: [{{name: g, resources: {of_group}, {tasks}}}]\n"

    problems = [
        it for it in found(text, site=Site(target=system, is_one_machine=system == "local")) if it.is_error
    ]

    assert [(it.code, it.at.line) for it in problems] == [("JS070", 8)]
    assert problems[0].says.startswith("asks for ")


@pytest.mark.clause("ng-subset")
def test_a_task_too_large_for_the_outer_group_is_refused() -> None:
    text = (
        f"{SIZES}groups:\n- {{name: g, resources: two, tasks: [{{group: h}}]}}\n"
        "- {name: h, resources: wide, tasks: [{command: a, resources: one}]}\n"
    )

    assert [(it.code, it.is_error, it.at.line) for it in found(text)] == [("JS070", True, 10)]


def test_alternatives_too_large_for_the_group_are_left_out(tmp_path: Path, log: Log) -> None:
    text = f"{SIZES}groups: [{{name: g, resources: two, tasks: [{{command: ior, resources: wide|one}}]}}]\n"

    journal = drive_run(text, "local", tmp_path)

    assert [(it.code, it.is_error) for it in found(text)] == [("JS070", False)]
    assert journal.states == {"g": [JobState.COMPLETED]}
    assert len(log()) == 2


@pytest.mark.clause("ng-attributes")
@pytest.mark.parametrize(
    ("of_task", "expected"),
    [
        ("", {"A": "group", "B": "group", "C": "document"}),
        ("resources: own", {"A": "own", "B": "group", "C": "document"}),
        (
            "resources: own, attributes: {environment: {A: task}}",
            {"A": "task", "B": "group", "C": "document"},
        ),
    ],
    ids=["of the group", "of its own resource", "its own"],
)
def test_the_resource_of_a_task_overrides_that_of_its_group(of_task: str, expected: dict[str, str]) -> None:
    text = (
        "version: 1\nattributes: {environment: {A: document, B: document, C: document}}\nresources:\n"
        "  whole: {type: core, replicas: 2, attributes: {environment: {A: whole, B: whole}}}\n"
        "  own: {type: core, count: 1, attributes: {environment: {A: own}, duration: 1m}}\n"
        "groups:\n- name: g\n  resources: whole\n  attributes: {environment: {A: group, B: group}}\n"
        f"  tasks: [{{name: t, command: a{of_task and ', ' + of_task}}}]\n"
    )

    inner = entries(planned(text))["g/t"].attributes

    assert inner.environment == expected
    assert (inner.duration is None) == (not of_task)
